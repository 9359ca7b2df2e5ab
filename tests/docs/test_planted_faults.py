"""The list of planted faults fits the tree, and `docs/planted-faults.md` says what became of each."""

from __future__ import annotations

import re

import fault_list
import fault_table
import pytest
from draw_faults import PLACES, stage_of
from fault_list import Fault

FAULTS = fault_list.load()
LEAST = 80


def named(fault: Fault) -> str:
    return fault.name


def test_every_fault_has_its_place_and_its_tests() -> None:
    """S226: each text occurs once, each line names tests, no name is there twice."""
    assert fault_list.problems(FAULTS) == []


def test_the_lines_beyond_the_s_numbers_exist_and_so_do_their_tests() -> None:
    """S226: resolutions are those of the requirements; C1 … C8 are the contracts' sections, C9 is the page."""
    stated = (fault_list.ROOT / "spec" / "requirements.md").read_text(encoding="utf-8")
    contracts = (fault_list.ROOT / "docs" / "contracts.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| (Q\d+) \|", stated, re.MULTILINE)) | {"C9"}
    known |= {f"C{number}" for number in re.findall(r"^## (\d+)\. ", contracts, re.MULTILINE)}
    for line, tests in fault_list.coverage().items():
        if line.startswith("S"):
            continue  # see test_requirements.py
        assert line in known, line
        for test in tests:
            text = (fault_list.ROOT / test.file).read_text(encoding="utf-8")
            assert f"def {test.name}(" in text or f'("{test.name}"' in text, f"{line}: no such test: {test}"


def test_there_are_enough_of_them_and_every_stage_has_some() -> None:
    """S226."""
    assert len(FAULTS) >= LEAST
    assert {stage_of(fault.file) for fault in FAULTS} - {""} == set(PLACES)


@pytest.mark.parametrize("fault", FAULTS, ids=named)
def test_a_fault_says_what_it_is_and_what_it_breaks(fault: Fault) -> None:
    """S226: one that changes nothing that could be observed says why, in a line."""
    assert fault.what and "\n" not in fault.what + fault.equivalent and "|" not in fault.what
    assert len(fault.equivalent) == 0 or len(fault.equivalent) > 20


def test_the_page_has_a_row_for_each_and_no_survivor() -> None:
    """S226: `scripts/plant_faults.py` writes it."""
    told = fault_table.kept()
    assert list(told) == [fault.name for fault in FAULTS]
    assert [name for name, outcome in told.items() if outcome.kind == "survived"] == []
    assert {name for name, outcome in told.items() if outcome.kind == "equivalent"} == {
        fault.name for fault in FAULTS if fault.equivalent
    }
    tests = {fault.name: {str(test) for test in fault_list.tests_of(fault)} for fault in FAULTS}
    for name, outcome in told.items():
        assert not outcome.by or outcome.by in tests[name], f"{name}: {outcome.by} is not named for its lines"
