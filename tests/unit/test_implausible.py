"""A value that nothing in the world has is a counted reject with a code, or null with one; so are foreign digits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from bodies import AT, METARS, RECORD
from planetwire.cities import BY_KEY
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.earthquakes.feed import UsgsQuakes
from planetwire.datasets.registry import observed_sources
from planetwire.datasets.satellites.feed import CelestrakGp
from planetwire.datasets.weather_stations.feed_metar import AwcMetar
from planetwire.errors import InputError
from planetwire.model import Fact, Parsed

SOURCES = observed_sources()

TIME_MS = 1_779_789_720_123
DEEP: Any = []
for _ in range(900):
    DEEP = [DEEP]


def wide(text: str) -> str:
    """With full-width digits, which Python takes for numbers as well."""
    return "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in text)


def quake(coordinates: list[Any] | None = None, key: Any = "us1", **changes: Any) -> Parsed:
    properties = {"time": TIME_MS, "updated": TIME_MS, "mag": 4.5, "place": "x", "ids": ",us1,"} | changes
    geometry = {"type": "Point", "coordinates": coordinates or [1, 2, 3]}
    feature = {"type": "Feature", "id": key, "properties": properties, "geometry": geometry}
    return UsgsQuakes().parse(json.dumps({"features": [feature]}).encode(), AT)


def satellite(**changes: Any) -> Parsed:
    return CelestrakGp().parse(json.dumps([RECORD | changes]).encode(), AT)


def metar(**changes: Any) -> Parsed:
    return AwcMetar().parse(json.dumps([METARS[0] | changes]).encode(), AT)


def codes(result: Parsed) -> list[str]:
    assert len(result.rows) + len(result.rejects) == 1
    return [one.code for one in result.rejects]


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"mag": 99}, "out_of_range"), ({"mag": 1e308}, "out_of_range"), ({"mag": -50}, "out_of_range"),
     ({"coordinates": [1, 2, 1e9]}, "out_of_range"), ({"coordinates": [1, 91, 3]}, "out_of_range"),
     ({"coordinates": [1e6, 2, 3]}, "out_of_range"), ({"time": TIME_MS / 1000}, "bad_time"),
     ({"time": TIME_MS * 1000}, "bad_time"), ({"time": DEEP}, "bad_time"), ({"key": "k" * 3_000}, "bad_key"),
     ({"key": "ü"}, "bad_key"), ({"key": DEEP}, "bad_key"), ({"place": "x" * 5_000}, "too_large")],
)  # fmt: skip
def test_a_quake_that_cannot_be_is_refused(changes: dict[str, Any], code: str) -> None:
    assert codes(quake(**changes)) == [code]


@pytest.mark.parametrize("status", ["deleted", "DELETED", " Deleted "])
def test_a_withdrawn_quake_is_a_tombstone_however_it_is_spelt(status: str) -> None:
    result = quake(status=status, mag=99)
    assert (list(result.rows), list(result.rejects), result.tombstones) == ([], [], {"us1"})


def test_an_update_time_of_no_year_does_not_win_over_the_real_one() -> None:
    old = {"id": "us1", "properties": {"time": TIME_MS, "updated": 1e308, "mag": 1}, "geometry": None}
    new = {"id": "us1", "properties": {"time": TIME_MS, "updated": TIME_MS + 1, "mag": 2}, "geometry": None}
    for pair in ([old, new], [new, old]):
        result = UsgsQuakes().parse(json.dumps({"features": pair}).encode(), AT)
        assert [row.data["mag"] for row in result.rows if isinstance(row, Fact)] == [2]


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [("MEAN_MOTION", 1e-200, "out_of_range"), ("BSTAR", 1e200, "out_of_range"),
     ("MEAN_MOTION_DOT", -1e9, "out_of_range"), ("REV_AT_EPOCH", 10**40, "bad_value"),
     ("REV_AT_EPOCH", 10**15, "out_of_range"), ("ELEMENT_SET_NO", -1, "out_of_range"),
     ("NORAD_CAT_ID", 10**40, "bad_key"), ("NORAD_CAT_ID", "0" * 5_000 + "1", "bad_key"),
     ("NORAD_CAT_ID", DEEP, "bad_key"), ("NORAD_CAT_ID", wide("1"), "bad_key"),
     ("MEAN_ANOMALY", wide("270"), "bad_value"), ("EPOCH", wide(RECORD["EPOCH"]), "bad_time"),
     ("EPOCH", DEEP, "bad_time"), ("EPOCH", "9999-01-01T00:00:00", "out_of_range"),
     ("INCLINATION", "1" * 50_000 + "x", "bad_value"), ("OBJECT_NAME", "x" * 5_000, "too_large"),
     ("CLASSIFICATION_TYPE", "x" * 5_000, "too_large")],
)  # fmt: skip
def test_elements_that_cannot_be_are_refused(name: str, value: Any, code: str) -> None:
    assert codes(satellite(**{name: value})) == [code]


def test_decoded_temperatures_and_times_are_ascii_and_of_our_days() -> None:
    raw = "KLGA 281101Z 00000KT 10SM A2992"
    assert metar(rawOb=raw, temp="12").rows[0]["temp_c"] == 12.0  # type: ignore[index]
    for temp in (wide("12"), "1_2", "1e1", "nan", "0x1F"):
        assert metar(rawOb=raw, temp=temp).rows[0]["temp_c"] is None  # type: ignore[index]
    assert metar(rawOb=wide("12/02").join(["KLGA 281101Z 00000KT 10SM ", " A2992"])).rows[0]["temp_c"] is None  # type: ignore[index]
    for time in (1_780_000_000_000, 5, -1e300, "0001-01-01T00:00:00+14:00", wide("2026-11-28T11:00:00Z")):
        assert codes(metar(rawOb="", obsTime=time)) == ["no_report"]
    assert codes(metar(icaoId="K" * 5_000, rawOb="")) == ["no_report"]


def test_a_wind_of_no_direction_or_speed_is_null_with_a_flag() -> None:
    for group in ("99912KT", "100999KT", "10010G999KT"):
        row: Any = metar(rawOb=f"KLGA 281101Z {group} 10SM 12/02 A2992").rows[0]
        assert (row["wind"], row["flags"], row["temp_c"]) == (None, ["wind_out_of_range"], 12.0)


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"temp": wide("21")}, "invalid_temp"), ({"temp": 1e308}, "invalid_temp"),
     ({"temp": 21, "obs_time": wide("1779789720")}, "invalid_obs_time"),
     ({"temp": 21, "obs_time": wide("2026-05-26T10:00:00Z")}, "invalid_obs_time"),
     ({"temp": 21, "obs_time": 1e30}, "obs_time_out_of_range")],
)  # fmt: skip
def test_a_push_with_digits_of_no_ascii_or_without_measure_is_refused(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        normalise(SOURCES, {"city": next(iter(BY_KEY)), "changes": changes}, datetime(2026, 5, 26, 10, 3, tzinfo=UTC))
    assert caught.value.code == code


@pytest.mark.parametrize("escape", ["\\ud800", "\\udfff x", "a\\ud800\\ud800"])
def test_what_is_no_unicode_is_a_replacement_character_wherever_it_stands(escape: str) -> None:
    """A lone surrogate, written as an escape, in texts and in names: nothing of it is left to stumble over."""
    quakes = UsgsQuakes().parse(
        orjson.dumps({"features": [{"id": "us1", "properties": {"time": TIME_MS, "place": "@", "@": 1}}]}).replace(
            b"@", escape.encode()
        ),
        AT,
    )
    satellites = CelestrakGp().parse(orjson.dumps([RECORD | {"OBJECT_NAME": "@"}]).replace(b"@", escape.encode()), AT)
    reports = AwcMetar().parse(
        orjson.dumps([METARS[0] | {"rawOb": METARS[0]["rawOb"] + " RMK @", "@": 1}]).replace(b"@", escape.encode()), AT
    )
    for result in (quakes, satellites, reports):
        assert (len(result.rows), len(result.rejects), result.complete) == (1, 0, True)
        for row in result.rows:
            orjson.dumps(row.data | {"title": row.title} if isinstance(row, Fact) else row)
    assert reports.rows[0]["temp_c"] == 12.0  # type: ignore[index]


@pytest.mark.parametrize("token", ["1e400", "-1e400", "Infinity", "-Infinity", "NaN", "9" * 400, "9" * 5_000])
def test_a_number_that_no_float_holds_is_null_or_costs_its_record(token: str) -> None:
    body = orjson.dumps({"features": [{"id": f"us{n}", "properties": {"time": TIME_MS, "mag": 7}} for n in (1, 2)]})
    result = UsgsQuakes().parse(body.replace(b'"mag":7', b'"mag":' + token.encode(), 1), AT)
    assert len(result.rows) + len(result.rejects) == 2
    assert result.rows[-1].external_key == "us2"  # type: ignore[union-attr]
    assert all(row.data["mag"] in (None, 7.0) for row in result.rows if isinstance(row, Fact))
