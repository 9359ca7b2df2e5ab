"""`docs/stream-faults.md` names a test for each fault; this keeps it from naming what is not there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| F(\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w./]+\.(?:py|ts|tsx))::(.+?)`")
PAGE = (ROOT / "docs" / "stream-faults.md").read_text(encoding="utf-8")
READS_SOURCE = re.compile(r"(?:readFile\w*|import\.meta\.glob)[^;]*\.tsx?[\"'`]|\.tsx?\?raw")


def test_every_fault_is_on_the_page_once() -> None:
    """F1–F37."""
    rows = ROW.findall(PAGE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 38))
    for number, _, held in rows:
        assert TEST.findall(held) and re.sub(TEST, "", held).replace("<br>", "") == "", f"F{number}: {held}"


@pytest.mark.parametrize(("file", "name"), sorted(set(TEST.findall(PAGE))))
def test_a_test_that_is_named_is_there(file: str, name: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        assert name in {function.name for function in functions}
    else:
        assert re.search(rf"\b(?:it|test)\(\s*\"{re.escape(name)}\"", text)


def test_tests_of_the_page_run_it_and_do_not_read_its_source() -> None:
    """F37."""
    files = [*(ROOT / "frontend" / "src").rglob("*.test.ts"), *(ROOT / "frontend" / "src").rglob("*.test.tsx")]
    assert len(files) > 30
    readers = {file.name for file in files if READS_SOURCE.search(file.read_text(encoding="utf-8"))}
    assert readers == {"boundary.test.ts"}, "which file may import which is the one thing that only the text shows"
