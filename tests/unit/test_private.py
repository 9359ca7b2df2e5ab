"""A file that is made once: whole or not at all, and the first one stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from planetwire import private
from planetwire.private import write_once


def test_the_first_text_stays_and_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "one"
    write_once(file, "first")
    write_once(file, "second")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("first", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["one"]


def test_a_write_that_breaks_off_leaves_no_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, or a process that is killed: whoever asks next writes it."""

    def broken(path: Path, text: str) -> None:
        path.write_text(text[:2])
        raise OSError("no space left")

    file = tmp_path / "one"
    with monkeypatch.context() as full:
        full.setattr(private, "write_private", broken)
        with pytest.raises(OSError, match="no space"):
            write_once(file, "first")
    assert not file.exists()
    write_once(file, "first")
    assert file.read_text() == "first"
