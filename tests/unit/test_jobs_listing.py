"""The list of jobs in a shell: one long name takes no other column's place."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from job_rows import a_job
from planetwire.model import JobStatus
from planetwire.supervise.commands.jobs_text import dead_listing, listing

NOW = datetime(2026, 5, 1, 0, 1, tzinfo=UTC)
LONG = "a_source_with_a_long_name_" * 4


def test_a_long_source_leaves_the_note_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # whatever terminal the tests are run from
    job = a_job(7, source=LONG, status=JobStatus.FAILED, error_code="transient", error="the provider does not answer")
    lines = listing([job], NOW, {}).splitlines()
    assert len(lines) == 2, lines
    assert "[transient] the provider does not answer" in lines[1] and "a_source_with_a_long_name_a…" in lines[1]
    assert "the provider does not answer" in dead_listing([job], NOW).splitlines()[1]
