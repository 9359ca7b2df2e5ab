"""What commands print of a feed's text: no terminal obeys it, and JSON stays JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from job_rows import a_job
from planetwire.cli import app
from planetwire.errors import BackendError, NotFound
from planetwire.model.finding import Finding, step
from planetwire.supervise import doctor
from planetwire.supervise.commands import jobs_text, sources_cli
from planetwire.supervise.commands.command import opened, say

NASTY = "a\x1b[2J\x9b31m\u202eb\x00\r\nplanetwire: forged \ud800"
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def shown(text: str, capsys: pytest.CaptureFixture[str]) -> str:
    say(text)
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.splitlines())
    return out


def test_tables_of_jobs_show_texts_of_feeds_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    made = a_job(1, source=NASTY, error_code="bad_body", error=NASTY, sample=NASTY, message=NASTY)
    for text in (
        jobs_text.listing([made], NOW, {}),
        jobs_text.dead_listing([made], NOW),
        jobs_text.card(made, NOW, {}),
    ):
        assert not any(line.startswith("planetwire:") for line in shown(text, capsys).splitlines())


def test_the_table_of_sources_shows_errors_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    record = {
        "source": "usgs", "enabled": True, "interval_s": 60, "next_run_at": None, "last_success_at": None,
        "rejects": 0, "last_error_code": "bad_body", "last_error": NASTY,
    }  # fmt: skip
    assert "forged" in shown(sources_cli.table([record], NOW), capsys)


def test_doctor_shows_what_a_feed_said(capsys: pytest.CaptureFixture[str]) -> None:
    found = step("facts", "Feeds bring facts", NASTY, [Finding("feed_failed", NASTY)])
    assert "forged" in shown(doctor.render([found]), capsys)


def test_advice_about_the_database_is_given_for_a_database_that_does_not_answer_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error is one line; a second one only where there is something to be done about it."""
    with pytest.raises(typer.Exit), opened("jobs", data_dir=tmp_path):
        raise NotFound("there is no job 7", code="unknown_job")
    assert capsys.readouterr().err == "planetwire: there is no job 7\n"
    with pytest.raises(typer.Exit), opened("jobs", data_dir=tmp_path):
        raise BackendError("PostgreSQL does not answer")
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_parse_prints_json_whatever_the_body_holds(tmp_path: Path) -> None:
    body = {"type": "FeatureCollection", "features": [{"id": NASTY, "properties": {"mag": NASTY}}, NASTY]}
    file = tmp_path / "body"
    file.write_text(json.dumps(body))
    for source in ("usgs_quakes", "celestrak_gp"):
        result = CliRunner().invoke(app, ["parse", source, str(file)])
        assert result.exit_code in (0, 1), result.output
        assert all(line.isprintable() for line in result.output.splitlines())
        if result.exit_code == 0:
            assert {"rows", "rejects", "complete"} <= json.loads(result.stdout).keys()
