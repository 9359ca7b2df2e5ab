"""The commands `planetwire outbox …`: their help texts and options; the implementation is in `outbox_cli.py`."""

from __future__ import annotations

from typing import Annotated

import typer

from planetwire.supervise.commands.command import AsJson, opened, say

ID_MAX = 2**63 - 1

outbox = typer.Typer(help="Changes on their way to the map.", no_args_is_help=True)

Ids = Annotated[list[int] | None, typer.Argument(min=1, max=ID_MAX, metavar="ID…", show_default=False)]


@outbox.command("lag")
def lag(as_json: AsJson = False) -> None:
    """How far behind: rows that wait, the oldest, those put aside, who leads, the latest revision."""
    from planetwire.supervise.commands import outbox_cli

    with opened("outbox") as settings:
        say(outbox_cli.lag(settings, as_json=as_json))


@outbox.command("peek")
def peek(
    quarantined: Annotated[bool, typer.Option("--quarantined", help="Only rows that failed five times.")] = False,
    unmapped: Annotated[bool, typer.Option("--unmapped", help="Rows that no layer wanted, newest first.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 20,
    as_json: AsJson = False,
) -> None:
    """Rows that wait, oldest first, with their error and age."""
    from planetwire.supervise.commands import outbox_cli

    if quarantined and unmapped:
        raise typer.BadParameter("--quarantined and --unmapped are different rows: name one")
    which = "quarantined" if quarantined else "unmapped" if unmapped else "pending"
    with opened("outbox") as settings:
        say(outbox_cli.peek(settings, which, limit, as_json=as_json))


@outbox.command("retry")
def retry(
    ids: Ids = None,
    everything: Annotated[bool, typer.Option("--all", help="Every row that was put off, refresh hints too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take rows that were put off once more, at once; attempts count from the start."""
    from planetwire.supervise.commands import outbox_cli

    if bool(ids) == everything:
        raise typer.BadParameter("name rows by id, or --all")
    with opened("outbox") as settings:
        text, missed = outbox_cli.retry(settings, ids, as_json=as_json)
        say(text)
        if missed:
            names = ", ".join(map(str, missed))
            say(f"planetwire: not put off, see `planetwire outbox peek`: {names}", err=True)
            raise typer.Exit(1)
