"""Lines of the log: bounded, one a record, and nothing in them that a terminal would obey."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import unicodedata
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from planetwire.log import TRACE_LINES_MAX, VALUE_MAX, processors
from planetwire.text.printable import printable, printable_lines

NASTY = "a\x1b[2Jb\x00c\x9b31md\u202ee\nf\rg\x7fh\ud800i\u2028j"


def render(fmt: str, **event: Any) -> str:
    facts: Any = {"event": "web.request.failed", **event}
    for step in processors(fmt, colours=False):
        facts = step(None, "error", facts)
    return str(facts)


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("fmt", ["console", "json"])
@given(value=st.one_of(st.text(), st.just(NASTY), st.lists(st.text()), st.dictionaries(st.text(), st.text())))
def test_no_value_puts_a_control_character_or_a_second_line_into_the_log(fmt: str, value: object) -> None:
    line = render(fmt, path=value)
    assert line.isprintable()
    line.encode()
    if fmt == "json":
        json.loads(line)


@pytest.mark.parametrize("fmt", ["console", "json"])
@pytest.mark.parametrize(
    "value",
    ["x" * 100_000, ["y" * 100_000], 10**5_000, deep(5_000), b"z" * 100_000, object()],
    ids=["text", "list", "number", "deep", "bytes", "object"],
)
def test_a_line_is_bounded_whatever_its_values_are(fmt: str, value: object) -> None:
    assert len(render(fmt, value=value)) < VALUE_MAX + 500


def test_a_traceback_is_bounded_and_no_line_of_it_can_be_taken_for_one_of_the_log() -> None:
    def down(left: int) -> None:
        if not left:
            raise ValueError(f"x\n2026-01-01T00:00:00Z [info     ] forged{NASTY}")
        down(left - 1)

    try:
        down(300)
    except ValueError as error:
        text = render("console", exc_info=error)
    first, *others = text.split("\n")
    assert "web.request.failed" in first
    assert 2 < len(others) <= TRACE_LINES_MAX + 1
    assert all(line.startswith("    ") and line.isprintable() for line in others)
    assert "forged" in text


def test_a_library_s_own_lines_are_lines_of_ours() -> None:
    script = (
        "import logging\nfrom planetwire.log import configure_logging\nconfigure_logging('console', 'warning')\n"
        "logging.getLogger('uvicorn.error').warning('bad\\x1b[31m %s', 'x\\ny')\n"
        "logging.getLogger('asyncio').error('gone', exc_info=ValueError('a\\x00b'))\n"
        "logging.getLogger('pool').warning('again', exc_info=ValueError('refused'))\n"
        "logging.getLogger('quiet').info('not told')\n"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout == ""
    lines = told.stderr.splitlines()
    assert "log.library.noted" in lines[0] and "u001b[31m x" in lines[0] and "uvicorn.error" in lines[0]
    assert "gone" in lines[1] and "u0000b" in lines[-2]
    assert "again" in lines[-1] and "refused" in lines[-1]
    assert all(line.isprintable() for line in lines) and "not told" not in told.stderr


def test_a_record_of_a_library_that_has_no_words_is_named() -> None:
    from planetwire.log import _Forward

    heard: list[Any] = []
    before = structlog.get_config()
    structlog.configure(processors=[lambda *event: heard.append(event[2]) or {}], cache_logger_on_first_use=False)
    try:
        _Forward().emit(logging.LogRecord("lib", logging.ERROR, "", 0, "%d", ("x",), None))
    except Exception:  # nothing is printed from an empty event
        pass
    finally:
        structlog.configure(**before)
    assert "without words" in heard[0]["text"]


@given(st.text(alphabet=st.characters()))
def test_what_is_printed_has_no_character_of_control_direction_or_half_a_pair(text: str) -> None:
    shown = printable(text)
    assert {unicodedata.category(c) for c in shown}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})
    assert printable_lines(text).count("\n") == text.count("\n")


@given(st.dictionaries(st.text(), st.text(alphabet=st.characters(exclude_categories=["Cs"]))))
def test_a_json_document_stays_one(value: dict[str, str]) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    assert json.loads(printable_lines(text)) == value
