"""The simulated weather service: rows and raw text that agree, a day curve, corrections, history."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import orjson
import pytest
from metar.Metar import Metar

from planetwire.cities import CITIES
from planetwire.demo.providers.answer import Query
from planetwire.demo.providers.metar_text import half_up
from planetwire.demo.providers.metars import CACHE_HEADER, ROWS_MAX, Metars
from planetwire.demo.providers.weather import climate_c, stations, weather

START_S = datetime(2026, 7, 20, 6, 0, tzinfo=UTC).timestamp()
HOUR_S = 3_600
NOW_S = START_S + 6 * HOUR_S + 30


@pytest.fixture(scope="module")
def service() -> Metars:
    return Metars(1, START_S)


def rows(service: Metars, now_s: float = NOW_S, **values: str) -> list[dict[str, Any]]:
    answer = service.answer(Query({"format": "json", **values}), now_s)
    found: list[dict[str, Any]] = orjson.loads(answer.body) if answer.status == 200 else []
    return found


@pytest.fixture(scope="module")
def every_report(service: Metars) -> list[dict[str, Any]]:
    """Of all stations in three hours."""
    return [row for icao in stations() for row in rows(service, ids=icao, hours="3")]


def test_every_city_airport_reports_each_minute(service: Metars) -> None:
    """S207."""
    assert {city.icao for city in CITIES} <= set(stations())
    assert len(stations()) >= 50
    for icao in ("KLGA", "ZSPD", "EGLC"):
        times = {row["obsTime"] for row in rows(service, ids=icao, hours="1")}
        assert len(times) == 60
        assert all(a - b == 60 for a, b in pairwise(sorted(times, reverse=True)))


def test_rows_have_the_services_keys_in_its_order(every_report: list[dict[str, Any]]) -> None:
    order = [
        "icaoId", "receiptTime", "obsTime", "reportTime", "temp", "dewp", "wdir", "wspd", "wgst", "visib", "altim",
        "slp", "qcField", "wxString", "metarType", "rawOb", "lat", "lon", "elev", "name", "cover", "clouds", "fltCat",
    ]  # fmt: skip
    for row in every_report:
        assert list(row) == [key for key in order if key in row]
        assert set(order) - set(row) <= {"wgst", "slp", "wxString"}
        assert row["receiptTime"].endswith("Z") and len(row["receiptTime"]) == 24
        assert row["fltCat"] in ("VFR", "MVFR", "IFR", "LIFR")
        assert not isinstance(row["temp"], float) or row["temp"] != int(row["temp"])


def test_raw_text_says_what_the_row_says(every_report: list[dict[str, Any]]) -> None:
    """Each report is read by a METAR parser; temperature, dew point and pressure agree with the decoded row."""
    checked = 0
    for row in every_report[::3]:
        seen = Metar(row["rawOb"], month=7, year=2026)
        assert seen.station_id == row["icaoId"]
        assert seen.time is not None and seen.time.replace(tzinfo=UTC).timestamp() == row["obsTime"]
        assert (seen.temp is None) == (row["temp"] is None)
        if seen.temp is not None:
            assert seen.temp.value() == pytest.approx(row["temp"])
            assert seen.dewpt.value() == pytest.approx(row["dewp"])
        assert seen.press.value("HPA") == pytest.approx(row["altim"], abs=0.1)
        assert seen.wind_speed.value("KT") == pytest.approx(row["wspd"], abs=0.6)
        checked += 1
    assert checked > 3_000


def test_american_reports_carry_tenths_and_others_whole_degrees(service: Metars) -> None:
    american = [row for row in rows(service, ids="KLGA,KDEN", hours="3") if row["temp"] is not None]
    assert any(isinstance(row["temp"], float) for row in american)
    for row in american:
        group = row["rawOb"].rsplit(" T", 1)[1]
        assert int(group[1:4]) / 10 * (-1 if group[0] == "1" else 1) == pytest.approx(row["temp"])
        assert f" {half_up(row['temp']):02d}/" in row["rawOb"]
    assert all(isinstance(row["temp"], int | None) for row in rows(service, ids="EGLC,ZSPD", hours="3"))
    assert all("MPS" in row["rawOb"] for row in rows(service, ids="ZSPD"))


def test_temperatures_below_zero_are_marked_in_both_groups() -> None:
    winter_s = datetime(2026, 1, 15, 12, 0, tzinfo=UTC).timestamp()
    cold = [row for row in rows(Metars(1, winter_s - HOUR_S), winter_s, ids="PANC,KORD,UNNT", hours="1") if row["temp"]]
    freezing = [row for row in cold if row["temp"] < 0]
    assert freezing
    assert all(" M" in row["rawOb"] for row in freezing)
    assert all(" T1" in row["rawOb"] for row in freezing if row["icaoId"].startswith(("K", "P")))


def test_specials_corrections_and_missing_values_occur(every_report: list[dict[str, Any]]) -> None:
    assert any(row["rawOb"].startswith("SPECI ") and row["metarType"] == "SPECI" for row in every_report)
    assert any(row["temp"] is None for row in every_report)
    corrected = [row for row in every_report if " COR " in row["rawOb"]]
    of_one_time = defaultdict(list)
    for row in every_report:
        of_one_time[row["icaoId"], row["obsTime"]].append(row)
    assert corrected
    for row in corrected:
        wrong = [one for one in of_one_time[row["icaoId"], row["obsTime"]] if one is not row]
        assert len(wrong) == 1
        assert wrong[0]["receiptTime"] < row["receiptTime"] and wrong[0]["temp"] != row["temp"]


def test_a_report_is_not_served_before_it_was_received(service: Metars) -> None:
    minute_s = START_S + 2 * HOUR_S
    at_once = rows(service, minute_s, ids=",".join(stations()))
    assert all(row["obsTime"] < minute_s for row in at_once)
    soon = rows(service, minute_s + 13, ids=",".join(stations()))
    assert all(row["obsTime"] == minute_s for row in soon)


def test_day_curve_peaks_in_the_local_afternoon_and_summer_is_warmer() -> None:
    for icao in ("KDEN", "LEMD", "ZBAA", "FAOR"):
        station = stations()[icao]
        midnight_s = START_S - (START_S + station.lon / 15 * HOUR_S) % 86_400
        by_hour = [0.0] * 24
        for day in range(30):
            for hour in range(24):
                by_hour[hour] += weather(1, station, midnight_s + day * 86_400 + hour * HOUR_S).temp_c / 30
        assert by_hour.index(max(by_hour)) in (13, 14, 15, 16)
        assert by_hour.index(min(by_hour)) in (1, 2, 3, 4, 5, 6)
        assert max(by_hour) - min(by_hour) > 4
    july_s, january_s = START_S, START_S + 183 * 86_400
    assert climate_c(stations()["KORD"], july_s) > climate_c(stations()["KORD"], january_s) + 20
    assert climate_c(stations()["NZAA"], july_s) < climate_c(stations()["NZAA"], january_s) - 5


def test_weather_changes_by_tenths_within_a_minute() -> None:
    for icao in ("KLGA", "WSSS", "UUWW"):
        temps = [weather(1, stations()[icao], START_S + 60 * minute).temp_c for minute in range(600)]
        assert max(abs(a - b) for a, b in pairwise(temps)) < 0.4


def test_history_before_the_start_has_routine_reports_only() -> None:
    at_start = Metars(1, START_S)
    american = rows(at_start, START_S, ids="KLGA", hours="24")
    assert len({row["obsTime"] for row in american}) == 24
    assert all(51 <= row["obsTime"] % HOUR_S // 60 <= 56 for row in american)
    assert len({row["obsTime"] for row in rows(at_start, START_S, ids="EGLC", hours="24")}) == 48
    ahead = rows(Metars(1, START_S - 86_400), START_S, ids="EGLC", hours="24")
    known = {(row["obsTime"], row["receiptTime"]): row for row in ahead}
    both = [
        row for row in rows(at_start, START_S, ids="EGLC", hours="3") if (row["obsTime"], row["receiptTime"]) in known
    ]
    assert len(both) >= 5
    assert all(known[(row["obsTime"], row["receiptTime"])] == row for row in both)


def test_answers_are_newest_first_and_capped(service: Metars) -> None:
    many = rows(service, ids=",".join(stations()), hours="3")
    assert len(many) == ROWS_MAX
    times = [row["obsTime"] for row in many]
    assert times == sorted(times, reverse=True)
    assert {row["icaoId"] for row in many} == set(stations())


def test_unknown_ids_are_left_out_and_nothing_at_all_is_204(service: Metars) -> None:
    assert [row["icaoId"] for row in rows(service, ids="KLGA,ZZZZ,klga")] == ["KLGA"]
    assert service.answer(Query({"ids": "ZZZZ", "format": "json"}), NOW_S).status == 204
    for wrong in (
        {},
        {"ids": "KLGA", "hours": "soon"},
        {"ids": "KLGA", "hours": "nan"},
        {"ids": "KLGA", "format": "pdf"},
    ):
        assert service.answer(Query(wrong), NOW_S).status == 400


def test_raw_form_is_one_report_a_line(service: Metars) -> None:
    lines = service.answer(Query({"ids": "KLGA,EGLC", "format": "raw"}), NOW_S).body.decode().splitlines()
    assert [line.split()[1] for line in lines if " COR " not in line] == ["KLGA", "EGLC"]


def test_cache_file_is_a_gzip_table_of_the_latest_reports(service: Metars) -> None:
    answer = service.cache_file(NOW_S)
    assert answer.content_type == "application/gzip"
    lines = gzip.decompress(answer.body).decode().splitlines()
    assert lines[0] == CACHE_HEADER
    table = list(csv.reader(lines))
    assert all(len(row) == len(table[0]) for row in table)
    by_station = {row[1]: dict(zip(table[0][:22], row, strict=False)) for row in table[1:]}
    assert set(by_station) == set(stations())
    latest = rows(service, ids="KLGA")[0]
    assert float(by_station["KLGA"]["temp_c"]) == latest["temp"]
    assert by_station["KLGA"]["raw_text"] == latest["rawOb"]
    assert service.cache_file(NOW_S) is answer


def test_cadence_is_whole_minutes() -> None:
    assert len({row["obsTime"] for row in rows(Metars(1, START_S, 300), ids="KLGA", hours="1")}) == 12
    for wrong in (30, 90, 0):
        with pytest.raises(ValueError, match="multiple of 60"):
            Metars(1, START_S, wrong)
