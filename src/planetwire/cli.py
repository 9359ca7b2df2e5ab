"""The command `planetwire`. Exit status: 0 done, 1 failed, 2 wrong usage."""

from __future__ import annotations

import importlib
import json
import os
import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from planetwire import __version__
from planetwire.private import UMASK
from planetwire.settings import flat
from planetwire.supervise.commands.command import AsJson, say
from planetwire.supervise.commands.command import opened as _settings
from planetwire.supervise.commands.jobs_commands import jobs
from planetwire.supervise.commands.outbox_commands import outbox
from planetwire.supervise.commands.tokens_commands import tokens
from planetwire.supervise.declaring.commands import SUFFIXES, sources

app = typer.Typer(
    help="A self-hosted live-Earth platform.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
STAGES = ("jobs", "collect", "facts", "layers", "outbox", "relay", "stream", "web")


class Half(StrEnum):
    """The values of `--only`."""

    EARTH = "earth"
    TERMINAL = "terminal"


Only = Annotated[Half | None, typer.Option("--only", help="Run one half alone.")]


def _halves(only: Half | None) -> dict[str, Any]:
    return {"halves": only.value} if only is not None else {}


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        say(f"planetwire {__version__}")
        raise typer.Exit


@app.command()
def up(only: Only = None) -> None:
    """Run everything: PostgreSQL, web, work. Prints the address with a one-time login code."""
    from planetwire.supervise.installation import run_up

    with _settings("up", **_halves(only)) as settings:
        run_up(settings, announce=_announce)


@app.command()
def demo(only: Only = None) -> None:
    """Run everything on simulated feeds, without any network."""
    from planetwire.supervise.installation import run_up

    overrides: dict[str, Any] = {"simulated": True, **_halves(only)}
    with _settings("demo", **overrides) as settings:
        if "PLANETWIRE_DATA_DIR" not in os.environ:
            settings = settings.model_copy(update={"data_dir": settings.data_dir / "demo"})
        run_up(settings, announce=_announce, feed_server=True)


def _announce(url: str) -> None:
    say(url)
    sys.stdout.flush()


@app.command()
def web(
    fd: Annotated[int | None, typer.Option("--fd", hidden=True, help="Inherited listening socket.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Instead of PLANETWIRE_PORT.")] = None,
) -> None:
    """Only the web process: HTTP, streams, the relay leader, the observation writer."""
    from planetwire.supervise.web_role import run_web

    with _settings("web", **({"port": port} if port is not None else {})) as settings:
        run_web(settings, fd)


@app.command()
def work(feeds: Annotated[bool, typer.Option("--feeds", help="Also run the schedule and the feeds.")] = False) -> None:
    """Only the work process: claims and runs jobs of the ledger."""
    from planetwire.supervise.roles import run_work

    with _settings("work") as settings:
        run_work(settings, feeds=feeds)


@app.command()
def relay() -> None:
    """Only the relay: turns change rows into layer events. A standby waits while another leads."""
    from planetwire.supervise.roles import run_relay

    with _settings("relay") as settings:
        run_relay(settings)


@app.command()
def collect() -> None:
    """Only the schedule and the observation feeds."""
    from planetwire.supervise.roles import run_collect

    with _settings("collect") as settings:
        run_collect(settings)


@app.command()
def migrate(
    repair: Annotated[bool, typer.Option("--repair", help="Also make every change trigger as it should be.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what would be applied; exit 3 if anything.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the database schema up to date."""
    if plan and repair:
        raise typer.BadParameter("--plan changes nothing, --repair does", param_hint="--plan")
    if as_json and not plan:
        raise typer.BadParameter("it goes with --plan", param_hint="--json")
    if plan:
        _say_plan(as_json=as_json)
        return
    import asyncio

    from planetwire.diagnosis.path import repair as make_triggers
    from planetwire.supervise.commands.person import local_actor
    from planetwire.supervise.installation import migrate as run
    from planetwire.supervise.roles import database_of

    with _settings("migrate") as settings:
        dsn = settings.database_direct_url or database_of(settings)
        applied = asyncio.run(run(dsn, settings.migration))
        say("\n".join(f"applied {name}" for name in applied) or "up to date")
        if repair:
            say(f"triggers made anew: {asyncio.run(make_triggers(dsn, local_actor()))}")


def _say_plan(*, as_json: bool) -> None:
    from planetwire.supervise.commands import migrate_plan

    with _settings("migrate") as settings:
        planned = migrate_plan.plan(settings)
        say(json.dumps(migrate_plan.as_json(planned), indent=2) if as_json else migrate_plan.render(planned))
        if planned:
            raise typer.Exit(migrate_plan.PENDING)


@app.command()
def backup(folder: Annotated[Path, typer.Argument(help="A new folder.")]) -> None:
    """Save everything of this installation, while it runs: database, readings, tokens, what feeds know."""
    from planetwire.supervise.backup import save

    with _settings("backup") as settings:
        saved = save(settings, folder)
        typer.echo("\n".join(f"{size:>14,}  {name}" for name, size in saved.files.items()))
        typer.echo(f"saved in {folder}; it holds tokens: keep it as you keep them")


@app.command()
def restore(folder: Annotated[Path, typer.Argument(help="What `backup` saved.")]) -> None:
    """Bring a backup back, into an empty data dir (and an empty database, where you have your own)."""
    from planetwire.supervise.backup import bring_back

    with _settings("restore") as settings:
        restored = bring_back(settings, folder)
        typer.echo(f"brought back {len(restored.files)} files into {settings.data_dir}; start it as before")
        if restored.unset:
            typer.echo(f"set when it was saved, and not now: {', '.join(restored.unset)}")


@app.command()
def config(
    as_json: AsJson = False,
    show_secrets: Annotated[bool, typer.Option("--show-secrets", help="Print secrets instead of ***.")] = False,
) -> None:
    """Print every setting with its effective value."""
    from planetwire.supervise.roles import effective

    with _settings("config") as settings:
        values = flat(effective(settings), show_secrets=show_secrets)
        if as_json:
            say(json.dumps(values, indent=2))
        else:
            say("\n".join(f"{name} = {value}" for name, value in values.items()))


@app.command()
def path() -> None:
    """Print the path of a datum: one line a stage."""
    width = max(map(len, STAGES))
    for name in STAGES:
        doc = (importlib.import_module(f"planetwire.{name}").__doc__ or "").strip()
        say(f"{name:<{width}}  {doc}")


@app.command()
def parse(
    source: Annotated[str, typer.Argument(help="A source, or the file of a declaration (.yaml, .yml, .json).")],
    file: Annotated[str, typer.Argument(help="A file, or - for standard input.")],
    at: Annotated[str | None, typer.Option("--at", help="Reference time, ISO 8601; default now.")] = None,
) -> None:
    """Rows and rejects of one body as JSON, without a database."""
    from planetwire.wiring.commands import parse_body, parse_declared

    with _settings("parse"):
        body = _bytes_of(file)
        if Path(source).suffix in SUFFIXES:
            parsed = parse_declared(_text_of(source), source, body, _time(at))
        else:
            parsed = parse_body(source, body, _time(at))
        say(json.dumps(parsed, ensure_ascii=False))


@app.command("check-source")
def check_source(
    file: Annotated[str, typer.Argument(help="The declaration, or - for standard input.")],
    against: Annotated[str | None, typer.Option("--against", help="A body to read with it.")] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="Ask its address once, and read what comes.")] = False,
    at: Annotated[str | None, typer.Option("--at", help="Reference time, ISO 8601; default now.")] = None,
    as_json: AsJson = False,
) -> None:
    """What is wrong with a declared source, and what it makes of a body; exit 1 when something is wrong."""
    import asyncio

    from planetwire.wiring.commands import check_source as check

    if against is not None and fetch:
        raise typer.BadParameter("either a body or the address", param_hint="--fetch")
    with _settings("check-source") as settings:
        name = "standard input" if file == "-" else file
        body = None if against is None else _bytes_of(against)
        checked = asyncio.run(check(settings, _text_of(file), name, body, _time(at), fetch=fetch))
        say(json.dumps(checked.record, ensure_ascii=False, indent=2) if as_json else checked.text)
        if not checked.good:
            raise typer.Exit(1)


def _bytes_of(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        say(f"planetwire: cannot read {file}: {error.strerror}", err=True)
        raise typer.Exit(1) from error


def _text_of(file: str) -> str:
    try:
        return _bytes_of(file).decode("utf-8")
    except UnicodeDecodeError as error:
        say(f"planetwire: {file} is no text in UTF-8", err=True)
        raise typer.Exit(1) from error


def _time(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"not an ISO 8601 time: {text!r}", param_hint="--at") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


@app.command()
def doctor(
    as_json: AsJson = False,
    canary: Annotated[bool, typer.Option(help="Send a change of our own through every stage and time it.")] = True,
) -> None:
    """Check each stage of the path and say which one is broken, and what to do."""
    from planetwire.supervise.doctor import examine, healthy, render

    with _settings("doctor") as settings:
        steps = examine(settings, canary=canary)
        say(json.dumps(steps, indent=2) if as_json else render(steps))
        if not healthy(steps):
            raise typer.Exit(1)


@app.command()
def layers(as_json: AsJson = False) -> None:
    """What the globe can show: how much of each layer there is, and how old it is."""
    from planetwire.supervise.commands import layers_cli

    with _settings("layers") as settings:
        say(layers_cli.listing(settings, as_json=as_json))


@app.command()
def audit(
    since: Annotated[str | None, typer.Option(help="A time, or how long ago: 7d, 90min.")] = None,
    who: Annotated[str | None, typer.Option(help="Only this person or token.")] = None,
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    job: Annotated[int | None, typer.Option(min=1, max=2**63 - 1, help="Only this job.")] = None,
    what: Annotated[str | None, typer.Option(help="Only this action, e.g. job.submitted.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500)] = 50,
    as_json: AsJson = False,
) -> None:
    """Who did what: jobs, sources, tokens, sign-ins; newest first."""
    from planetwire.model.acts import AuditQuery
    from planetwire.supervise.commands import audit_cli

    with _settings("audit") as settings:
        asked = AuditQuery(audit_cli.since_of(since, datetime.now(UTC)), who, source, job, what)
        say(audit_cli.listing(settings, asked, limit, as_json=as_json))


app.add_typer(jobs, name="jobs")
app.add_typer(outbox, name="outbox")
app.add_typer(sources, name="sources")
app.add_typer(tokens, name="tokens")


def main() -> None:
    """The entry point. Sets the umask so that files of this process and its children are private."""
    os.umask(UMASK)
    app()
