"""The person at the shell: identity, and confirmation of deletions."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping, Sequence

import typer

from planetwire.model import Actor, Role
from planetwire.model.facts import FACT_TABLE
from planetwire.supervise.commands.jobs_text import clean

LOCAL = "local"


def local_actor() -> Actor:
    """The operating system's user, from the kernel and not from the environment. A shell user may do everything."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:  # a container's user without a name
        name = f"uid {number}"
    return Actor(name, Role.ADMIN, LOCAL)


def is_asked() -> bool:
    """Whether the terminal is interactive."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm_clears(clears: Sequence[tuple[str, Mapping[str, int]]], *, yes: bool) -> None:
    """Ask before rows of these sources are deleted. Raises BadParameter (exit 2) without a terminal, Exit(1) for no."""
    if yes or not clears:
        return
    words = "; ".join(_deletes(source, rows) for source, rows in clears)
    if not is_asked():
        raise typer.BadParameter(f"{words}. Nobody is here to be asked: say --yes if that is meant")
    if not typer.confirm(f"{words}. Go on?", default=False, err=True):
        typer.echo("planetwire: nothing was deleted", err=True)
        raise typer.Exit(1)


def _deletes(source: str, rows: Mapping[str, int]) -> str:
    facts = rows.get(FACT_TABLE, 0)
    made = sum(rows.values()) - facts
    also = f" and {made:,} row{'' if made == 1 else 's'} made from them" if made else ""
    return f"this deletes {facts:,} record{'' if facts == 1 else 's'} of {clean(source)}{also}"
