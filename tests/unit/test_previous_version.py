"""Where a clone does not have the previous version: one line at home, a failure in CI."""

from __future__ import annotations

from pathlib import Path

import pytest

import previous_version


@pytest.mark.parametrize(("ci", "ends"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_a_clone_without_it_says_how_to_get_it(
    ci: str, ends: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(previous_version, "commit", lambda: "0" * 40)
    with pytest.raises(ends, match=r"0000000 is not in this clone \(git fetch --unshallow origin main\)"):
        previous_version.unpack(tmp_path)


def test_the_line_names_a_commit_and_nothing_else() -> None:
    assert len(previous_version.commit()) == 40 and int(previous_version.commit(), 16)
