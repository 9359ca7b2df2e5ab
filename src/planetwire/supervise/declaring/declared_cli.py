"""What `planetwire sources add|edit|rm|export` do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click
from typer import BadParameter

from planetwire.catalogue.desk import DeclaredSources
from planetwire.catalogue.folder import read_file, read_text
from planetwire.errors import ConfirmNeeded
from planetwire.model.facts import FACT_TABLE, Declaration
from planetwire.settings import Settings
from planetwire.supervise.commands.person import confirm_clears, local_actor
from planetwire.supervise.declaring.commands import SUFFIXES
from planetwire.supervise.roles import database_of
from planetwire.wiring.commands import open_declared

T = TypeVar("T")


def text_of(file: Path) -> str:
    """Of a file, or of standard input. Raises InputError."""
    return read_text(sys.stdin.buffer) if str(file) == "-" else read_file(file)


def add(settings: Settings, text: str) -> str:
    """What was done, in a line."""

    async def work(desk: DeclaredSources) -> Declaration:
        return await desk.put(local_actor(), await desk.name_of(text), text, expected=None)

    stored = run(settings, work)
    return f"{stored.name} is declared, at revision {stored.revision}; `planetwire sources` shows its first run"


def edit(settings: Settings, target: str, *, yes: bool, enabled: bool) -> str:
    """`target`: a file, or the name of a source, whose text is then edited by hand."""
    by_hand = target != "-" and not target.endswith(SUFFIXES) and not Path(target).exists()
    if by_hand:
        before = run(settings, lambda desk: desk.get(target))
        text = click.edit(before.text, extension=SUFFIXES[0])
        if text is None and before.enabled == enabled:
            return f"{target} stays as it is"
        text = before.text if text is None else text
    else:
        text = text_of(Path(target))
        name = run(settings, lambda desk: desk.name_of(text))
        before = run(settings, lambda desk: desk.get(name))

    def put(confirm: bool) -> Declaration:
        return run(
            settings,
            lambda desk: desk.put(
                local_actor(), before.name, text, expected=before.revision, enabled=enabled, confirm=confirm
            ),
        )

    try:
        stored = put(yes)
    except ConfirmNeeded as needed:
        facts = int(str(needed.extensions["facts"]))
        print(f"planetwire: {needed.message}", file=sys.stderr)
        confirm_clears([(before.name, {FACT_TABLE: facts})], yes=False)
        stored = put(True)
    return f"{stored.name} is changed, at revision {stored.revision}"


def remove(settings: Settings, name: str, *, clear: bool, yes: bool) -> str:
    """`clear`: a job deletes its records, after a question."""
    if clear:
        confirm_clears([(name, run(settings, lambda desk: desk.rows_of(name)))], yes=yes)
    run(settings, lambda desk: desk.remove(local_actor(), name, expected=None, clear=clear))
    return f"{name} is removed; {'a job deletes its records' if clear else 'its records stay in the database'}"


def export(settings: Settings, name: str) -> str:
    """The text as it is stored."""
    return run(settings, lambda desk: desk.get(name)).text


def run(settings: Settings, work: Callable[[DeclaredSources], Awaitable[T]]) -> T:
    """Over a connection of its own."""
    if not settings.earth:
        raise BadParameter("sources are declared in the Earth half's database, which is off")

    async def connected() -> T:
        async with open_declared(settings, database_of(settings)) as desk:
            return await work(desk)

    return asyncio.run(connected())
