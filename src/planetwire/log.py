"""structlog set-up. Event names are `<area>.<noun>.<past verb>`, facts are keywords."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO, cast

import structlog


class _Stderr:
    """Whatever standard error is at the moment: it may be replaced, and what replaced it closed."""

    def write(self, text: str) -> object:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def configure_logging(fmt: str, level: str, **bound: Any) -> None:
    """Console or JSON lines on stderr; `bound` (such as role) is added to every line."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if fmt == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Stderr())),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**bound)


def get_logger() -> Any:
    """The process's logger; call it at module level."""
    return structlog.get_logger()
