"""Every code that a page can be answered with has words in both languages of the page."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "planetwire"
TEXTS = ROOT / "frontend" / "src" / "i18n"
# Answered to programs alone: whoever delivers readings, opens a stream by hand, starts a process, or scripts the feeds.
NOT_FOR_PAGES = {
    "already_running",
    "bad_cursor",
    "bad_json",
    "bad_key",
    "bad_lines",
    "bad_message",
    "bad_name",
    "bad_patch",
    "bad_replay_limit",
    "bad_time",
    "bus_failed",
    "heart_stopped",
    "invalid_obs_time",
    "invalid_series_key",
    "invalid_source",
    "invalid_temp",
    "invalid_unit",
    "migration_blocked",
    "migration_failed",
    "migration_too_long",
    "migration_waited",
    "name_taken",
    "no_acceptable_encoding",
    "no_observation",
    "no_patches",
    "no_record",
    "not_acceptable",
    "obs_time_out_of_range",
    "out_of_range",
    "port_in_use",
    "replay_window_exceeded",
    "schema_behind",
    "setup",
    "too_many_connections",
    "too_many_openings",
    "too_many_pushes",
    "too_many_runways",
    "too_many_tokens",
    "unknown_channel",
    "unknown_schema",
    "unknown_topic",
}
# The ledger's own verdicts, written by SQL, and the feeds' outcomes, which are an enumeration.
ELSEWHERE = {
    "deadline_exceeded",
    "incomplete_body",
    "mostly_rejected",
    "worker_lost",
    "auth_refused",
    "bad_body",
    "truncated",
    "transient",
    "not_found",
}


def _codes(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="code", value=ast.Constant(value=str() as code)):
                yield code
            case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str() as code)):
                yield code


def test_each_code_of_an_answer_has_words_in_both_languages() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if "demo" not in path.parts]
    found = {code for path in files for code in _codes(ast.parse(path.read_text()))}
    shown = (found - NOT_FOR_PAGES) | ELSEWHERE
    for language in ("en", "zh"):
        texts = json.loads((TEXTS / language / "codes.json").read_text())
        assert shown - texts.keys() == set(), (
            f"say in i18n/{language}/codes.json what they mean, or that no page is told"
        )


def test_no_code_is_kept_from_pages_that_nobody_answers_with() -> None:
    found = {code for path in PACKAGE.rglob("*.py") for code in _codes(ast.parse(path.read_text()))}
    assert NOT_FOR_PAGES - found == set()
