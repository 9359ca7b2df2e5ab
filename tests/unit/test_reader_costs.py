"""What a body costs grows with its length, whatever is in it; counted, not timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from bodies import AT, RECORD, RUNWAYS, TLE, as_csv, as_kvn, as_xml
from counted import SLACK, calls
from planetwire.collect.formats import lines
from planetwire.collect.formats.json_records import FAILED_LEAST_BYTES, FAILED_SHARE, json_records
from planetwire.collect.formats.records import MAX_RECORD_BYTES, MAX_RECORDS
from planetwire.datasets.earthquakes import feed as feed_usgs
from planetwire.datasets.earthquakes.feed import UsgsQuakes
from planetwire.datasets.satellites.feed import CelestrakGp
from planetwire.datasets.weather_stations.feed_metar import AwcMetar
from planetwire.datasets.weather_stations.feed_runway import RunwayObs
from planetwire.errors import FeedError


def chain(length: int) -> bytes:
    """Each quake shares an id with the one before it: all are one event."""
    features = [
        {"id": f"q{n}", "properties": {"time": 1_779_789_720_123 + n, "ids": f",q{n},q{n + 1},"}, "geometry": None}
        for n in range(length)
    ]
    return orjson.dumps({"features": features})


def broken(length: int) -> bytes:
    """Records that no JSON reader takes."""
    return b"[" + b",".join(b'{"OBJECT_NAME":"X","EPOCH":tomorrow,"NORAD_CAT_ID":%d}' % n for n in range(length)) + b"]"


def satellites(length: int) -> list[dict[str, Any]]:
    return [RECORD | {"NORAD_CAT_ID": n + 1} for n in range(length)]


BODIES: dict[str, tuple[Any, Callable[[int], bytes]]] = {
    "chained ids": (UsgsQuakes(), chain),
    "chained backwards": (UsgsQuakes(), lambda n: orjson.dumps({"features": orjson.loads(chain(n))["features"][::-1]})),
    "broken records": (CelestrakGp(), lambda n: broken(n)[:-1] + b"," + orjson.dumps(RECORD) + b"]"),
    "records": (CelestrakGp(), lambda n: orjson.dumps(satellites(n))),
    "rows": (CelestrakGp(), lambda n: as_csv(satellites(n))),
    "rows with open quotes": (CelestrakGp(), lambda n: as_csv(satellites(n)).replace(b"ONE", b'"ONE')),
    "messages": (CelestrakGp(), lambda n: as_kvn(satellites(n))),
    "elements": (CelestrakGp(), lambda n: as_xml(satellites(n))),
    "sets": (CelestrakGp(), lambda n: TLE.encode() * n),
    "open sets": (CelestrakGp(), lambda n: "".join(TLE.splitlines(keepends=True)[1] * n).encode() + TLE.encode()),
    "prose": (CelestrakGp(), lambda n: b"word <b> < <a \n" * n + TLE.encode()),
    "reports on lines": (AwcMetar(), lambda n: b"KLGA 281151Z 00000KT 10SM 12/02 A2992\n" * n),
    "reports on one line": (AwcMetar(), lambda n: b"KLGA 281151Z 00000KT 10SM 12/02 A2992 " * n),
    "runways": (RunwayObs(), lambda n: orjson.dumps([RUNWAYS[0] | {"time": 1_780_000_000 + i} for i in range(n)])),
    "headings": (AwcMetar(), lambda n: b"SAUS70 KWBC 281200\nKLGA 281151Z 00000KT 12/02=\n" * n),
}


@pytest.mark.parametrize("name", BODIES)
def test_twice_the_body_is_twice_the_work(name: str) -> None:
    feed, body = BODIES[name]
    small, large = body(400), body(800)
    feed.parse(small, AT)  # what is made once for good
    once = calls(lambda: feed.parse(small, AT))
    assert calls(lambda: feed.parse(large, AT)) <= 2 * SLACK * once


def test_a_chain_of_twenty_thousand_quakes_is_joined_in_a_few_steps_each(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[feed_usgs._Events] = []

    class Counted(feed_usgs._Events):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr(feed_usgs, "_Events", Counted)
    result = UsgsQuakes().parse(chain(20_000), AT)
    assert ([row.external_key for row in result.rows], len(result.tombstones)) == (["q19999"], 20_000)  # type: ignore[union-attr]
    assert made[0].steps < 8 * 20_000


def test_eight_thousand_broken_records_are_read_about_twice() -> None:
    """A reader that tells in which line it failed counts the lines from the start: it is given little of them."""
    body = broken(8_000)
    records = json_records(body)
    assert (len(records.rejects), records.complete) == (8_000, True)
    assert records.read_bytes <= 3 * len(body)


@pytest.mark.parametrize(
    "unit",
    [b'{"a":[{},', b'{"a":"', b'{"a":[', b'{"a":{"b":', b"[", b'"', b"{", b"},{", b'{"', b"\\", b"1", b"-", b"tru"],
)
def test_what_fails_late_and_often_is_given_up(unit: bytes) -> None:
    body = b"[" + unit * (300_000 // len(unit))
    try:
        read = json_records(body).read_bytes
    except FeedError:
        return  # more pieces than records may be
    assert read <= FAILED_SHARE * len(body) + FAILED_LEAST_BYTES + 8 * MAX_RECORD_BYTES


def test_a_body_of_more_records_than_any_feed_has_is_refused_while_it_is_read() -> None:
    for body in (b"[" + b"{}," * 3_000_000 + b"{}]", b"NORAD_CAT_ID,A\n" + b"1,2\n" * 200_000):
        with pytest.raises(FeedError, match=f"more than {MAX_RECORDS}") as caught:
            CelestrakGp().parse(body, AT)
        assert caught.value.code == "bad_body"


@pytest.mark.parametrize("line", [b"x\n", b"<b>"])
def test_a_body_of_nothing_but_lines_is_refused_while_it_is_read(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINES", 1_000)
    for start in (b"bulletin\n" + line, b"NORAD_CAT_ID,A\n", b"OBJECT_NAME = X\n"):
        with pytest.raises(FeedError, match="more than 1000 lines"):
            CelestrakGp().parse(start + (line if line in start else b"1,2,3\n") * 2_000, AT)


TEXT = b"x" * (4 * 1024 * 1024)
ABSURD = {
    "JSON": b'[{"OBJECT_NAME":"' + TEXT + b'"},' + orjson.dumps(RECORD) + b"]",
    "CSV": as_csv([RECORD]) + TEXT + b"\n" + as_csv([RECORD]).splitlines()[1] + b"\n",
    "KVN": b"OBJECT_NAME = " + TEXT + b"\n" + as_kvn([RECORD]),
    "TLE": TEXT + b"\n" + TLE.encode(),
    "XML": b"<ndm><omm><OBJECT_NAME>" + TEXT + b"</OBJECT_NAME></omm>" + as_xml([RECORD])[5:],
}


@pytest.mark.parametrize("name", ABSURD)
def test_one_text_of_many_megabytes_costs_one_reject_and_the_record_beside_it_lives(name: str) -> None:
    result = CelestrakGp().parse(ABSURD[name], AT)
    assert len(result.rows) == 1
    assert len(result.rejects) == (0 if name == "TLE" else 1)
    assert all(len(one.sample) <= 200 for one in result.rejects)


@pytest.mark.parametrize("body", [b'<ndm a="' + b"x" * 4_000_000 + b'"/>', b"<ndm>" + b"<a>" * 100_000])
def test_a_tag_or_a_depth_without_end_ends_the_reading_of_xml(body: bytes) -> None:
    result = CelestrakGp().parse(body, AT)
    assert (list(result.rows), result.complete, len(result.rejects)) == ([], False, 1)
