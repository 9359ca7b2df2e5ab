"""Every command at three in the morning: a line that says what is wrong, one that says what to do, no traceback."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from planetwire.cli import app
from planetwire.supervise.commands import outbox_cli

Typed = Callable[..., "asyncio.Future[Result]"]

READING = [
    ("jobs", "ls"),
    ("jobs", "show", "1"),
    ("jobs", "dead"),
    ("jobs", "watch"),
    ("outbox", "lag"),
    ("outbox", "peek"),
    ("sources",),
    ("layers",),
]
WRITING = [
    ("jobs", "submit", "collect", "usgs_quakes"),
    ("jobs", "cancel", "1"),
    ("jobs", "retry", "--dead"),
    ("outbox", "retry", "--all"),
]
NOBODY = "postgresql://somebody:secret@127.0.0.1:1/planetwire"


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Runs a command on a data dir where nothing runs, in a thread: commands have an event loop of their own."""
    for name in [name for name in os.environ if name.startswith("PLANETWIRE_")]:
        monkeypatch.delenv(name)

    def run(*words: str, **settings: str) -> asyncio.Future[Result]:
        environment = {f"PLANETWIRE_{name}": value for name, value in settings.items()}
        environment |= {"PLANETWIRE_DATA_DIR": str(tmp_path), "PLANETWIRE_PORT": "1"}
        return asyncio.ensure_future(asyncio.to_thread(CliRunner().invoke, app, words, env=environment))

    return run


def said(result: Result) -> str:
    """What it said on stderr; it failed, said so, and did not crash."""
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.stderr.startswith("planetwire: ")
    return result.stderr


@pytest.mark.parametrize("words", [*READING, *WRITING], ids=" ".join)
async def test_a_database_that_does_not_answer_is_said_with_what_to_look_at(
    typed: Typed, words: tuple[str, ...]
) -> None:
    text = said(await typed(*words, DATABASE_URL=NOBODY))
    assert "PostgreSQL cannot be reached" in text
    assert "PLANETWIRE_DATABASE_URL right?" in text
    assert "secret" not in text


@pytest.mark.parametrize("words", [*READING, *WRITING], ids=" ".join)
async def test_without_a_database_the_two_ways_to_one_are_named(typed: Typed, words: tuple[str, ...]) -> None:
    """A setting that is there and empty, as compose files leave it, is not there: no default server is asked."""
    text = said(await typed(*words, DATABASE_URL=""))
    assert "start `planetwire up`" in text and "set PLANETWIRE_DATABASE_URL" in text


@pytest.mark.parametrize("words", [*READING, *WRITING], ids=" ".join)
async def test_a_schema_of_another_version_is_said_to_be_one(typed: Typed, words: tuple[str, ...], pg_dsn: str) -> None:
    """The tables are out of sight, as in a database that nobody migrated."""
    text = said(await typed(*words, DATABASE_URL=hidden(pg_dsn)))
    assert "migrations not applied" in text and "run `planetwire migrate`" in text


def hidden(dsn: str) -> str:
    return f"{dsn}{'&' if '?' in dsn else '?'}options=-csearch_path%3Dpg_catalog"


@pytest.mark.parametrize(
    ("dsn", "word"),
    [
        ("mysql://127.0.0.1/planetwire", "got 'mysql'"),
        ("postgresql://127.0.0.1:port/planetwire", "port"),
        ("postgresql://no-such-host.invalid/planetwire", "cannot be reached"),
    ],
)
async def test_an_address_that_is_none_is_answered_with_what_one_looks_like(typed: Typed, dsn: str, word: str) -> None:
    text = said(await typed("outbox", "lag", DATABASE_URL=dsn))
    assert word in text and "postgresql://user:password@host:5432/name" in text


async def test_doctor_names_the_database_before_what_fails_because_of_it(typed: Typed, pg_dsn: str) -> None:
    down = await typed("doctor", DATABASE_URL=NOBODY)
    assert down.exit_code == 1 and "First broken stage: PostgreSQL answers" in down.stdout
    assert "does not answer: Connection refused" in down.stdout and "urlopen" not in down.stdout
    behind = await typed("doctor", "--json", DATABASE_URL=hidden(pg_dsn))
    steps = {found["step"]: found for found in json.loads(behind.stdout)}
    assert steps["database"]["findings"][0]["code"] == "schema_behind"
    nothing = await typed("doctor")
    assert nothing.exit_code == 1 and "First broken stage: Planetwire runs" in nothing.stdout


async def test_a_fault_of_the_programs_own_is_one_line_too_and_can_be_looked_into(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> str:
        raise KeyError("lag")

    monkeypatch.setattr(outbox_cli, "lag", broken)
    text = said(await typed("outbox", "lag", DATABASE_URL=NOBODY))
    assert "KeyError('lag')" in text and "PLANETWIRE_LOG_LEVEL=debug" in text
    loud = await typed("outbox", "lag", DATABASE_URL=NOBODY, LOG_LEVEL="debug")
    assert isinstance(loud.exception, KeyError)


async def test_a_full_disk_is_said_in_the_systems_words(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(outbox_cli, "lag", full)
    assert said(await typed("outbox", "lag", DATABASE_URL=NOBODY)) == "planetwire: [Errno 28] No space left on device\n"


@pytest.mark.parametrize(
    "words",
    [("jobs", "show", "x"), ("jobs", "ls", "--limit", "0"), ("jobs", "retry"), ("outbox", "retry"), ("nosuch",)],
    ids=" ".join,
)
async def test_wrong_usage_is_exit_2(typed: Typed, words: tuple[str, ...]) -> None:
    result = await typed(*words)
    assert result.exit_code == 2 and "Usage:" in result.stderr
