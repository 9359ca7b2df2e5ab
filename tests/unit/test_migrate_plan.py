"""`migrate --plan` in words and as JSON, and its exit status."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from planetwire.cli import app
from planetwire.migrating.migrate import migrations
from planetwire.settings import load_settings
from planetwire.supervise.commands import migrate_plan
from planetwire.supervise.commands.migrate_plan import Planned, plan, render

TABLE = {"name": "jobs", "lock": "access exclusive", "rewrite": True, "reads": False, "writes": True}
LARGE = Planned(
    "0030_later", "postgres", "contract", ["drops column a"], [TABLE | {"rows": 1_234_567, "bytes": 5 * 10**9}]
)
SMALL = Planned("0031_new", "postgres", "expand", [], [])


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PLANETWIRE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PLANETWIRE_DATA_DIR", str(tmp_path / "data"))


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, ["migrate", *words])


def test_each_migration_says_what_it_locks_and_how_large_that_is() -> None:
    lines = render([LARGE, SMALL]).splitlines()
    assert lines[0].split() == ["0030_later", "postgres", "contract:", "drops", "column", "a"]
    assert lines[1].strip() == (
        "jobs: lock access exclusive, written anew, rows changed (about 1,234,567 rows, 5.0 GB)"
    )
    assert lines[-1].startswith("2 to apply; no older process works beside a contraction")
    assert render([SMALL]).endswith("apply it, then restart")


def test_where_nothing_is_yet_everything_is_due_and_nothing_is_made(tmp_path: Path) -> None:
    said = typed("--plan", "--json")
    assert said.exit_code == 3
    due = json.loads(said.stdout)["migrations"]
    names = [(one["name"], one["engine"]) for one in due]
    assert names == [(one.name, engine) for engine in ("postgres", "sqlite") for one in migrations(engine)]  # type: ignore[arg-type]
    assert not any(one["tables"] for one in due) and not (tmp_path / "data").exists()


def test_nothing_due_exits_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate_plan, "plan", lambda settings: [])
    said = typed("--plan")
    assert (said.exit_code, said.stdout) == (0, "nothing to do: the schema is this version's\n")


def test_a_half_that_is_off_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANETWIRE_HALVES", "terminal")
    assert {one.engine for one in plan(load_settings()[0])} == {"sqlite"}


@pytest.mark.parametrize("words", [("--plan", "--repair"), ("--json",)])
def test_what_does_not_go_together_is_wrong_usage(words: tuple[str, ...]) -> None:
    assert typed(*words).exit_code == 2
