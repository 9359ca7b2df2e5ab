"""What the ingest makes of a pushed patch: every accepted shape becomes `city_observation_patch.v1`, or is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from planetwire.cities import BY_KEY
from planetwire.collect.formats.obs_time import parse_obs_time
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.registry import observed_sources
from planetwire.errors import InputError

SOURCES = observed_sources()

NOW = datetime(2026, 5, 26, 10, 3, 4, 500_000, tzinfo=UTC)
RUNWAY = {"runway": "17L/35R", "temp": 31.2, "tdz_temp": 31.0, "mid_temp": 31.5, "end_temp": 30.9}


def changes(**values: object) -> dict[str, object]:
    return {"city": "shanghai", "changes": {"source": "amsc_awos", **values}}


def payload_of(raw: object, now: datetime = NOW) -> dict[str, object]:
    return normalise(SOURCES, raw, now).payload


def code_of(raw: object) -> str:
    with pytest.raises(InputError) as caught:
        normalise(SOURCES, raw, NOW)
    return caught.value.code


# --- shapes


def test_old_city_patch_becomes_v1() -> None:
    """S148, S158, S195, S226: `type` city_patch with `changes`; revision and ts of the sender are ignored."""
    raw = {
        "type": "city_patch",
        "city": "Shanghai",
        "revision": 99,
        "ts": 1,
        "changes": {"temp": 31.25, "obs_time": "2026-05-26T10:02:00Z", "source": "AMSC_AWOS", "icao": "zspd"},
    }
    patch = normalise(SOURCES, raw, NOW)
    assert patch.city == "shanghai"
    assert patch.source == "amsc_awos"
    assert patch.obs_time == datetime(2026, 5, 26, 10, 2, tzinfo=UTC)
    assert patch.ts_ms == int(NOW.timestamp() * 1000)
    assert patch.points == (("runway", 31.25),)
    assert patch.payload == {
        "temp": 31.25,
        "max_so_far": None,
        "station_code": "ZSPD",
        "station_label": None,
        "series_key": "runway",
        "unit": "celsius",
        "runway_points": [],
        "observed_at_utc": "2026-05-26T10:02:00Z",
        "observed_at_local": "2026-05-26T18:02:00+08:00",
        "city_local_date": "2026-05-26",
        "city_timezone": "Asia/Shanghai",
        "city_utc_offset_seconds": 28800,
        "source_cadence_sec": 60,
        "received_at_utc": "2026-05-26T10:03:04.500Z",
        "latency_sec": 64.5,
    }


def test_old_patch_without_a_type_is_read() -> None:
    """S148: the shape that collectors send."""
    assert payload_of({"city": "london", "changes": {"temp": 12.0}})["temp"] == 12.0


def test_v1_is_read_from_payload() -> None:
    """S105, S131–S145."""
    raw = {
        "type": "city_observation_patch.v1",
        "schema_type": "city_observation_patch",
        "schema_version": 1,
        "city": "hong-kong",
        "source": "hko",
        "obs_time": "2026-05-26T10:00:00Z",
        "payload": {"temp": 28.4, "max_so_far": 30.1, "station_code": "HKO", "station_label": "Observatory"},
    }
    patch = normalise(SOURCES, raw, NOW)
    assert (patch.city, patch.source) == ("hong kong", "hko")
    assert patch.payload["series_key"] == "settlement"
    assert patch.payload["max_so_far"] == 30.1
    assert patch.payload["station_label"] == "Observatory"


def test_celsius_beside_a_display_temperature_wins() -> None:
    """Q9: `temp` in °F for show, `temp_c` the reading; the high is converted with the display unit, said or not."""
    said = payload_of({"city": "nyc", "changes": {"temp": 86, "temp_c": 30.0, "unit": "°F", "max_so_far": 89.6}})
    unsaid = payload_of({"city": "nyc", "changes": {"temp": 86, "temp_c": 30.0, "max_so_far": 89.6}})
    for payload in (said, unsaid):
        assert payload["temp"] == 30.0
        assert payload["max_so_far"] == 32.0
        assert payload["unit"] == "celsius"


@pytest.mark.parametrize("unit", ["f", "F", "°F", "fahrenheit", " Fahrenheit "])
def test_fahrenheit_is_stored_as_celsius(unit: str) -> None:
    """S143, Q9."""
    assert payload_of(changes(temp=68, unit=unit))["temp"] == 20.0


def test_a_city_under_any_name_is_the_same_city() -> None:
    """S159."""
    for name in ("Hong Kong", "hong_kong", "HONG-KONG", "hong%20kong", "hk", "VHHH"):
        assert normalise(SOURCES, {"city": name, "changes": {"temp": 1}}, NOW).city == "hong kong"


# --- runway points


def test_runway_points_are_kept() -> None:
    """S144, S145, S177, S196, S226."""
    patch = normalise(SOURCES, changes(temp=31.2, runway_points=[RUNWAY]), NOW)
    assert patch.payload["runway_points"] == [{**RUNWAY, "is_settlement": True}]
    assert patch.points == (("runway", 31.2), ("runway:17L/35R", 31.2))


def test_runway_points_inside_amos_are_kept() -> None:
    """S196: seoul's legacy shape; a point without `temp` takes the runway's maximum."""
    raw = {
        "city": "seoul",
        "changes": {
            "temp": 31.25,
            "source": "amos",
            "amos": {
                "icao": "rkss",
                "station_name": " Gimpo ",
                "runway_obs": {
                    "runway_pairs": [["15r", "33l"]],
                    "temperatures": [[30.0, 12.0]],
                    "point_temperatures": [{"rwy": " 15r / 33l ", "target_runway_max": 31.25, "tdz_temp": 0.0}],
                },
            },
        },
    }
    payload = payload_of(raw)
    assert payload["station_code"] == "RKSS"
    assert payload["station_label"] == "Gimpo"
    assert payload["runway_points"] == [
        {
            "runway": "15R/33L",
            "temp": 31.25,
            "tdz_temp": 0.0,
            "mid_temp": None,
            "end_temp": None,
            "is_settlement": True,
        }
    ]


def test_direct_runway_points_win_over_those_inside_amos() -> None:
    """S148."""
    amos = {"runway_obs": {"point_temperatures": [{"runway": "01/19", "temp": 9}]}}
    points = payload_of(changes(runway_points=[RUNWAY], amos=amos))["runway_points"]
    assert [point["runway"] for point in points] == ["17L/35R"]  # type: ignore[union-attr, attr-defined]


@pytest.mark.parametrize(
    ("temp", "kept"), [(0, 0.0), (0.0, 0.0), (-0.5, -0.5), ("-0.0", 0.0), (-90, -90.0), (60, 60.0)]
)
def test_zero_and_cold_are_temperatures(temp: object, kept: float) -> None:
    """S138, S159: no value is lost because it is falsy."""
    payload = payload_of(changes(temp=temp, runway_points=[{"runway": "1", "tdz_temp": temp, "end_temp": 20}]))
    assert payload["temp"] == kept
    assert str(payload["temp"]) == str(kept)
    assert payload["runway_points"][0]["temp"] == kept  # type: ignore[index]


def test_a_runway_point_alone_is_enough() -> None:
    """S189."""
    patch = normalise(SOURCES, changes(runway_points=[{"runway": "34/16", "end_temp": 12.5}]), NOW)
    assert patch.payload["temp"] is None
    assert patch.points == (("runway:34/16", 12.5),)


def test_only_a_boolean_says_which_runway_settles() -> None:
    """S145."""
    points = [
        {"runway": "17L/35R", "temp": 1, "is_settlement": False},
        {"runway": "35R/17L", "temp": 1, "is_settlement": "yes"},
        {"runway": "16R/34L", "temp": 1, "is_settlement": 1},
    ]
    read = payload_of(changes(runway_points=points))["runway_points"]
    assert [point["is_settlement"] for point in read] == [False, True, False]  # type: ignore[union-attr, index]


# --- refusals


@pytest.mark.parametrize("city", [None, "", "atlantis", 5, True, ["london"], {"a": 1}, "x" * 9999])
def test_invalid_city_is_rejected(city: object) -> None:
    """S159, S189, S197, S226."""
    assert code_of({"city": city, "changes": {"temp": 20}}) == "unknown_city"


@pytest.mark.parametrize(
    "temp", [True, False, "warm", "", "nan", "1e1", "0x10", 9999, -90.01, 60.01, 10**400, [20], {}, float("nan")]
)
def test_invalid_temperature_is_rejected(temp: object) -> None:
    """S159, S189, S197, S226."""
    assert code_of({"city": "london", "changes": {"temp": temp}}) == "invalid_temp"


@pytest.mark.parametrize(
    "inner",
    [
        {},
        {"temp": None},
        {"max_so_far": 20},
        {"hourly": {"temps": [1]}},
        {"runway_points": [{"runway": "17L/35R"}]},
        {"runway_points": [{"temp": 20}]},
        {"runway_points": [{"runway": "17L/35R", "temp": True}]},
        {"runway_points": "17L", "amos": []},
    ],
)
def test_a_patch_without_a_reading_is_rejected(inner: dict[str, object]) -> None:
    """S189, Q10."""
    assert code_of({"city": "london", "changes": inner}) == "no_observation"


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (None, "bad_patch"),
        ([], "bad_patch"),
        ("text", "bad_patch"),
        ({"city": "london"}, "bad_patch"),
        ({"city": "london", "changes": [1]}, "bad_patch"),
        ({"type": "city_observation_patch.v2", "city": "london", "payload": {"temp": 1}}, "unknown_schema"),
        ({"type": "city_observation_patch.v1", "schema_version": 2, "city": "x", "payload": {}}, "unknown_schema"),
        ({"city": "london", "source": "a-b", "changes": {"temp": 1}}, "invalid_source"),
        ({"city": "london", "source": "x" * 33, "changes": {"temp": 1}}, "invalid_source"),
        ({"city": "london", "source": 7, "changes": {"temp": 1}}, "invalid_source"),
        ({"city": "london", "changes": {"temp": 1, "series_key": "mine"}}, "invalid_series_key"),
        ({"city": "london", "changes": {"temp": 1, "unit": "kelvin"}}, "invalid_unit"),
        (changes(runway_points=[{"runway": str(n), "temp": 1} for n in range(17)]), "too_many_runways"),
    ],
)
def test_other_faults_have_a_code_of_their_own(raw: object, code: str) -> None:
    """S159, S189."""
    assert code_of(raw) == code


# --- times


@pytest.mark.parametrize(
    ("raw", "utc"),
    [
        ("2026-05-26T10:02:00Z", "2026-05-26T10:02:00+00:00"),
        ("2026-05-26 10:02:00 z", "2026-05-26T10:02:00+00:00"),
        ("2026-05-26T06:02:00-04:00", "2026-05-26T10:02:00+00:00"),
        ("2026-05-26T06:02", "2026-05-26T10:02:00+00:00"),
        ("2026-05-26 06:02:30.1239999", "2026-05-26T10:02:30.123000+00:00"),
        (1779789720, "2026-05-26T10:02:00+00:00"),
        (1779789720000, "2026-05-26T10:02:00+00:00"),
        (1779789720.25, "2026-05-26T10:02:00.250000+00:00"),
        ("1779789720000", "2026-05-26T10:02:00+00:00"),
    ],
)
def test_observation_times_are_read_as_utc(raw: object, utc: str) -> None:
    """S135, S159: new york; a time without a zone is on the city's clocks."""
    at = parse_obs_time(raw, BY_KEY["new york"], NOW)
    assert at is not None
    assert at.isoformat() == utc


@pytest.mark.parametrize(
    ("city", "naive", "utc"),
    [
        ("new york", "2026-03-08T02:30", "2026-03-08T07:30:00+00:00"),  # clocks skip 02:00–03:00: moved to 03:30
        ("new york", "2026-03-08T04:00", "2026-03-08T08:00:00+00:00"),  # 5 h after the change, not 1 h off
        ("new york", "2026-11-01T01:30", "2026-11-01T05:30:00+00:00"),  # twice: the first
        ("wellington", "2026-04-05T02:30", "2026-04-04T13:30:00+00:00"),
    ],
)
def test_local_times_are_right_around_a_change_of_clocks(city: str, naive: str, utc: str) -> None:
    """S135."""
    expected = datetime.fromisoformat(utc)
    assert parse_obs_time(naive, BY_KEY[city], expected + timedelta(hours=1)) == expected


@pytest.mark.parametrize(
    "raw", ["10:05", "yesterday", "2026-05-26", "2026-13-01T00:00Z", True, [1], {}, "2026-W21-2T10"]
)
def test_an_unreadable_observation_time_is_rejected(raw: object) -> None:
    """S159."""
    assert code_of(changes(temp=1, obs_time=raw)) == "invalid_obs_time"


@pytest.mark.parametrize(
    "raw",
    ["2099-01-01T00:00Z", "2026-05-24T10:03:04Z", "2026-05-26T10:08:05Z", "0001-01-01T00:00", 0, -5, 10**15, 1e300],
)
def test_an_observation_time_out_of_range_is_rejected(raw: object) -> None:
    """S159."""
    assert code_of(changes(temp=1, obs_time=raw)) == "obs_time_out_of_range"


def test_the_bounds_of_the_observation_time_are_inside() -> None:
    """S159."""
    for at in (NOW - timedelta(hours=48), NOW + timedelta(minutes=5)):
        assert normalise(SOURCES, changes(temp=1, obs_time=at.isoformat()), NOW).obs_time == at


@pytest.mark.parametrize("absent", [{}, {"obs_time": None}, {"obs_time": ""}])
def test_without_an_observation_time_there_is_none(absent: dict[str, object]) -> None:
    """S135, S136: nothing is invented; `ts` says when it came."""
    patch = normalise(SOURCES, changes(temp=1, **absent), NOW)
    assert patch.obs_time is None
    assert patch.payload["observed_at_utc"] is None
    assert patch.payload["latency_sec"] is None
    assert patch.payload["city_local_date"] == "2026-05-26"


def test_the_local_date_is_the_citys() -> None:
    """S145: 23:16 UTC is the evening before in Toronto and the next day in Wellington."""
    now = datetime(2026, 5, 26, 23, 20, tzinfo=UTC)
    at = "2026-05-26T23:16:00Z"
    toronto = payload_of({"city": "toronto", "changes": {"temp": 1, "obs_time": at, "source": "metar"}}, now)
    wellington = payload_of({"city": "wellington", "changes": {"temp": 1, "obs_time": at}}, now)
    assert toronto["observed_at_local"] == "2026-05-26T19:16:00-04:00"
    assert toronto["source_cadence_sec"] == 3600
    assert toronto["city_local_date"] == "2026-05-26"
    assert wellington["city_local_date"] == "2026-05-27"


# --- the rest of the payload


def test_the_high_is_never_below_the_reading_and_only_of_its_day() -> None:
    """S139."""
    assert payload_of(changes(temp=20, max_so_far=18))["max_so_far"] == 20.0
    assert payload_of(changes(temp=20, current_max_so_far=22))["max_so_far"] == 22.0
    assert payload_of(changes(temp=20, max_so_far=30, local_date="2026-05-25"))["max_so_far"] is None
    assert payload_of(changes(temp=20, max_so_far=30, local_date="2026-05-26"))["max_so_far"] == 30.0
    assert payload_of(changes(temp=20, max_so_far="hot"))["max_so_far"] is None


@pytest.mark.parametrize(
    ("city", "source", "series"),
    [
        ("london", "awc_metar", "metar"),
        ("london", "metar", "metar"),
        ("hong kong", "hko", "settlement"),
        ("hong kong", "hko_obs", "airport_primary"),
        ("hong kong", "cowin_obs", "reference"),
        ("istanbul", "noaa", "settlement"),
        ("seoul", "amos", "runway"),
        ("shanghai", "runway_obs", "runway"),
        ("miami", "madis_hfmetar", "airport_primary"),
        ("london", "settlement", "settlement"),
        ("london", "", "airport_primary"),
    ],
)
def test_every_source_has_its_own_series(city: str, source: str, series: str) -> None:
    """S142: three sources of one city do not zigzag in one curve."""
    patch = normalise(SOURCES, {"city": city, "source": source, "changes": {"temp": 1}}, NOW)
    assert patch.payload["series_key"] == series
    assert patch.source == (source or "weather")


def test_texts_are_trimmed_and_cut() -> None:
    """S140, S141."""
    payload = payload_of(changes(temp=1, station_code=" zspd\x00 ", station_label="a\n" * 200))
    assert payload["station_code"] == "ZSPD"
    assert payload["station_label"] == "a" * 80


def test_hourly_is_never_stored() -> None:
    """S110, S148."""
    assert "hourly" not in payload_of(changes(temp=1, hourly={"temps": [1, 2]}))
