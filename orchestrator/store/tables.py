"""The tables, as SQLAlchemy knows them. `migrations.py` makes them; a test compares the two.

Times are seconds since 1970 in UTC. JSON columns hold what is only read as a whole.
"""

import sqlalchemy as sa

metadata = sa.MetaData()

lab = sa.Table("lab", metadata, sa.Column("id", sa.Text, nullable=False))
"""One row: what tells the runs of this database from those of any other on the same phone."""

hosts = sa.Table(
    "hosts",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("process_id", sa.Text, nullable=False),
    sa.Column("url", sa.Text),
    sa.Column("heartbeat_s", sa.Double, nullable=False),
    sa.Column("lost_s", sa.Double),
)

phones = sa.Table(
    "phones",
    metadata,
    sa.Column("address", sa.Text, primary_key=True),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pool", sa.Text),
    sa.Column("route", sa.Text),
    sa.Column("serial", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("contract", sa.JSON),
    sa.Column("health", sa.JSON),
    sa.Column("seen_s", sa.Double),
    sa.Column("build_id", sa.Text),
    sa.Column("leased_s", sa.Double),
    sa.Column("stop_run", sa.Text),
    sa.Column("last_project", sa.Text),
)
"""A phone; the lease is `build_id`. `stop_run` is a run to be stopped there before the next lease."""

builds = sa.Table(
    "builds",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("identity", sa.Text, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("spec", sa.JSON, nullable=False),
    sa.Column("needs", sa.JSON, nullable=False),
    sa.Column("pool", sa.Text, nullable=False),
    sa.Column("phone", sa.Text),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("stage", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("outcome", sa.Text),
    sa.Column("exit_code", sa.Integer),
    sa.Column("cause", sa.Text),
    sa.Column("cancel_asked", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("created_s", sa.Double, nullable=False),
    sa.Column("started_s", sa.Double),
    sa.Column("finished_s", sa.Double),
    sa.Column("request_id", sa.Text),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("identity", "generation"),
    sa.Index("builds_by_state", "state", "priority", "created_s"),
    sa.Index("builds_by_owner", "owner", "created_s", "id"),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("build_id", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("phone", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("route", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("detail", sa.Text),
    sa.Column("created_s", sa.Double, nullable=False),
    sa.Column("finished_s", sa.Double),
    sa.Column("log_size_bytes", sa.BigInteger),
    sa.Column("log_sha256", sa.Text),
    sa.Column("stage_s", sa.JSON, nullable=False),
    sa.Column("digest", sa.JSON),
    sa.Column("digest_text", sa.Text),
    sa.Index("runs_by_build", "build_id", "attempt"),
)
"""One attempt of a build on one phone."""

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("build_id", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("variant", sa.Text),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Index("artifacts_by_content", "sha256"),
)

workspaces = sa.Table(
    "workspaces",
    metadata,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("fingerprint", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("files", sa.Integer, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("used_s", sa.Double, nullable=False),
)
"""Which owner may build which stored workspace; the content itself is shared by fingerprint."""

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False, unique=True),
    sa.Column("scopes", sa.JSON, nullable=False),
    sa.Column("created_s", sa.Double, nullable=False),
    sa.Column("expires_s", sa.Double),
    sa.Column("revoked_s", sa.Double),
)

idempotency = sa.Table(
    "idempotency",
    metadata,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("body_sha256", sa.Text, nullable=False),
    sa.Column("build_id", sa.Text, nullable=False),
    sa.Column("created_s", sa.Double, nullable=False),
)

webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("build_id", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("due_s", sa.Double, nullable=False),
    sa.Column("done_s", sa.Double),
    sa.Column("failure", sa.Text),
)
"""Ends of builds that are still to be told; a row is written in the transaction that ends the build."""
