"""The disk budget's order and its way back, without a disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planetwire.runtime.clock import SystemClock
from planetwire.wiring.budget import STEPS, DiskState
from planetwire.wiring.keeping import DiskKeeper, DiskStep, disk_step, read_state, write_state


class Disk:
    """Each step frees so many bytes, once."""

    def __init__(self, used: int, frees: dict[str, int]) -> None:
        self.used = used
        self.frees = dict(frees)
        self.done: list[str] = []

    async def measure(self) -> int:
        return self.used

    def steps(self) -> list[DiskStep]:
        return [
            DiskStep(name, self._tighten(name), lambda name=name: self.done.append(f"not {name}")) for name in STEPS
        ]  # type: ignore[misc]

    def _tighten(self, name: str) -> Any:
        async def tighten() -> None:
            self.done.append(name)
            self.used -= self.frees.pop(name, 0)

        return tighten


def keeper(disk: Disk) -> DiskKeeper:
    return DiskKeeper(100, disk.measure, disk.steps(), SystemClock())


async def test_steps_are_taken_in_their_order_and_no_more_than_are_needed() -> None:
    disk = Disk(95, {"bodies": 2, "job_logs": 2, "jobs": 10})
    state = await keeper(disk).look()
    assert disk.done == ["bodies", "job_logs", "jobs"]
    assert (state.level, state.word, state.tightened) == (3, "near", ("bodies", "job_logs", "jobs"))


async def test_a_step_is_taken_back_only_when_there_is_room_for_what_comes_back() -> None:
    disk = Disk(95, {"bodies": 10})
    kept = keeper(disk)
    await kept.look()
    for used in (89, 80, 75):
        disk.used = used
        assert (await kept.look()).level == 1, "between the two bounds nothing moves"
    disk.used = 74
    assert (await kept.look()).level == 0
    assert disk.done[-1] == "not bodies" and kept.state.word is None
    disk.used = 85
    assert (await kept.look()).word == "near", "warned of before anything is taken"
    assert disk.done[-1] == "not bodies"


async def test_steps_go_back_one_a_look_the_last_first() -> None:
    disk = Disk(130, {})
    kept = keeper(disk)
    assert (await kept.look()).word == "over" and disk.done == list(STEPS)
    disk.done.clear()
    disk.used = 10
    for _ in STEPS:
        await kept.look()
    assert [word for word in disk.done if word.startswith("not")] == [f"not {name}" for name in reversed(STEPS)]
    assert (kept.state.level, kept.state.word) == (0, None)


async def test_of_two_on_one_data_dir_one_looks(tmp_path: Path) -> None:
    first, second = (DiskKeeper(100, Disk(1, {}).measure, [], SystemClock(), file=tmp_path / "disk.json") for _ in "ab")
    assert first._mine() and not second._mine() and first._mine()
    first.release()
    assert second._mine()
    second.release()


@pytest.mark.parametrize(("used", "level", "code"), [(50, 0, None), (85, 0, "budget_near"), (120, 5, "budget_over")])
def test_doctor_says_what_the_budget_says(tmp_path: Path, used: int, level: int, code: str | None) -> None:
    (tmp_path / "run").mkdir()
    write_state(tmp_path / "run" / "disk.json", DiskState(100, used, level))
    assert read_state(tmp_path / "run" / "disk.json") == DiskState(100, used, level)
    found = disk_step(tmp_path)
    codes = [each["code"] for each in found["findings"] if each["code"].startswith("budget")]
    assert codes == ([code] if code else []) and "budget" in found["detail"]
    if level:
        assert "readings" in found["detail"], "what is kept for less time is named"
