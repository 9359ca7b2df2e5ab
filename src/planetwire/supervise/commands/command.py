"""Shared by all commands: settings, logging, and errors printed as one line each for problem and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer

from planetwire.errors import BackendError, PlanetwireError
from planetwire.log import configure_logging, get_logger
from planetwire.settings import Settings, load_settings
from planetwire.text.printable import printable_lines

log = get_logger()

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]

# Long-running commands that write a log, where tracebacks belong.
LASTING = frozenset({"up", "demo", "web", "work", "relay", "collect"})


@contextmanager
def opened(role: str, **overrides: Any) -> Iterator[Settings]:
    """Settings and logging for one command; an error becomes one line, its remedy another, and exit 1."""
    settings: Settings | None = None
    try:
        settings, ignored = load_settings(**overrides)
        configure_logging(settings.log_format, settings.log_level, role=role)
        if ignored:
            log.warning("settings.service_links.ignored", names=ignored)
        yield settings
    except PlanetwireError as error:
        _end(error, error.message, _advice(settings) if settings and isinstance(error, BackendError) else None)
    except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError):
        raise
    except Exception as error:
        if settings is None or role in LASTING or settings.log_level == "debug":
            raise
        if isinstance(error, OSError):  # a full disk, a file that is not there
            _end(error, str(error), None)
        _end(error, f"an error of ours: {error!r}", "PLANETWIRE_LOG_LEVEL=debug shows where; please report it")


def say(text: str, *, err: bool = False) -> None:
    """Print a command's output. Text of feeds must not control the terminal, and a lone surrogate must not crash."""
    typer.echo(printable_lines(text), err=err)


def _end(error: Exception, message: str, advice: str | None) -> NoReturn:
    say(f"planetwire: {message}", err=True)
    if advice is not None:
        say(f"  → {advice}", err=True)
    raise typer.Exit(1) from error


def _advice(settings: Settings) -> str:
    """The remedy for a database that does not answer."""
    if settings.database_url is None:
        return f"`planetwire doctor` says what is broken; the server's own log is {settings.data_dir / 'postgres.log'}"
    return (
        "is that server up, and is PLANETWIRE_DATABASE_URL right?"
        " An address looks like postgresql://user:password@host:5432/name"
    )
