"""How the outcome of a planted fault is judged and kept."""

from __future__ import annotations

from pathlib import Path

import fault_table
import pytest
from fault_copy import Ran, _outcome, _pytest_report
from fault_list import Fault, Named
from fault_table import Outcome

ONE, OTHER = Named(1, "tests/unit/test_a.py", "test_one"), Named(1, "tests/unit/test_a.py", "test_other")
REPORT = """<testsuites><testsuite>
<testcase classname="tests.unit.test_a" name="test_one[1]"/>
<testcase classname="tests.unit.test_a" name="test_one[2]"><failure message="no"/></testcase>
<testcase classname="tests.unit.test_a" name="test_other"><skipped/></testcase>
</testsuite></testsuites>"""


def fault(name: str, **more: str) -> Fault:
    values = {"file": "a.py", "find": "a < b", "replace": "a <= b", "what": "a word", "origin": "drawn"}
    return Fault(name=name, lines=("S1",), **values | more)


def test_a_fault_has_exactly_one_place() -> None:
    assert fault("x").planted("if a < b:\n") == "if a <= b:\n"
    for text in ("", "a < b and a < b"):
        with pytest.raises(ValueError, match="occurs"):
            fault("x").planted(text)
    with pytest.raises(ValueError, match="changes nothing"):
        fault("x", replace="a < b").planted("a < b")


def test_a_test_is_red_with_any_of_its_parameters_and_a_skipped_one_is_neither(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    green, red = _pytest_report(tmp_path / "report.xml", [ONE, OTHER])
    assert _outcome([ONE, OTHER], "", 1, green, red) == Ran(frozenset(), (str(ONE),), False, "")


def test_what_fails_before_any_test_is_the_first_ones_and_what_takes_too_long_is_told_apart() -> None:
    assert _outcome([ONE], "ImportError", 4, [], []).red == (str(ONE),)
    assert _outcome([ONE], "", 0, [], []).red == ()
    assert _outcome([ONE], "", None, [], []) == Ran(frozenset(), (), True, "")
    assert _outcome([ONE], "Failed: Timeout (>120.0s)", 1, [], [str(ONE)]).hung


def test_a_run_of_some_faults_leaves_the_rows_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_table, "PAGE", tmp_path / "page.md")
    faults = [fault("one"), fault("two"), fault("same", equivalent="nobody looks there at all")]
    fault_table.write(faults, {"one": Outcome("caught", str(ONE))})
    assert fault_table.kept()["two"] == Outcome("not run", "")
    fault_table.write(faults, {"two": Outcome("survived", "")})
    assert fault_table.kept() == {
        "one": Outcome("caught", str(ONE)),
        "two": Outcome("survived", ""),
        "same": Outcome("equivalent", ""),
    }
    assert "3 faults: 1 caught, 0 hung, 1 survived, 0 not run, 1 equivalent" in (tmp_path / "page.md").read_text()
