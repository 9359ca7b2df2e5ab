"""The commands `planetwire tokens …`: tokens with names, each for one person or program, and each with a role."""

from __future__ import annotations

import json
import secrets
from typing import Annotated

import typer

from planetwire.model import Role
from planetwire.supervise.commands.command import AsJson, opened, say

tokens = typer.Typer(help="Tokens with a name and a role, of people and programs.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Letters, digits, dots, dashes; it stands in the audit log.")]
TOKEN_BYTES = 32


@tokens.command("add")
def add(
    name: Name,
    role: Annotated[Role, typer.Option("--role", help="What it opens.")] = Role.VIEWER,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it: it is shown once and kept as a hash."""
    from planetwire.supervise.commands import audit_cli
    from planetwire.text.fingerprint import fingerprint
    from planetwire.wiring.commands import token_book

    with opened("tokens") as settings:
        token, book = secrets.token_urlsafe(TOKEN_BYTES), token_book(settings)
        book.add(name, role, fingerprint(token))
        try:
            audit_cli.note(settings, "token.added", name=name, role=role.value)
        except BaseException:  # no token without an audit row
            book.remove(name)
            raise
        say(json.dumps({"name": name, "role": role.value, "token": token}) if as_json else token)


@tokens.command("ls")
def ls(as_json: AsJson = False) -> None:
    """Names and roles, and since when; the tokens themselves are not kept."""
    from planetwire.wiring.commands import token_book

    with opened("tokens") as settings:
        records = [
            {key: record.get(key) for key in ("name", "role", "created_at")}
            for record in token_book(settings).records()
        ]
        if as_json:
            say(json.dumps(records, indent=2))
            return
        width = max((len(str(record["name"])) for record in records), default=0)
        lines = [f"{record['name']:<{width}}  {record['role']:<8}  {record['created_at']}" for record in records]
        say("\n".join(lines) or "no token has a name")


@tokens.command("rm")
def rm(name: Name) -> None:
    """Take a token back: it opens nothing any more, and its sessions end."""
    from planetwire.supervise.commands import audit_cli
    from planetwire.wiring.commands import token_book

    with opened("tokens") as settings:
        book = token_book(settings)
        if any(record["name"] == name for record in book.records()):
            audit_cli.note(settings, "token.removed", name=name)
        book.remove(name)
        say(f"removed {name}")
