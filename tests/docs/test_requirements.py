"""`docs/requirements-coverage.md` says where each requirement is held; this keeps it from saying what is not so."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = range(1, 230)
ROW = re.compile(r"^\| S(\d+) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
TEST = re.compile(r"`([\w./]+\.(?:py|ts|tsx))::(.+?)`")
SPAN = re.compile(r"\bS(\d+)(?:\s*[–-]\s*S?(\d+))?")


def rows() -> list[tuple[int, str, str]]:
    """Number, held by, remark."""
    page = (ROOT / "docs" / "requirements-coverage.md").read_text(encoding="utf-8")
    return [(int(number), held, remark) for number, held, remark in ROW.findall(page)]


def named_tests() -> list[tuple[str, str, frozenset[int]]]:
    """File, name and the numbers it holds, for each test on the page."""
    found: dict[tuple[str, str], set[int]] = {}
    for number, held, _ in rows():
        for file, name in TEST.findall(held):
            found.setdefault((file, name), set()).add(number)
    return [(file, name, frozenset(numbers)) for (file, name), numbers in found.items()]


def numbers_in(text: str) -> set[int]:
    """S24–S30 and S24-30 are all of them."""
    found: set[int] = set()
    for first, last in SPAN.findall(text):
        found.update(range(int(first), int(last or first) + 1))
    return found


def label(value: str | frozenset[int]) -> str:
    """The same in every process of a parallel run."""
    return value if isinstance(value, str) else ",".join(f"S{number}" for number in sorted(value))


@cache
def python_tests(file: str) -> dict[str, str]:
    """Docstring by name of each test of a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name: ast.get_docstring(node) or "" for node in functions if node.name.startswith("test_")}


def test_every_requirement_is_in_the_table_once() -> None:
    """S226: none is forgotten, and each is either held by a test or said to come later with what it waits for."""
    assert [number for number, _, _ in rows()] == list(NUMBERS)
    stated = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^- (S\d+) ", stated, re.MULTILINE)) == {f"S{number}" for number in NUMBERS}
    for number, held, remark in rows():
        if held == "later":
            assert remark, f"S{number}: later, but with what?"
        else:
            assert re.sub(TEST, "", held).replace("<br>", "") == "" and TEST.findall(held), f"S{number}: {held}"


@pytest.mark.parametrize(("file", "name", "numbers"), named_tests(), ids=label)
def test_a_number_is_named_by_each_test_that_holds_it(file: str, name: str, numbers: frozenset[int]) -> None:
    """S226: the test is there, and says itself what it is for."""
    if file.endswith(".py"):
        tests = python_tests(file)
        assert name in tests, f"no such test: {file}::{name}"
        assert numbers <= numbers_in(tests[name]), f"{file}::{name} does not name {numbers - numbers_in(tests[name])}"
        return
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"\b(?:it|test)\(\s*\"{re.escape(name)}\"", text), f"no such test: {file}::{name}"
    assert numbers <= numbers_in(text), f"{file} does not name {numbers - numbers_in(text)}"


def test_older_names_lead_to_modules_that_exist() -> None:
    """S19, S20, S158, S160, S162, S165, S170, S174, S176: whoever knows a part by its old name finds it."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## Older names")[2]
    cells = [row.split("|")[2] for row in page.splitlines() if row.startswith("| `")]
    named = [path for cell in cells for path in re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", cell)]
    assert len(named) >= 12
    for path in named:
        places = (ROOT / path, ROOT / "src" / "planetwire" / path)
        assert any(place.exists() for place in places), path
