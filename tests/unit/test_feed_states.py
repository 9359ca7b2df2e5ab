"""What is remembered of feeds between two runs, written by two processes."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from planetwire.collect import feedstate_file
from planetwire.collect.feedstate_file import FeedStates


def test_a_change_is_made_while_nobody_else_can_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S183: from reading to writing it is locked: what the feed process and an operator write at one time is kept."""
    states = FeedStates(tmp_path)
    states.update("awc_metar", {"enabled": True})
    tried: list[str] = []
    write = feedstate_file.write_atomically

    def watched(path: Path, body: bytes) -> None:
        with (tmp_path / ".lock").open("wb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        tried.append(path.name)
        write(path, body)

    monkeypatch.setattr(feedstate_file, "write_atomically", watched)
    assert states.update("awc_metar", {"interval_s": 60}) == {"enabled": True, "interval_s": 60}
    assert tried == ["awc_metar.json"]
    with (tmp_path / ".lock").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
