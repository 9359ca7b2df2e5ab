"""structlog set-up. Event names are `<area>.<noun>.<past verb>`, facts are keywords.

Invariant: whatever a value holds, a line of the log is one line, without control characters, and bounded. What other
libraries log by Python's own `logging` goes the same way.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO, cast

import structlog

from planetwire.text.printable import printable

VALUE_MAX = 1_000  # characters of one value
DIGITS_MAX = 60  # of a whole number; Python refuses to print some thousands
TRACE_LINES_MAX = 40  # of a traceback, the last ones: that of an error of ours, since input causes none
TRACE_LINE_MAX = 300
TRACES = ("exception", "stack")


class _Stderr:
    """Whatever standard error is at the moment: it may be replaced, and what replaced it closed."""

    def write(self, text: str) -> object:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


class _Forward(logging.Handler):
    """Records of other libraries, as lines of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        """A record that cannot be put into words is named all the same."""
        try:
            text = record.getMessage()
        except Exception as error:
            text = f"a record without words: {error!r}"
        facts: dict[str, object] = {"logger": record.name, "text": text.rstrip()}
        if record.exc_info and record.levelno >= logging.ERROR:
            facts["exc_info"] = record.exc_info
        elif record.exc_info:  # a warning is no fault of ours: what it was is enough
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
    """From the facts of one event to its line."""
    renderer: Any = (
        structlog.processors.JSONRenderer()  # ASCII, all else escaped
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
    """As it is, when that is short and safe; else as cut text."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 10**DIGITS_MAX else f"a number of more than {DIGITS_MAX} digits"
    if isinstance(value, str):
        return printable(value, VALUE_MAX)
    try:
        text = repr(value)  # escapes what cannot be printed
    except Exception as error:  # nested a thousand deep, for one
        return f"a {type(value).__name__} that cannot be shown: {type(error).__name__}"
    return value if len(text) <= VALUE_MAX and isinstance(value, list | dict | tuple) else printable(text, VALUE_MAX)


def _trace(value: object) -> str:
    """Its last lines, indented so that none can be taken for a line of the log."""
    lines = str(value).splitlines()
    more = len(lines) - TRACE_LINES_MAX
    told = [f"({more} lines more above)"] if more > 0 else []
    told += [printable(line, TRACE_LINE_MAX) for line in lines[-TRACE_LINES_MAX:]]
    return "\n".join(f"    {line}" for line in told)


def get_logger() -> Any:
    """The process's logger; call it at module level."""
    return structlog.get_logger()
