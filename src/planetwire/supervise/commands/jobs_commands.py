"""The commands `planetwire jobs …`: help texts and options; the implementations are in the other `jobs_*` files."""

from __future__ import annotations

from typing import Annotated

import typer

from planetwire.supervise.commands.command import AsJson, opened, say

ID_MAX = 2**63 - 1
INT_MAX = 2**31 - 1

jobs = typer.Typer(help="The job ledger.", no_args_is_help=True)

TaskId = Annotated[int, typer.Argument(min=1, max=ID_MAX, metavar="ID")]
TaskIds = Annotated[list[int] | None, typer.Argument(min=1, max=ID_MAX, metavar="ID…", show_default=False)]
OfSource = Annotated[str | None, typer.Option("--source", help="Only this source.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Delete data without being asked.")]
Limit = Annotated[int, typer.Option(min=1, max=500)]


@jobs.command("ls")
def ls(
    status: Annotated[
        str | None, typer.Option(help="queued, running, cancelling, completed, failed, cancelled")
    ] = None,
    dead: Annotated[bool, typer.Option("--dead", help="Only failed jobs that nobody has tried again.")] = False,
    source: OfSource = None,
    limit: Limit = 30,
    as_json: AsJson = False,
) -> None:
    """Newest jobs first; of a waiting one, why it waits."""
    from planetwire.supervise.commands import jobs_cli

    with opened("jobs") as settings:
        say(jobs_cli.ls(settings, status=status, dead=dead, source=source, limit=limit, as_json=as_json))


@jobs.command("dead")
def dead(source: OfSource = None, limit: Limit = 30, as_json: AsJson = False) -> None:
    """Failed jobs that nobody has tried again, with what was at fault."""
    from planetwire.supervise.commands import jobs_cli

    with opened("jobs") as settings:
        say(jobs_cli.dead(settings, source=source, limit=limit, as_json=as_json))


@jobs.command("show")
def show(
    task_id: TaskId,
    with_log: Annotated[bool, typer.Option("--log", help="Also the last lines of its worker.")] = False,
    as_json: AsJson = False,
) -> None:
    """One job in full, and who started, stopped and repeated it."""
    from planetwire.supervise.commands import jobs_cli

    with opened("jobs") as settings:
        say(jobs_cli.show(settings, task_id, with_log=with_log, as_json=as_json))


@jobs.command("submit")
def submit(
    task_type: Annotated[str, typer.Argument(help="collect, clear_data, clear_cache or earth_refresh")],
    source: Annotated[str | None, typer.Argument(help="What collect and clear_data work on.")] = None,
    layer: Annotated[str | None, typer.Option(help="Of clear_cache and earth_refresh: only this layer.")] = None,
    priority: Annotated[int, typer.Option(min=-INT_MAX, max=INT_MAX, help="Smaller runs first.")] = 100,
    key: Annotated[str | None, typer.Option("--key", help="Idempotency key.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Ask for work; a queued job of the same type and source is returned instead of a second one.

    clear_data says how many rows it would delete and asks; without a terminal it needs --yes.
    """
    from planetwire.supervise.commands import jobs_cli

    with opened("jobs") as settings:
        options = {"layer": layer, "priority": priority, "key": key, "yes": yes, "as_json": as_json}
        say(jobs_cli.submit(settings, task_type, source, **options))  # type: ignore[arg-type]


@jobs.command("cancel")
def cancel(task_id: TaskId, as_json: AsJson = False) -> None:
    """Stop a job; batches already committed stay."""
    from planetwire.supervise.commands import jobs_cli

    with opened("jobs") as settings:
        say(jobs_cli.cancel(settings, task_id, as_json=as_json))


@jobs.command("retry")
def retry(
    task_ids: TaskIds = None,
    dead: Annotated[bool, typer.Option("--dead", help="All dead jobs but clears, up to 1,000 a call.")] = False,
    source: Annotated[str | None, typer.Option("--source", help="With --dead: only this source.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Submit the work of ended jobs again; the same work waits once, however many jobs asked for it.

    Before a clear_data is repeated it says how many rows that deletes and asks; without a terminal it needs --yes.
    """
    from planetwire.supervise.commands import jobs_again

    if bool(task_ids) == dead:
        raise typer.BadParameter("name the jobs (`planetwire jobs retry 12 13`), or all dead ones with --dead")
    if source is not None and not dead:
        raise typer.BadParameter("--source goes with --dead")
    if yes and dead:
        raise typer.BadParameter("--dead leaves clears alone: name them by id to repeat them")
    with opened("jobs") as settings:
        if task_ids:
            shown, all_done = jobs_again.retry(settings, task_ids, yes=yes, as_json=as_json)
        else:
            shown, all_done = jobs_again.redrive(settings, source=source, as_json=as_json), True
        say(shown)
    if not all_done:
        raise typer.Exit(1)


@jobs.command("pause")
def pause(source: str, as_json: AsJson = False) -> None:
    """Let no collect or clear_data job of a source start; one that runs goes on."""
    from planetwire.supervise.commands import jobs_cli

    with opened("jobs") as settings:
        say(jobs_cli.pause(settings, source, True, as_json=as_json))


@jobs.command("resume")
def resume(source: str, as_json: AsJson = False) -> None:
    """Let the jobs of a paused source run again."""
    from planetwire.supervise.commands import jobs_cli

    with opened("jobs") as settings:
        say(jobs_cli.pause(settings, source, False, as_json=as_json))


@jobs.command("watch")
def watch(
    task_ids: TaskIds = None,
    source: OfSource = None,
    once: Annotated[bool, typer.Option("--once", help="One look, then end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Follow jobs until the named ones have ended (exit 0 if all completed, else 1), or until Ctrl-C.

    Looking on changes nothing: the jobs go on when this ends. Without a terminal, or with --json: a line a change.
    """
    from planetwire.supervise.commands import jobs_watch

    if task_ids and source is not None:
        raise typer.BadParameter("name jobs or a --source, not both")
    with opened("jobs") as settings:
        code = jobs_watch.watch(settings, task_ids or [], source=source, once=once, as_json=as_json)
    raise typer.Exit(code)
