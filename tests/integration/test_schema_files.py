"""What the migrations add up to is written down, and a migration that databases were made by never changes."""

from __future__ import annotations

import pytest
import write_schema

from planetwire.supervise.embedded_postgres import EmbeddedPostgres


def test_what_the_migrations_add_up_to_is_written_down(pg_cluster: EmbeddedPostgres, pg_dsn: str) -> None:
    """A change of the schema is read as one: `make schema` writes these files."""
    assert (write_schema.SCHEMA / "head.sql").read_text(encoding="utf-8") == write_schema.dump(pg_cluster, pg_dsn)
    assert (write_schema.SCHEMA / "head_observations.sql").read_text(encoding="utf-8") == write_schema.dump_sqlite()


def test_a_landed_migration_never_changes() -> None:
    present, listed = write_schema.checksums(), write_schema.landed()
    assert listed == present, "run `make schema`; a line that is there already must not change"


def test_the_list_is_not_written_anew_over_a_changed_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert write_schema.whole_list().count("\n") == len(write_schema.checksums())
    name = next(iter(write_schema.landed()))
    changed = write_schema.checksums() | {name: "0" * 64}
    monkeypatch.setattr(write_schema, "checksums", lambda: changed)
    with pytest.raises(SystemExit, match=name.replace(".", r"\.")):
        write_schema.whole_list()
