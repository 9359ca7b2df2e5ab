"""Writes the resulting schemas, `_schema/head.sql` and `head_observations.sql`, and lists new migrations.

`_schema/landed.txt` has each migration's checksum. An existing line is never rewritten, since databases were created
with that text. To change a migration that nobody has applied yet, remove its line by hand.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from planetwire.database.postgres import connect
from planetwire.migrating.migrate import migrate_postgres, migrate_sqlite, migrations
from planetwire.supervise.embedded_postgres import EmbeddedPostgres, find_binaries

SCHEMA = Path(__file__).resolve().parent.parent / "src" / "planetwire" / "_schema"
HEAD = "-- What the migrations of {engine} add up to. Written by `make schema`; a test compares.\n\n"
# Lines that depend on the server's version or the time, not on the migrations.
VOLATILE = re.compile(r"^(--.*|\\(un)?restrict .*|SET .*|SELECT pg_catalog\.set_config.*)$")


def dump(cluster: EmbeddedPostgres, dsn: str) -> str:
    """The schema of a database, without volatile lines."""
    said = subprocess.run(
        [find_binaries(cluster.pg_bin) / "pg_dump", "--schema-only", "--no-owner", "--no-privileges", dsn],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    kept = "\n".join("" if VOLATILE.match(line) else line for line in said.stdout.splitlines())
    return HEAD.format(engine="PostgreSQL") + re.sub(r"\n{3,}", "\n\n", kept).strip() + "\n"


def dump_sqlite() -> str:
    """The same for an observation file."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate_sqlite(connection)
    rows = connection.execute("select sql from sqlite_master where sql is not null order by type desc, name")
    text = "\n\n".join(row[0] + ";" for row in rows)
    connection.close()
    return HEAD.format(engine="SQLite") + text + "\n"


def checksums() -> dict[str, str]:
    """The checksums of all migrations, by file name."""
    return {
        f"{migration.name}.{engine}.sql": migration.checksum
        for engine in ("postgres", "sqlite")
        for migration in migrations(engine)  # type: ignore[arg-type]
    }


def landed() -> dict[str, str]:
    """The present list."""
    lines = (SCHEMA / "landed.txt").read_text(encoding="ascii").splitlines()
    return dict(reversed(line.split()) for line in lines)  # type: ignore[arg-type]


def whole_list() -> str:
    """The list with new migrations appended. Raises SystemExit for a changed or missing one."""
    known, present = landed() if (SCHEMA / "landed.txt").exists() else {}, checksums()
    for name, checksum in known.items():
        if present.get(name) != checksum:
            raise SystemExit(f"{name} was changed or removed, and databases have it; write a new migration instead")
    return "".join(f"{checksum}  {name}\n" for name, checksum in (known | present).items())


async def _migrated(cluster: EmbeddedPostgres) -> str:
    connection = await connect(cluster.dsn, application="schema")
    await migrate_postgres(connection)
    await connection.close()
    return dump(cluster, cluster.dsn)


def main() -> int:
    listed = whole_list()
    folder = Path(tempfile.mkdtemp(prefix="pw-schema-"))
    folder.chmod(0o755)
    cluster = EmbeddedPostgres(folder, config={"fsync": "off"})
    cluster.start()
    try:
        head = asyncio.run(_migrated(cluster))
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
    for name, text in (("head.sql", head), ("head_observations.sql", dump_sqlite()), ("landed.txt", listed)):
        (SCHEMA / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
