"""What the diagnostic can say is explained where it says it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from planetwire.model.finding import KINDS, PAGE

ROOT = Path(__file__).resolve().parents[2]


def made() -> set[str]:
    """Codes of the findings that the code can make; `trigger_{…}` stands for three."""
    codes: set[str] = set()
    for file in (ROOT / "src" / "planetwire").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in KINDS and file.name != "finding.py":
                codes.add(str(node.value))
    return codes | {"trigger_missing", "trigger_disabled", "trigger_wrong"}


def test_every_finding_has_its_place_on_the_page_and_no_other_has() -> None:
    """S88."""
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    findings = page.partition("## Findings")[2].partition("\n## ")[0]
    headings = re.findall(r"^### (\S+)$", findings, re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert set(headings) == set(KINDS) == made()
    assert all(text.strip() for text in re.split(r"^### \S+$", findings, flags=re.MULTILINE)[1:])
