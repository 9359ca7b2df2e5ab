"""The Weather Center's JSON and CSV forms, and the patches made of rows."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from planetwire.cities import CITIES
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.registry import observed_sources
from planetwire.datasets.weather_stations.feed_metar import AwcMetar
from planetwire.errors import FeedError
from planetwire.model import Parsed

SOURCES = observed_sources()

AT = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)
OBSERVED_S = int(datetime(2026, 11, 29, 11, 51, tzinfo=UTC).timestamp())
RAW = "METAR KLGA 291151Z 33010KT 10SM FEW250 08/M03 A3022 RMK AO2 SLP234 T00781028"


def report(**changes: object) -> dict[str, Any]:
    return {
        "icaoId": "KLGA", "receiptTime": "2026-11-29T11:54:10.413Z", "obsTime": OBSERVED_S,
        "reportTime": "2026-11-29T12:00:00.000Z", "temp": 7.8, "dewp": -2.8, "wdir": 330, "wspd": 10,
        "visib": "10+", "altim": 1023.4, "metarType": "METAR", "rawOb": RAW, "lat": 40.78, "lon": -73.88,
    } | changes  # fmt: skip


def parsed(*records: object) -> Parsed:
    return AwcMetar().parse(orjson.dumps(records), AT)


def row(**changes: object) -> dict[str, Any]:
    result = parsed(report(**changes))
    assert [one.reason for one in result.rejects] == []
    assert isinstance(result.rows[0], dict)
    return result.rows[0]


def test_a_decoded_report_becomes_a_row() -> None:
    assert row() == {
        "station": "KLGA", "obs_time": "2026-11-29T11:51:00Z", "temp_c": 7.8, "dewpoint_c": -2.8, "precision": 0.1,
        "flags": [], "kind": "METAR", "corrected": False, "auto": False,
        "wind": {"dir_deg": 330, "speed": 10, "gust": None, "unit": "KT"}, "raw": RAW,
    }  # fmt: skip


def test_raw_with_and_without_its_prefix_give_the_same() -> None:
    """Report 31."""
    bare = row(rawOb=RAW.removeprefix("METAR "))
    assert {**bare, "raw": RAW} == row()
    assert row(rawOb=RAW.removeprefix("METAR "), metarType="SPECI")["kind"] == "SPECI"


def test_null_stays_null() -> None:
    """Report 35: a gap, never 0 °C."""
    one = row(temp=None, dewp=None, rawOb="METAR KLGA 291151Z 33010KT 10SM FEW250 A3022")
    assert (one["temp_c"], one["dewpoint_c"], one["precision"]) == (None, None, None)
    assert AwcMetar().patches([one])[0] == []


def test_a_decoded_value_fills_what_the_raw_text_lacks() -> None:
    one = row(rawOb="METAR KLGA 291151Z 33010KT 10SM FEW250 A3022")
    assert (one["temp_c"], one["precision"], one["flags"]) == (7.8, 0.1, [])
    assert row(rawOb=None)["temp_c"] == 7.8
    assert row(rawOb=None, temp=8)["precision"] == 1.0


def test_a_decoded_value_does_not_stand_in_for_a_malformed_group() -> None:
    """Report 18."""
    assert row(rawOb="METAR KLGA 291151Z 33010KT CAVOK 201/16 Q1018", temp=20.1)["temp_c"] is None


@pytest.mark.parametrize("temp", [999, -200, "NaN", True, {}])
def test_an_impossible_decoded_value_is_null(temp: object) -> None:
    assert row(rawOb=None, temp=temp)["temp_c"] is None


def test_float_noise_is_rounded_away() -> None:
    """Report 34."""
    assert row(rawOb=None, temp=-3.2999999999999545)["temp_c"] == -3.3


def test_a_nan_token_costs_its_value_only() -> None:
    """Report 68."""
    body = orjson.dumps([report(rawOb=None), report(icaoId="KJFK")]).replace(b'"temp":7.8', b'"temp":NaN', 1)
    result = AwcMetar().parse(body, AT)
    assert [one["temp_c"] for one in result.rows] == [None, 7.8]


@pytest.mark.parametrize("bad", [None, 7, {}, {"icaoId": "KLGA"}, {"obsTime": OBSERVED_S}])
def test_a_bad_record_costs_itself_only(bad: object) -> None:
    result = parsed(bad, report())
    assert (len(result.rows), len(result.rejects)) == (1, 1)


def test_a_report_of_the_future_is_flagged() -> None:
    assert row(obsTime=OBSERVED_S + 86_400)["flags"] == ["future"]


def test_a_later_receipt_replaces_an_earlier_one() -> None:
    late = report(
        receiptTime="2026-11-29T11:59:00.000Z", rawOb=RAW.replace("08/M03", "09/M03").replace("T00781028", "")
    )
    for order in ((late, report()), (report(), late)):
        assert [one["temp_c"] for one in parsed(*order).rows] == [9.0]


def as_csv(*records: dict[str, object], preamble: int | None = None) -> bytes:
    """The cache file's form: five lines, then a header whose cloud columns repeat."""
    names = ["raw_text", "station_id", "observation_time", "latitude", "longitude", "temp_c", "dewpoint_c",
             "sky_cover", "cloud_base_ft_agl", "sky_cover", "cloud_base_ft_agl", "metar_type"]  # fmt: skip
    out = io.StringIO()
    writer = csv.writer(out)
    count = len(records) if preamble is None else preamble
    out.write(f"No errors\nNo warnings\n9 ms\ndata source=metars\n{count} results\n")
    writer.writerow(names)
    for record in records:
        writer.writerow([record.get(name, "") for name in names])
    return out.getvalue().encode()


def test_the_csv_cache_is_read_below_its_preamble() -> None:
    record = {"raw_text": RAW, "station_id": "KLGA", "observation_time": "2026-11-29T11:51:00Z", "temp_c": "7.8"}
    result = AwcMetar().parse(as_csv(record), AT)
    assert result.complete
    assert list(result.rows) == [row()]


def test_a_csv_cache_with_fewer_rows_than_it_says_is_not_whole() -> None:
    """Report 75."""
    record = {"raw_text": RAW, "station_id": "KLGA", "observation_time": "2026-11-29T11:51:00Z"}
    assert not AwcMetar().parse(as_csv(record, preamble=2), AT).complete
    assert not AwcMetar().parse(as_csv(record)[:-1], AT).complete


@pytest.mark.parametrize("body", [b"<html>busy</html>", b'{"error": "x"}', b"<!DOCTYPE html><p>no"])
def test_what_is_no_answer_is_a_bad_body(body: bytes) -> None:
    """Report 77."""
    with pytest.raises(FeedError) as caught:
        AwcMetar().parse(body, AT)
    assert caught.value.code == "bad_body"


@pytest.mark.parametrize("body", [b"", b"[]", b"\n"])
def test_nothing_is_an_answer(body: bytes) -> None:
    result = AwcMetar().parse(body, AT)
    assert (list(result.rows), list(result.rejects), result.complete) == ([], [], True)


def test_rows_of_city_airports_become_patches_that_the_ingest_accepts() -> None:
    """S183."""
    patches, skipped = AwcMetar().patches([row(), row(icaoId="KXXX"), row(icaoId="KJFK", temp=None, rawOb=None)])
    assert patches == [
        {
            "type": "city_observation_patch.v1", "city": "new york", "source": "awc_metar",
            "obs_time": "2026-11-29T11:51:00Z",
            "payload": {"temp": 7.8, "station_code": "KLGA", "series_key": "metar", "unit": "celsius"},
        }
    ]  # fmt: skip
    assert skipped["no_city"] == 2
    assert normalise(SOURCES, patches[0], AT).payload["temp"] == 7.8


def test_one_patch_a_station_and_time_the_correction_wins() -> None:
    speci = row(metarType="SPECI", rawOb=RAW.replace("METAR", "SPECI").replace("08/M03", "09/M03")[:-10])
    corrected = row(rawOb=RAW.replace("291151Z", "291151Z COR").replace("T00781028", "T00821028"))
    patches, skipped = AwcMetar().patches([speci, corrected, row()])
    assert [patch["payload"]["temp"] for patch in patches] == [8.2]
    assert skipped["superseded"] == 2


def test_every_city_airport_is_asked_for_once() -> None:
    feed = AwcMetar()
    for hours in (2, 24):
        asked = [station for chunk in feed.chunks(hours) for station in chunk]
        assert sorted(asked) == sorted({city.icao for city in CITIES})
    url = feed.url("https://x.test/api/data/metar", ("KLGA", "EGLC"), 2)
    assert url == "https://x.test/api/data/metar?ids=KLGA,EGLC&format=json&hours=2"
