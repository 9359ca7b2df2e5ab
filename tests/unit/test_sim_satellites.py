"""The simulated GP provider: what it writes, and that its objects fly."""

from __future__ import annotations

import csv
import math
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sgp4 import omm
from sgp4.api import Satrec, jday
from sgp4.io import verify_checksum

from planetwire.demo.providers.answer import Answer, Query
from planetwire.demo.providers.omm import KEYS, classic, number
from planetwire.demo.providers.orbits import LAUNCH_SIZE, SHELLS, Shell, designator_of, sidereal_deg
from planetwire.demo.providers.satellites import NOTHING, Satellites, issue_of

NOW_S = datetime(2026, 3, 20, 12, 0, 30, tzinfo=UTC).timestamp()
TWO_HOURS_S = 7_200
Row = dict[str, Any]


@pytest.fixture(scope="module")
def provider() -> Satellites:
    return Satellites(1)


def ask(provider: Satellites, now_s: float = NOW_S, conditional: bool = False, **values: str) -> Answer:
    return provider.answer(Query(values, "127.0.0.1", conditional), now_s)


def active(provider: Satellites, now_s: float = NOW_S) -> list[Row]:
    rows: list[Row] = orjson.loads(ask(provider, now_s, group="active", format="json").body)
    return rows


@pytest.fixture(scope="module")
def rows(provider: Satellites) -> list[Row]:
    return active(provider)


def satrec(row: Row) -> Satrec:
    satellite = Satrec()
    omm.initialize(satellite, {key: str(value) for key, value in row.items()})
    return satellite


def place_km(satellite: Satrec, at_s: float) -> tuple[float, float, float] | None:
    at = datetime.fromtimestamp(at_s, UTC)
    error, place, _ = satellite.sgp4(*jday(at.year, at.month, at.day, at.hour, at.minute, at.second))
    return None if error else place


def shell_of(row: Row) -> Shell | None:
    return next((one for one in SHELLS if 0 <= row["NORAD_CAT_ID"] - one.first_id < one.count), None)


def test_active_group_is_omm_json_as_the_provider_writes_it(provider: Satellites, rows: list[Row]) -> None:
    body = ask(provider, group="active", format="json").body
    assert len(rows) >= 12_000
    assert body.startswith(b'[{"OBJECT_NAME":"') and body.endswith(b"}]\r\n") and body.count(b"\n") == 1
    assert all(tuple(row) == KEYS for row in rows)
    assert all(len(row["EPOCH"]) == 26 and row["EPOCH"][19] == "." for row in rows)
    assert {type(row[key]) for row in rows for key in KEYS[3:9]} <= {float, int}
    assert len({row["NORAD_CAT_ID"] for row in rows}) == len(rows)
    assert all(0 <= row[key] < 360 for row in rows for key in ("RA_OF_ASC_NODE", "ARG_OF_PERICENTER", "MEAN_ANOMALY"))


def test_ids_above_five_digits_and_empty_designators_occur(rows: list[Row]) -> None:
    ids = [row["NORAD_CAT_ID"] for row in rows]
    assert sum(one > 99_999 for one in ids) > 2_000
    assert max(ids) < 340_000, "sgp4's own OMM reader takes no more"
    assert 1 <= sum(row["OBJECT_ID"] == "" for row in rows) < 60


def test_fleet_has_every_kind_of_orbit(rows: list[Row]) -> None:
    motion = [row["MEAN_MOTION"] for row in rows]
    elliptic = [row for row in rows if row["ECCENTRICITY"] > 0.6]
    assert sum(m > 14 for m in motion) > 9_000, "low orbits"
    assert sum(1.6 < m < 2.2 for m in motion) > 100, "navigation"
    assert sum(0.99 < m < 1.01 for m in motion) > 500, "geostationary"
    assert sum(abs(row["INCLINATION"] - 63.4) < 3 for row in elliptic) > 30, "Molniya"
    assert sum(row["INCLINATION"] < 15 for row in elliptic) > 80, "transfer orbits"
    assert {25_544, 48_274} <= {row["NORAD_CAT_ID"] for row in rows}


def test_records_propagate_inside_their_shells(rows: list[Row]) -> None:
    """Of all records at three times at least 99.9 % propagate, and each lies in its shell's range of height."""
    failed = outside = 0
    for row in rows:
        satellite, shell = satrec(row), shell_of(row)
        for hours in (0, 13, 48):
            place = place_km(satellite, NOW_S + hours * 3_600)
            if place is None:
                failed += 1
            elif shell is not None:
                height_km = math.dist(place, (0, 0, 0)) - 6_378.135
                margin_km = 2.5 * shell.perigee_spread_km + 30
                low_km = max(shell.perigee_km - margin_km, 240)
                outside += not low_km <= height_km <= shell.apogee_km + margin_km
    assert failed <= 3 * len(rows) / 1_000
    assert outside == 0


def test_geostationary_objects_keep_their_longitude(provider: Satellites) -> None:
    def longitudes(now_s: float) -> dict[int, float]:
        out = {}
        for row in orjson.loads(ask(provider, now_s, group="geo", format="json").body):
            place = place_km(satrec(row), now_s)
            assert place is not None
            out[row["NORAD_CAT_ID"]] = (math.degrees(math.atan2(place[1], place[0])) - sidereal_deg(now_s)) % 360
        return out

    first, later = longitudes(NOW_S), longitudes(NOW_S + 2 * 86_400 + 5_000)
    drift = [abs((later[one] - first[one] + 180) % 360 - 180) for one in first]
    assert max(drift) < 1.5


def test_successive_issues_describe_the_same_motion(provider: Satellites) -> None:
    """A page that swaps old elements for new ones sees no jump: positions agree within tens of kilometres."""
    before = {row["NORAD_CAT_ID"]: row for row in active(provider)[::40]}
    after = {row["NORAD_CAT_ID"]: row for row in active(provider, NOW_S + TWO_HOURS_S)}
    changed = [one for one in before if one in after and one < 110_000 and after[one] != before[one]]
    assert len(changed) > 50
    for one in changed:
        old, new = (place_km(satrec(row), NOW_S + TWO_HOURS_S) for row in (before[one], after[one]))
        assert old is not None and new is not None
        assert math.dist(old, new) < 0.02 * math.dist(new, (0, 0, 0)), before[one]["OBJECT_NAME"]


def test_epochs_lie_within_the_past_day_and_new_issues_come_every_two_hours(provider: Satellites) -> None:
    issued_s = issue_of(NOW_S)
    for row in active(provider):
        epoch_s = datetime.fromisoformat(row["EPOCH"]).replace(tzinfo=UTC).timestamp()
        assert issued_s - 86_400 < epoch_s <= issued_s
    first = ask(provider, group="active", format="json")
    assert ask(provider, NOW_S + 60, group="active", format="json") is first
    later = ask(provider, issued_s + TWO_HOURS_S, group="active", format="json")
    assert (first.modified_s, later.modified_s) == (issued_s, issued_s + TWO_HOURS_S)
    assert later.etag != first.etag


def test_objects_appear_and_decay_over_time(provider: Satellites) -> None:
    now = {row["NORAD_CAT_ID"] for row in active(provider)}
    tomorrow = {row["NORAD_CAT_ID"] for row in active(provider, NOW_S + 86_400)}
    assert len(tomorrow - now) == len(now - tomorrow) == 4 * LAUNCH_SIZE
    assert now - tomorrow <= {one for one in now if one > 110_000}


def test_same_seed_and_time_give_the_same_bytes_and_another_seed_does_not() -> None:
    bodies = [ask(Satellites(seed), group="stations", format="json").body for seed in (7, 7, 8)]
    assert bodies[0] == bodies[1] != bodies[2]


def test_csv_kvn_and_xml_carry_the_same_record(provider: Satellites) -> None:
    wanted = orjson.loads(ask(provider, catnr="25544", format="json").body)[0]
    table = list(csv.DictReader(ask(provider, catnr="25544", format="csv").body.decode().splitlines()))
    assert len(table) == 1
    kvn = dict(
        line.split(" = ", 1)
        for line in ask(provider, catnr="25544", format="kvn").body.decode().split("\r\n")
        if " = " in line
    )
    xml = ask(provider, catnr="25544", format="xml").body.decode()
    for key, value in wanted.items():
        assert type(value)(table[0][key]) == type(value)(kvn[key]) == value
        assert f"<{key}>{table[0][key]}</{key}>" in xml


def test_two_line_sets_are_well_formed_and_leave_out_wide_ids(provider: Satellites, rows: list[Row]) -> None:
    lines = ask(provider, group="active", format="tle").body.decode().split("\r\n")[:-1]
    narrow = [row for row in rows if row["NORAD_CAT_ID"] <= 99_999]
    assert len(lines) == 3 * len(narrow)
    assert all(len(line) == 69 for number, line in enumerate(lines) if number % 3)
    for row, name, first, second in zip(narrow[::150], lines[::450], lines[1::450], lines[2::450], strict=True):
        verify_checksum(first, second)
        satellite = Satrec.twoline2rv(first, second)
        assert name.rstrip() == row["OBJECT_NAME"]
        assert satellite.satnum == row["NORAD_CAT_ID"]
        assert math.degrees(satellite.inclo) == pytest.approx(row["INCLINATION"])
        assert satellite.ecco == pytest.approx(row["ECCENTRICITY"])
        assert satellite.bstar == pytest.approx(row["BSTAR"])
        assert satellite.jdsatepoch + satellite.jdsatepochF == pytest.approx(_julian(row["EPOCH"]), abs=1e-8)


def _julian(epoch: str) -> float:
    return datetime.fromisoformat(epoch).replace(tzinfo=UTC).timestamp() / 86_400 + 2_440_587.5


def test_wide_ids_as_two_line_sets_get_the_sixteen_byte_404(provider: Satellites) -> None:
    answer = ask(provider, catnr="100001", format="tle")
    assert (answer.status, answer.body) == (404, NOTHING.encode())
    assert len(answer.body) == 16
    assert ask(provider, catnr="100001", format="json").status == 200
    assert ask(provider, catnr="99", format="json").body == NOTHING.encode()


def test_queries_by_group_name_and_designator_narrow_the_answer(provider: Satellites) -> None:
    assert len(orjson.loads(ask(provider, group="ONEWEB", format="json").body)) == 648
    assert [r["NORAD_CAT_ID"] for r in orjson.loads(ask(provider, intdes="1998-067", format="json").body)] == [25_544]
    assert len(orjson.loads(ask(provider, name="tianhe", format="JSON").body)) == 1
    assert ask(provider, format="json").status == 404
    assert ask(provider, group="active", format="pdf").status == 404


def test_strict_provider_refuses_a_repeat_within_an_issue() -> None:
    strict = Satellites(1, strict=True)
    asked = {"group": "stations", "format": "json"}
    assert ask(strict, **asked).status == 200
    refusal = ask(strict, NOW_S + 60, **asked)
    assert refusal.status == 403
    assert refusal.body.startswith(b"GP data has not updated since your last successful")
    assert ask(strict, NOW_S + 60, conditional=True, **asked).status == 200, "a conditional request may end in 304"
    assert ask(strict, issue_of(NOW_S) + TWO_HOURS_S, **asked).status == 200


@pytest.mark.parametrize(
    ("value", "json_text", "csv_text"),
    [
        (0.0, "0", "0"),
        (5e-7, "5.0e-7", ".5E-6"),
        (-2.218e-5, "-2.218e-5", "-.2218E-4"),
        (9.4634e-5, "9.4634e-5", ".94634E-4"),
        (0.0001413, "0.0001413", ".1413E-3"),
        (51.6461, "51.6461", "51.6461"),
        (98.0, "98", "98"),
        (0.0125362, "0.0125362", ".0125362"),
    ],
)
def test_numbers_are_printed_as_the_provider_prints_them(value: float, json_text: str, csv_text: str) -> None:
    assert (number(value), classic(value)) == (json_text, csv_text)


@given(st.floats(-1e6, 1e6).map(lambda value: round(value, 7)))
def test_printed_numbers_read_back_exactly(value: float) -> None:
    assert orjson.loads(number(value)) == value
    assert float(classic(value)) == pytest.approx(value, rel=1e-6)


def test_designator_pieces_count_without_i_and_o() -> None:
    assert [designator_of(2022, 7, piece) for piece in (0, 8, 13, 23, 24)] == [
        "2022-007A", "2022-007J", "2022-007P", "2022-007Z", "2022-007AA",
    ]  # fmt: skip
