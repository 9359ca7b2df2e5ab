"""The two pages on data flows name every product, the same places in the code, and only such as exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planetwire.datasets.registry import fact_feeds, layers, observation_feeds

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/data-flows.md", "docs/data-flows.zh.md")
QUOTED = re.compile(r"`([^`\n]+)`")


def quoted(page: str) -> list[str]:
    return QUOTED.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_product_has_its_flow(page: str) -> None:
    """S15."""
    names = set(quoted(page))
    assert {layer.id for layer in layers()} <= names
    assert {*fact_feeds(), *observation_feeds()} <= names
    assert all({table for table, _ in layer.feeds} <= names for layer in layers())
    assert (ROOT / page).read_text(encoding="utf-8").count("\n## ") == 6


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page: str) -> None:
    files = [name for name in quoted(page) if name.startswith(("src/", "frontend/"))]
    assert len(files) >= 15
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_both_languages_name_the_same_things() -> None:
    english, chinese = (sorted(quoted(page)) for page in PAGES)
    assert english == chinese
