"""What every command shares: settings, logging, and the way an error of ours ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from planetwire.errors import PlanetwireError
from planetwire.log import configure_logging, get_logger
from planetwire.settings import Settings, load_settings

log = get_logger()

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


@contextmanager
def opened(role: str, **overrides: Any) -> Iterator[Settings]:
    """Settings and logging for one command; errors of ours become one line and exit 1."""
    try:
        settings, ignored = load_settings(**overrides)
        configure_logging(settings.log_format, settings.log_level, role=role)
        if ignored:
            log.warning("settings.service_links.ignored", names=ignored)
        yield settings
    except PlanetwireError as error:
        typer.echo(f"planetwire: {error.message}", err=True)
        raise typer.Exit(1) from error
