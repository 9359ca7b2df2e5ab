"""The commands `planetwire sources …`: the list of all, and those that are declared as data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planetwire.supervise.commands.command import AsJson, opened, say

sources = typer.Typer(help="Sources: what runs when; and those that are declared as data.", invoke_without_command=True)

SUFFIXES = (".yaml", ".yml", ".json")  # of the file of a declaration

File = Annotated[Path, typer.Argument(help="A declaration; - reads it from standard input.", metavar="FILE")]
Name = Annotated[str, typer.Argument(help="A declared source.", metavar="NAME")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before records are deleted.")]


@sources.callback()
def listing(context: typer.Context, as_json: AsJson = False) -> None:
    """What runs when, and how the last run of each source ended."""
    from planetwire.supervise.commands import sources_cli

    if context.invoked_subcommand is None:
        with opened("sources") as settings:
            say(sources_cli.listing(settings, as_json=as_json))
            if as_json and (left_out := sources_cli.left_out_lines()):
                say("\n".join(left_out), err=True)


@sources.command("add")
def add(file: File) -> None:
    """Declare a source. It runs in every process within 2 s."""
    from planetwire.supervise.declaring import declared_cli

    with opened("sources") as settings:
        say(declared_cli.add(settings, declared_cli.text_of(file)))


@sources.command("edit")
def edit(
    target: Annotated[str, typer.Argument(help="A declaration, or the name of a source to edit.", metavar="FILE|NAME")],
    yes: Yes = False,
    off: Annotated[bool, typer.Option("--off", help="Keep it, and neither ask for it nor show it.")] = False,
) -> None:
    """Replace a declaration by the one in FILE, or edit that of NAME in $EDITOR. Asks where it deletes records."""
    from planetwire.supervise.declaring import declared_cli

    with opened("sources") as settings:
        say(declared_cli.edit(settings, target, yes=yes, enabled=not off))


@sources.command("rm")
def remove(
    name: Name,
    keep: Annotated[bool, typer.Option("--keep-data", help="Its records stay in the database.")] = False,
    clear: Annotated[bool, typer.Option("--clear-data", help="A job deletes its records.")] = False,
    yes: Yes = False,
) -> None:
    """Take a declared source away, and say what becomes of its data."""
    from planetwire.supervise.declaring import declared_cli

    if keep == clear:
        raise typer.BadParameter("say what becomes of its data: --keep-data or --clear-data")
    with opened("sources") as settings:
        say(declared_cli.remove(settings, name, clear=clear, yes=yes))


@sources.command("export")
def export(name: Name) -> None:
    """Print the declaration of a source as it is stored."""
    from planetwire.supervise.declaring import declared_cli

    with opened("sources") as settings:
        typer.echo(declared_cli.export(settings, name), nl=False)
