"""Whoever reads only the page on declared sources can write one: its examples work, and it names every word."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from declarations import AT, facts
from planetwire.declared.model import Condition, Csv, Declaration, FieldSpec, OwnLayer, Readings, Search, Table
from planetwire.declared.read import read
from planetwire.declared.units import UNITS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {name: (DOCS / name).read_text(encoding="utf-8") for name in ("declared-sources.md", "declared-sources.zh.md")}
EXAMPLES = [(name, text) for name, page in PAGES.items() for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]


@pytest.mark.parametrize(("page", "text"), EXAMPLES, ids=[f"{name}-{n}" for n, (name, _) in enumerate(EXAMPLES)])
def test_every_example_of_the_pages_is_a_good_declaration(page: str, text: str) -> None:
    assert read(text, name=page).source


def test_the_first_example_reads_the_body_that_is_shown_with_it() -> None:
    page = PAGES["declared-sources.md"]
    body = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert body is not None
    fact = facts(read(EXAMPLES[0][1]).feed.parse(json.dumps(json.loads(body[1])).encode(), AT))[0]
    assert (fact.external_key, fact.title, fact.lat, fact.data["free"]) == ("a1", "Main square", 48.137, 7)
    assert fact.observed_at is not None and fact.observed_at.minute == 58


def test_the_page_names_every_word_of_a_declaration_and_every_unit() -> None:
    page = PAGES["declared-sources.md"]
    words = {name for model in (Declaration, FieldSpec, Csv, Table, Search) for name in model.model_fields}
    words |= {name for model in (Condition, OwnLayer, Readings) for name in model.model_fields} - {"label"}
    for word in words - {"version"}:
        assert re.search(rf"(?<![\w]){word}(?!\w)", page), word
    known = set(re.findall(r"[^\s`]+", page[page.index("Known:") : page.index("| `format`, `zone`")]))
    assert set(UNITS) <= {word.strip("`,") for word in known}
