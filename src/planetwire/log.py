"""structlog set-up. Event names are `<area>.<noun>.<past verb>`, details are keywords.

Invariant: whatever a value holds, a log entry is one line, without control characters, and bounded. Records of other
libraries, through Python's own `logging`, are treated alike.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO, cast

import structlog

from planetwire.text.printable import printable

VALUE_MAX = 1_000  # characters of one value
DIGITS_MAX = 60  # of an integer; Python refuses to print thousands of digits
TRACE_LINES_MAX = 40  # the last lines of a traceback; only our own bugs cause one, never input
TRACE_LINE_MAX = 300
TRACES = ("exception", "stack")


class _Stderr:
    """The current standard error: it may be replaced, and the replacement closed."""

    def write(self, text: str) -> object:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


class _Forward(logging.Handler):
    """Forwards records of other libraries to our log."""

    def emit(self, record: logging.LogRecord) -> None:
        """A record that cannot be formatted is still logged, by its logger's name."""
        try:
            text = record.getMessage()
        except Exception as error:
            text = f"a record without words: {error!r}"
        facts: dict[str, object] = {"logger": record.name, "text": text.rstrip()}
        if record.exc_info and record.levelno >= logging.ERROR:
            facts["exc_info"] = record.exc_info
        elif record.exc_info:  # a warning is not our bug: the error's text suffices
            facts["error"] = repr(record.exc_info[1])
        get_logger().log(record.levelno, "log.library.noted", **facts)


def configure_logging(fmt: str, level: str, **bound: Any) -> None:
    """Console or JSON lines on stderr; `bound` (such as role) is added to every line."""
    structlog.configure(
        processors=processors(fmt, colours=sys.stderr.isatty()),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Stderr())),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**bound)
    root = logging.getLogger()
    root.handlers = [_Forward()]
    root.setLevel(logging.WARNING)


def processors(fmt: str, *, colours: bool) -> list[Any]:
    """The chain that turns an event into its line."""
    renderer: Any = (
        structlog.processors.JSONRenderer()  # ASCII, everything else escaped
        if fmt == "json"
        else structlog.dev.ConsoleRenderer(colors=colours)
    )
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _bounded,
        renderer,
    ]


def _bounded(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {key: _trace(value) if key in TRACES else _plain(value) for key, value in event.items()}


def _plain(value: object) -> object:
    """The value itself if short and safe; else as truncated text."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 10**DIGITS_MAX else f"a number of more than {DIGITS_MAX} digits"
    if isinstance(value, str):
        return printable(value, VALUE_MAX)
    try:
        text = repr(value)  # escapes unprintable characters
    except Exception as error:  # such as nested a thousand deep
        return f"a {type(value).__name__} that cannot be shown: {type(error).__name__}"
    return value if len(text) <= VALUE_MAX and isinstance(value, list | dict | tuple) else printable(text, VALUE_MAX)


def _trace(value: object) -> str:
    """Its last lines, indented so that none can be mistaken for a log entry."""
    lines = str(value).splitlines()
    more = len(lines) - TRACE_LINES_MAX
    shown = [f"({more} lines more above)"] if more > 0 else []
    shown += [printable(line, TRACE_LINE_MAX) for line in lines[-TRACE_LINES_MAX:]]
    return "\n".join(f"    {line}" for line in shown)


def get_logger() -> Any:
    """The process's logger; call it at module level."""
    return structlog.get_logger()
