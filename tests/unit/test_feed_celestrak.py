"""Satellites as OMM records: formats, numbers, epochs, and one bad record among many."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from planetwire.collect.feed_celestrak import CelestrakGp
from planetwire.collect.formats.omm import KEYS, BadRecord, epoch
from planetwire.errors import FeedError
from planetwire.model import Fact, Parsed

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
RECORD: dict[str, Any] = {
    "OBJECT_NAME": "ISS (ZARYA)", "OBJECT_ID": "1998-067A", "EPOCH": "2026-11-29T04:10:11.123456",
    "MEAN_MOTION": 15.49, "ECCENTRICITY": 0.0004, "INCLINATION": 51.63, "RA_OF_ASC_NODE": 12.5,
    "ARG_OF_PERICENTER": 90.0, "MEAN_ANOMALY": 270.0, "EPHEMERIS_TYPE": 0, "CLASSIFICATION_TYPE": "U",
    "NORAD_CAT_ID": 25544, "ELEMENT_SET_NO": 999, "REV_AT_EPOCH": 4321, "BSTAR": 0.0002,
    "MEAN_MOTION_DOT": 0.0001, "MEAN_MOTION_DDOT": 0,
}  # fmt: skip


def parsed(body: object) -> Parsed:
    return CelestrakGp().parse(body if isinstance(body, bytes) else orjson.dumps(body), AT)


def fact(**changes: object) -> Fact:
    result = parsed([RECORD | changes])
    assert [one.reason for one in result.rejects] == []
    row = result.rows[0]
    assert isinstance(row, Fact)
    return row


def refused(**changes: object) -> str:
    result = parsed([RECORD | changes, RECORD | {"NORAD_CAT_ID": 7}])
    assert [row.external_key for row in result.rows] == ["7"]
    return result.rejects[0].reason


def test_a_record_becomes_a_fact_with_all_its_keywords() -> None:
    row = fact()
    assert (row.external_key, row.kind, row.title) == ("25544", "satellite", "ISS (ZARYA)")
    assert tuple(row.data) == KEYS
    assert row.observed_at == datetime(2026, 11, 29, 4, 10, 11, 123456, tzinfo=UTC)
    assert row.data["EPOCH"] == "2026-11-29T04:10:11.123456"


def test_text_values_equal_numbers() -> None:
    """Report 15: Space-Track's strings and CelesTrak's numbers."""
    as_text = {key: str(value) for key, value in RECORD.items()}
    assert parsed([as_text]).rows == parsed([RECORD]).rows


@pytest.mark.parametrize("number", [100_001, 270_000, 799_501_299, 999_100_101, 999_999_999])
def test_numbers_up_to_nine_digits_are_keys_of_their_own(number: int) -> None:
    """Report 4."""
    assert fact(NORAD_CAT_ID=number).external_key == str(number)
    assert fact(NORAD_CAT_ID=number).data["NORAD_CAT_ID"] == number


@pytest.mark.parametrize("value", ["A0000", "T0000", 1_000_000_000, 25544.0, "25544.0", "", None, 0, -5, True])
def test_what_is_no_catalogue_number_is_refused(value: object) -> None:
    """Alpha-5 is never read on this path."""
    assert "NORAD_CAT_ID" in refused(NORAD_CAT_ID=value)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2026-11-29T04:10:11.123456", "2026-11-29T04:10:11.123456"),
        ("2026-11-29T04:10:11.123456Z", "2026-11-29T04:10:11.123456"),
        ("2026-11-29T04:10:48", "2026-11-29T04:10:48.000000"),
        ("2026-11-29T13:31:01.5", "2026-11-29T13:31:01.500000"),
        ("2026-333T13:31:01.5Z", "2026-11-29T13:31:01.500000"),
        ("2016-12-31T23:59:60", "2017-01-01T00:00:00.000000"),
    ],
)
def test_every_legal_epoch_keeps_its_full_time(text: str, iso: str) -> None:
    """Reports 13, 14."""
    assert fact(EPOCH=text).data["EPOCH"] == iso


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-9-20T12:42:37", "2026-09-20 12:42:37", "26263.52959654", "20260920T124237",
     "2026-02-30T00:00:00", "2025-366T00:00:00", "2026-09-20T25:00:00", "1900-01-01T00:00:00", None, 12],
)  # fmt: skip
def test_an_invalid_epoch_refuses_the_row(text: object) -> None:
    """Report 14."""
    assert "EPOCH" in refused(EPOCH=text)


def test_an_epoch_is_aware_utc() -> None:
    assert epoch("2026-11-29T00:00:00").tzinfo is UTC
    with pytest.raises(BadRecord):
        epoch("2026-11-29T00:00:00+00:00")


@pytest.mark.parametrize(
    ("key", "value"),
    [("ECCENTRICITY", 1.0), ("ECCENTRICITY", -0.1), ("INCLINATION", 180.1), ("INCLINATION", -1), ("MEAN_MOTION", 0),
     ("MEAN_MOTION", -1.0), ("MEAN_MOTION", 99.0), ("MEAN_ANOMALY", None), ("MEAN_ANOMALY", "12,5"),
     ("RA_OF_ASC_NODE", 400.0), ("MEAN_MOTION", True), ("ECCENTRICITY", "nan"), ("BSTAR", "x"),
     ("ELEMENT_SET_NO", 1.5)],
)  # fmt: skip
def test_values_out_of_range_refuse_the_row(key: str, value: object) -> None:
    assert key in refused(**{key: value})


def test_missing_optional_keywords_take_their_defaults() -> None:
    record = {key: RECORD[key] for key in KEYS[2:9]} | {"NORAD_CAT_ID": 5}
    row = parsed([record]).rows[0]
    assert isinstance(row, Fact)
    assert row.title == "NORAD 5"
    assert (row.data["OBJECT_ID"], row.data["CLASSIFICATION_TYPE"], row.data["BSTAR"]) == (None, "U", 0.0)


@pytest.mark.parametrize("token", ["NaN", "nan", "Infinity", "-Infinity"])
def test_a_token_that_is_no_json_costs_one_record(token: str) -> None:
    """Report 68: never re-emitted."""
    records = [RECORD | {"NORAD_CAT_ID": number} for number in range(1, 12_001)]
    body = json.dumps(records).encode().replace(b'"MEAN_ANOMALY": 270.0', f'"MEAN_ANOMALY": {token}'.encode(), 1)
    result = parsed(body)
    assert (len(result.rows), len(result.rejects), result.complete) == (11_999, 1, True)
    assert b"NaN" not in orjson.dumps([row.data for row in result.rows])


def test_one_bad_record_of_twelve_thousand_leaves_the_others() -> None:
    records = [RECORD | {"NORAD_CAT_ID": number} for number in range(1, 12_001)]
    records[6_000]["EPOCH"] = "never"
    result = parsed(records)
    assert (len(result.rows), len(result.rejects), result.complete) == (11_999, 1, True)
    assert result.rejects[0].offset == 6_000
    assert len(result.rejects[0].sample) <= 200
    assert result.refused_keys == {"6001"}


@pytest.mark.parametrize("item", [None, 5, "text", [], {}])
def test_what_is_no_record_is_refused_alone(item: object) -> None:
    result = parsed([item, RECORD])
    assert (len(result.rows), len(result.rejects)) == (1, 1)


def test_an_object_seen_twice_keeps_its_newest_epoch() -> None:
    older = RECORD | {"EPOCH": "2026-11-28T00:00:00"}
    for body in ([older, RECORD], [RECORD, older]):
        result = parsed(body)
        assert [row.data["EPOCH"][:10] for row in result.rows] == ["2026-11-29"]
        assert result.notes["duplicates"] == 1


@pytest.mark.parametrize("cut", [1, 30, 400, 600])
def test_a_body_cut_short_is_never_called_whole(cut: int) -> None:
    """Report 75."""
    body = orjson.dumps([RECORD, RECORD | {"NORAD_CAT_ID": 2}, RECORD | {"NORAD_CAT_ID": 3}])[:-cut]
    result = parsed(body)
    assert not result.complete
    assert {row.external_key for row in result.rows} <= {"25544", "2", "3"}
    assert result.rejects


def test_a_byte_order_mark_is_stripped() -> None:
    """Report 69."""
    assert len(parsed(b"\xef\xbb\xbf" + orjson.dumps([RECORD])).rows) == 1
    header = ",".join(RECORD)
    body = b"\xef\xbb\xbf" + f"{header}\r\n{','.join(str(value) for value in RECORD.values())}\r\n".encode()
    assert parsed(body).rows == parsed([RECORD]).rows


def test_csv_with_unknown_columns_is_read_and_a_short_row_refused() -> None:
    header = ",".join([*RECORD, "RMS", "DATA_SOURCE"])
    row = ",".join([*(str(value) for value in RECORD.values()), "0.1", "X"])
    result = parsed(f"{header}\n{row[:60]}\n{row}\n".encode())
    assert (len(result.rows), len(result.rejects), result.complete) == (1, 1, True)


def test_csv_without_its_last_line_end_is_not_whole() -> None:
    header, row = ",".join(RECORD), ",".join(str(value) for value in RECORD.values())
    result = parsed(f"{header}\n{row}".encode())
    assert (len(result.rows), result.complete) == (1, False)


def test_kvn_and_xml_of_several_records_are_read() -> None:
    kvn = "".join(
        "CCSDS_OMM_VERS = 2.0\n" + "".join(f"{key} = {value}\n" for key, value in record.items()) + "\n"
        for record in (RECORD, RECORD | {"NORAD_CAT_ID": 100_001})
    )
    xml = "<ndm>" + "".join(
        "<omm><body>" + "".join(f"<{key}>{value}</{key}>" for key, value in record.items()) + "</body></omm>"
        for record in (RECORD, RECORD | {"NORAD_CAT_ID": 100_001})
    ) + "</ndm>"  # fmt: skip
    for body in (kvn, xml):
        result = parsed(body.encode())
        assert [row.external_key for row in result.rows] == ["25544", "100001"]
        assert result.complete
    assert not parsed(xml[:-10].encode()).complete
    assert not parsed(kvn[:-1].encode().rsplit(b"MEAN_ANOMALY", 1)[0]).complete


def test_xml_with_entities_is_refused() -> None:
    with pytest.raises(FeedError, match="document type"):
        parsed(b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><ndm/>')


@pytest.mark.parametrize(
    "body",
    [b"", b"No GP data found", b"<html><body>maintenance</body></html>", b'{"error": "busy"}', b"null",
     b"GP data has not updated since your last successful download"],
)  # fmt: skip
def test_a_body_without_a_record_is_a_bad_body(body: bytes) -> None:
    """Report 77."""
    with pytest.raises(FeedError) as caught:
        parsed(body)
    assert caught.value.code == "bad_body"


def test_an_empty_list_is_an_answer() -> None:
    result = parsed(b"[]")
    assert (list(result.rows), result.complete) == ([], True)


def test_a_single_object_is_read_as_a_list_of_one() -> None:
    assert len(parsed(orjson.dumps(RECORD)).rows) == 1
