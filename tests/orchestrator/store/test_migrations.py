from pathlib import Path

import pytest
import sqlalchemy as sa

from orchestrator.errors import SettingsFault
from orchestrator.store.database import Database, sqlite_url
from orchestrator.store.migrations import MIGRATIONS, migrate
from orchestrator.store.tables import metadata


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(sqlite_url(tmp_path))


def test_the_migrated_schema_is_the_one_that_the_code_reads(database: Database) -> None:
    with database.begin() as connection:
        assert migrate(connection) == 0
    found = sa.inspect(database.engine)
    for name, table in metadata.tables.items():
        columns = {column["name"]: column["nullable"] for column in found.get_columns(name)}
        wanted = {column.name: bool(column.nullable) for column in table.columns}
        assert {n: columns[n] or n in table.primary_key.columns for n in columns} == {
            n: wanted[n] or n in table.primary_key.columns for n in wanted
        }, name
        assert {index["name"] for index in found.get_indexes(name)} >= {index.name for index in table.indexes}
    database.close()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_every_older_schema_is_brought_up_to_date_with_its_rows(database: Database, version: int) -> None:
    with database.begin() as connection:
        migrate(connection, up_to=version)
        connection.exec_driver_sql("insert into hosts values ('h', 'p', null, 1.0, null)")
    with database.begin() as connection:
        assert migrate(connection) == version
        assert connection.exec_driver_sql("select count(*) from hosts").scalar() == 1
        assert migrate(connection) == len(MIGRATIONS)
    database.close()


def test_a_database_of_a_newer_program_is_left_alone(database: Database) -> None:
    with database.begin() as connection:
        migrate(connection)
        connection.exec_driver_sql(f"insert into pocketbuild_schema values ({len(MIGRATIONS) + 1})")
    with pytest.raises(SettingsFault, match="schema"), database.begin() as connection:
        migrate(connection)
    database.close()
