"""The marks by which a start knows which workers died."""

from __future__ import annotations

import json
from pathlib import Path

from planetwire.jobs.marks_file import WorkerMarks


def test_a_worker_that_is_killed_leaves_a_whole_mark(tmp_path: Path) -> None:
    """Q18: nothing of it waits in the memory of the process for an orderly end."""
    with WorkerMarks(tmp_path, boot="here").living("w1"):
        (mark,) = tmp_path.glob("*.worker")
        assert json.loads(mark.read_text())["worker"] == "w1"
