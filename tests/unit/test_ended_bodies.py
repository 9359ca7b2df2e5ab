"""A body is whole only up to a provable end: what goes on after it, or breaks off before it, sweeps nothing."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from bodies import AT, METARS, QUAKES, RECORD, RECORDS, RUNWAYS, TLE, as_csv, as_kvn, as_xml
from planetwire.datasets.earthquakes.feed import UsgsQuakes
from planetwire.datasets.satellites.feed import CelestrakGp
from planetwire.datasets.weather_stations.feed_metar import AwcMetar
from planetwire.datasets.weather_stations.feed_runway import RunwayObs
from planetwire.model import Parsed

WHOLE: dict[str, tuple[Any, bytes]] = {
    "GP JSON": (CelestrakGp(), orjson.dumps(RECORDS)),
    "GP object": (CelestrakGp(), orjson.dumps(RECORD)),
    "GP CSV": (CelestrakGp(), as_csv(RECORDS)),
    "GP KVN": (CelestrakGp(), as_kvn(RECORDS)),
    "GP XML": (CelestrakGp(), as_xml(RECORDS)),
    "GP TLE": (CelestrakGp(), TLE.encode()),
    "quakes": (UsgsQuakes(), orjson.dumps(QUAKES)),
    "METAR JSON": (AwcMetar(), orjson.dumps(METARS)),
    "runways": (RunwayObs(), orjson.dumps({"readings": RUNWAYS})),
}
TAILS = {
    "a second list": orjson.dumps(RECORDS[:3]),
    "a second object": orjson.dumps(QUAKES),
    "a web page": b"<br />\n<b>Fatal error</b>: out of memory in gp.php on line 3<br />\n",
    "a text": b"\nerror: connection to database lost\n",
    "a letter": b"x",
    "a bracket": b"]",
    "a NUL": b"\x00",
    "half a record": b'{"OBJECT_NAME": "ON',
    "an XML record": b"<omm><NORAD_CAT_ID>5</NORAD_CAT_ID></omm>",
}


def parsed(name: str, tail: bytes = b"", head: bytes = b"") -> Parsed:
    feed, body = WHOLE[name]
    result: Parsed = feed.parse(head + body + tail, AT)
    return result


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("around", [(b"", b""), (b"\xef\xbb\xbf", b"\r\n\r\n"), (b"\xef\xbb\xbf \n", b" \t\n")])
def test_a_whole_body_is_whole_with_spaces_and_a_byte_order_mark_around_it(
    name: str, around: tuple[bytes, bytes]
) -> None:
    head, tail = around
    if name in ("GP XML",) and head.endswith(b"\n"):
        head = b"\xef\xbb\xbf"
    result = parsed(name, tail, head)
    assert result.complete, result.rejects
    assert len(result.rows) == len(parsed(name).rows) > 0


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("tail", TAILS)
def test_a_body_that_goes_on_after_its_end_is_not_whole_and_its_rows_are_kept(name: str, tail: str) -> None:
    """Two answers stuck together, or an error page behind the records: whoever sent it, nothing may be swept."""
    result = parsed(name, TAILS[tail])
    assert not result.complete
    assert len(result.rows) >= len(parsed(name).rows) - 1


@pytest.mark.parametrize("name", [name for name in WHOLE if name.startswith("GP") and name != "GP object"])
def test_the_same_body_twice_is_not_whole_where_the_format_has_an_end_or_a_head(name: str) -> None:
    _, body = WHOLE[name]
    assert parsed(name, body).complete == (name in ("GP KVN", "GP TLE"))


@pytest.mark.parametrize("name", WHOLE)
def test_a_body_that_breaks_off_anywhere_in_its_second_half_is_not_whole(name: str) -> None:
    feed, body = WHOLE[name]
    if name == "GP object":
        return  # half an object has no element set: refused altogether
    for end in (*range(len(body) // 2, len(body), 13), *range(len(body) - 90, len(body))):
        cut = body[:end]
        if name in ("GP CSV", "GP KVN", "GP TLE") and cut.endswith(b"\n") and feed.parse(cut, AT).complete:
            assert cut.rstrip().splitlines()[-1] in body.splitlines()  # no end mark: a whole last record is an end
        elif cut.strip() != body.strip():
            assert not feed.parse(cut, AT).complete, cut[-60:]


def test_a_second_list_of_records_under_the_same_key_is_not_whole() -> None:
    body = orjson.dumps(QUAKES)[:-1] + b',"features":[]}'
    result = UsgsQuakes().parse(body, AT)
    assert (len(result.rows), result.complete) == (20, False)


def test_a_csv_body_with_a_second_header_or_a_broken_last_row_is_not_whole() -> None:
    body = as_csv(RECORDS)
    again = CelestrakGp().parse(body + body, AT)
    assert (len(again.rows), again.complete) == (20, False)
    assert [one.code for one in again.rejects] == ["goes_on"]
    assert not CelestrakGp().parse(body + b"ONE,1998-067A\n", AT).complete
    assert CelestrakGp().parse(body.replace(b"\n", b"\nONE,1998-067A\n", 1), AT).complete


def test_a_broken_record_between_sound_ones_or_at_the_end_leaves_the_body_whole() -> None:
    body = orjson.dumps(RECORDS)
    for number in (1, 10, 20):
        broken = body.replace(f'"NORAD_CAT_ID":{number}}}'.encode(), b'"NORAD_CAT_ID":,,}')
        result = CelestrakGp().parse(broken, AT)
        assert (len(result.rows), len(result.rejects), result.complete) == (19, 1, True)


def test_a_broken_record_with_records_inside_costs_itself_alone() -> None:
    clouds = [one | {"clouds": [{"cover": "FEW", "base": 1}, {"cover": "BKN", "base": 2}]} for one in METARS]
    body = orjson.dumps(clouds).replace(b'"obsTime":1780000600', b'"obsTime":17800006x00')
    result = AwcMetar().parse(body, AT)
    assert (len(result.rows), len(result.rejects), result.complete) == (19, 1, True)
