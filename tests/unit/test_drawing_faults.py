"""The draw of places for planted faults: the same each time, and each a fault and not a typing error."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from draw_faults import PLACES, Place, anchored, draw, entry, places_of, stage_of

ROOT = Path(__file__).resolve().parents[2]
PYTHON = """
LIMIT = 20


def work(rows):
    '''A docstring is no call.'''
    log.info("nor is this one", rows)
    if rows and len(rows) < LIMIT:
        first(rows)
        second(rows)
"""
SQL = """select id from jobs
where status = 'queued'
    and source = $1
order by id desc
for update skip locked
"""
TYPESCRIPT = """export const MOST = 50;
// a && b is no code
export function take(rows: Row[]): void {
  if (rows.length >= MOST) return;
  this.#first(rows);
  this.#second(rows);
}
"""


def found(tmp_path: Path, name: str, text: str) -> set[tuple[str, str]]:
    """What may be planted into a file, as (kind, the changed lines)."""
    (tmp_path / name).write_text(text)
    return {(place.kind, anchored(text, place)[1].strip()) for place in places_of(tmp_path, name)}


def test_the_places_of_python_are_operators_bounds_orders_and_calls(tmp_path: Path) -> None:
    assert found(tmp_path, "a.py", PYTHON) == {
        ("bound", "LIMIT = 2000"),
        ("comparison", "if rows and len(rows) <= LIMIT:"),
        ("connective", "if rows or len(rows) < LIMIT:"),
        ("negated", "if not (rows and len(rows) < LIMIT):"),
        ("dropped", "pass"),
        ("order", "second(rows)\n        first(rows)"),
    }


def test_the_places_of_sql_are_conditions_comparisons_and_locks(tmp_path: Path) -> None:
    changed = found(tmp_path, "a.sql", SQL)
    assert ("comparison", "order by id asc") in changed
    assert {kind for kind, text in changed if text == ""} == {"condition"}


def test_the_places_of_typescript_leave_comments_alone(tmp_path: Path) -> None:
    assert found(tmp_path, "a.ts", TYPESCRIPT) == {
        ("bound", "export const MOST = 5000;"),
        ("comparison", "if (rows.length > MOST) return;"),
        ("negated", "if (!(rows.length >= MOST)) return;"),
        ("dropped", ";"),
        ("order", "this.#second(rows);\n  this.#first(rows);"),
    }


@pytest.fixture(scope="module")
def drawn() -> list[Place]:
    return draw(ROOT, 4 * len(PLACES), 7)


def test_a_seed_draws_the_same_places_from_every_stage(drawn: list[Place]) -> None:
    assert draw(ROOT, 4 * len(PLACES), 7) == drawn
    assert [stage_of(place.file) for place in drawn] == [*PLACES] * 4
    assert draw(ROOT, len(PLACES), 8) != drawn[: len(PLACES)]


def test_a_drawn_place_has_a_text_of_its_own_and_still_is_a_program(drawn: list[Place]) -> None:
    for place in drawn:
        text = (ROOT / place.file).read_text(encoding="utf-8")
        find, replace = anchored(text, place)
        assert text.count(find) == 1 and find != replace, entry(ROOT, place)
        if place.file.endswith(".py"):
            ast.parse(text.replace(find, replace))
