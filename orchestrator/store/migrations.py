"""The schema, step by step: each entry changes what the one before it made, and is never edited.

The statements are plain SQL that SQLite and Postgres both take. `migrate` runs what is missing in
one transaction; a database that is newer than this code is refused, so nothing is misread.
"""

import sqlalchemy as sa

from orchestrator.errors import SettingsFault

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """create table hosts (
            id text primary key, process_id text not null, url text,
            heartbeat_s double precision not null, lost_s double precision)""",
        """create table phones (
            address text primary key, host text not null, pool text, route text, serial text,
            state text not null, reason text, contract json, health json, seen_s double precision,
            build_id text, leased_s double precision, stop_run text, last_project text)""",
        """create table builds (
            id text primary key, identity text not null, generation integer not null,
            owner text not null, project text not null, fingerprint text not null,
            spec json not null, needs json not null, pool text not null, phone text,
            priority integer not null, state text not null, stage text not null, reason text,
            outcome text, exit_code integer, cause text, cancel_asked integer not null,
            attempt integer not null, created_s double precision not null,
            started_s double precision, finished_s double precision, request_id text,
            size_bytes bigint not null, unique (identity, generation))""",
        "create index builds_by_state on builds (state, priority, created_s)",
        "create index builds_by_owner on builds (owner, created_s, id)",
        """create table runs (
            id text primary key, build_id text not null, attempt integer not null,
            phone text not null, host text not null, route text, state text not null, detail text,
            created_s double precision not null, finished_s double precision,
            log_size_bytes bigint, log_sha256 text, stage_s json not null,
            digest json, digest_text text)""",
        "create index runs_by_build on runs (build_id, attempt)",
        """create table artifacts (
            build_id text not null, number integer not null, run_id text not null,
            path text not null, kind text not null, variant text, size_bytes bigint not null,
            sha256 text not null, primary key (build_id, number))""",
        "create index artifacts_by_content on artifacts (sha256)",
        """create table workspaces (
            owner text not null, fingerprint text not null, name text not null,
            files integer not null, size_bytes bigint not null, used_s double precision not null,
            primary key (owner, fingerprint))""",
        """create table tokens (
            id text primary key, owner text not null, note text not null,
            sha256 text not null unique, scopes json not null,
            created_s double precision not null, expires_s double precision,
            revoked_s double precision)""",
        """create table idempotency (
            owner text not null, key text not null, body_sha256 text not null,
            build_id text not null, created_s double precision not null,
            primary key (owner, key))""",
    ),
    (
        """create table webhooks (
            id text primary key, url text not null, build_id text not null, host text not null,
            tries integer not null, due_s double precision not null, done_s double precision,
            failure text)""",
    ),
    ("create table lab (id text not null)",),
)


def migrate(connection: sa.Connection, up_to: int = len(MIGRATIONS)) -> int:
    """Bring the schema to version `up_to` inside the caller's transaction; give the version before.

    On Postgres an advisory lock lets one of several starting hosts do it while the others wait.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("select pg_advisory_xact_lock(7045281)")
    connection.exec_driver_sql("create table if not exists pocketbuild_schema (version integer not null)")
    before: int = connection.exec_driver_sql("select max(version) from pocketbuild_schema").scalar() or 0
    if before > len(MIGRATIONS):
        raise SettingsFault(
            f"the database has schema {before} and this program knows only {len(MIGRATIONS)}",
            hint="Run a program at least as new as the one that wrote this database.",
        )
    for version in range(before + 1, up_to + 1):
        for statement in MIGRATIONS[version - 1]:
            connection.exec_driver_sql(statement)
        connection.execute(sa.text("insert into pocketbuild_schema values (:v)"), {"v": version})
    return before
