"""`planetwire check-source` and `parse` with a declaration: what they print, and how they end."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planetwire.cli import app

ROOT = Path(__file__).resolve().parents[2]
FULL = ROOT / "spec/sources/full.v1.yaml"
SERIES = ROOT / "spec/sources/series.v1.yaml"
QUAKES = ROOT / "src/planetwire/demo/samples/usgs_summary.geojson"


def run(*arguments: str, text: str | bytes | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), input=text)
    return result.exit_code, result.output


def test_a_good_declaration_is_told_so() -> None:
    code, said = run("check-source", str(FULL))
    assert code == 0 and said == "my_quakes: nothing is wrong with the declaration\n"


def test_rows_ranges_with_units_and_a_map_are_shown_of_a_body() -> None:
    code, said = run("check-source", str(FULL), "--against", str(QUAKES))
    assert code == 0, said
    assert said.startswith("my_quakes: 4 rows of 4 records\n") and "no rejects" in said
    assert "2 … 48.24 km" in said and "0.9 … 4.8" in said and "-146.968 … 152.76 deg" in said
    drawn = [line for line in said.splitlines() if line.startswith("  |")]
    assert len(drawn) == 18 and all(len(line) == 76 for line in drawn)
    # 61° N 147° W, and two in California in one place of the map.
    assert drawn[2][3 + 6] == "." and drawn[5][3 + 12] == ":"


def test_the_same_as_json_also_of_a_packed_body(tmp_path: Path) -> None:
    packed = tmp_path / "body.gz"
    packed.write_bytes(gzip.compress(QUAKES.read_bytes()))
    code, said = run("check-source", str(FULL), "--against", str(packed), "--json")
    record = json.loads(said)
    assert code == 0 and record["good"] and not record["faults"]
    body = record["body"]
    assert (body["rows"], body["records"], body["complete"]) == (4, 4, True)
    assert body["shown"][0]["external_key"] == "ci40529976" and body["shown"][0]["data"]["mag"] == 0.9
    ranges = {one["name"]: (one["min"], one["max"], one["unit"], one["values"], one["of"]) for one in body["fields"]}
    assert ranges["depth_km"] == (2.0, 48.24, "km", 4, 4) and ranges["status"][0] is None


def test_rejects_have_reasons_and_collisions_have_keys(tmp_path: Path) -> None:
    body = json.loads(QUAKES.read_bytes())
    body["features"] += [body["features"][0], {"type": "Feature", "id": "late", "properties": {}}]
    file = tmp_path / "body.geojson"
    file.write_text(json.dumps(body))
    code, said = run("check-source", str(FULL), "--against", str(file))
    assert code == 0 and "4 rows of 6 records" in said
    assert "rejects: 1 bad_value" in said and "record 5: no at: None" in said
    assert "1 keys that several records have, the newest counts: ci40529976 (2)" in said


def test_faults_name_line_column_and_the_nearest_word() -> None:
    text = FULL.read_text(encoding="utf-8").replace("\nurl:", "\nulr:")
    code, said = run("check-source", "-", text=text)
    assert code == 1 and "standard input:6:1: `ulr` is not known here [unknown_name]\n  → did you mean `url`?" in said
    code, said = run("check-source", "-", "--json", text=text)
    record = json.loads(said)
    assert (
        code == 1
        and not record["good"]
        and {(one["line"], one["code"]) for one in record["faults"]}
        == {
            (3, "missing"),
            (6, "unknown_name"),
        }
    )


@pytest.mark.parametrize("body", ["<html></html>", '{"features": [{"id": 1}]}', '{"error": 1}'])
def test_a_body_that_gives_nothing_is_a_failure(tmp_path: Path, body: str) -> None:
    file = tmp_path / "body"
    file.write_text(body)
    assert run("check-source", str(FULL), "--against", str(file))[0] == 1


def test_a_body_that_has_nothing_is_none(tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_text('{"features": []}')
    assert run("check-source", str(FULL), "--against", str(file))[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("no-such-file.yaml",), 1),
        ((str(FULL), "--against", "no-such-file"), 1),
        ((str(FULL), "--against", str(QUAKES), "--fetch"), 2),
        ((str(FULL), "--at", "noon"), 2),
        ((), 2),
    ],
)
def test_wrong_usage_is_2_and_a_file_that_cannot_be_read_is_1(arguments: tuple[str, ...], code: int) -> None:
    assert run("check-source", *arguments)[0] == code


def test_bytes_that_are_no_text_are_refused() -> None:
    code, said = run("check-source", "-", text=b"\xff\xfe\x00")
    assert code == 1 and "UTF-8" in said


def test_nothing_that_a_declaration_or_a_body_holds_controls_the_terminal(tmp_path: Path) -> None:
    text = FULL.read_text(encoding="utf-8").replace("\nurl:", '\n"u\\e[31m\\u202e":')
    _, said = run("check-source", "-", text=text)
    body = tmp_path / "body"
    body.write_text(QUAKES.read_text().replace("7 km N", "\\u001b[31m\\u202e"))
    said += run("check-source", str(FULL), "--against", str(body))[1]
    assert all(line.isprintable() for line in said.splitlines())


def test_parse_takes_a_declaration_in_place_of_a_source(tmp_path: Path) -> None:
    body = tmp_path / "body.csv"
    body.write_text(
        "Date time,Automatic Weather Station,Air Temperature(degree Celsius)\n202612011950,HK Observatory,18.6\n"
    )
    code, said = run("parse", str(SERIES), str(body))
    assert code == 0 and json.loads(said)["rows"][0]["obs_time"] == "2026-12-01T11:50:00Z"
