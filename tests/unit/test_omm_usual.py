"""The quick way through an element record gives what the long way gives, or steps aside."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planetwire.collect.formats import omm

USUAL: dict[str, Any] = {
    "OBJECT_NAME": "ISS (ZARYA)",
    "OBJECT_ID": "1998-067A",
    "EPOCH": "2026-11-30T04:30:00.123456",
    "MEAN_MOTION": 15.49,
    "ECCENTRICITY": 0.0005,
    "INCLINATION": 51.6,
    "RA_OF_ASC_NODE": 247.4,
    "ARG_OF_PERICENTER": 130.5,
    "MEAN_ANOMALY": 325.0,
    "EPHEMERIS_TYPE": 0,
    "CLASSIFICATION_TYPE": "U",
    "NORAD_CAT_ID": 25544,
    "ELEMENT_SET_NO": 999,
    "REV_AT_EPOCH": 12345,
    "BSTAR": 0.0001,
    "MEAN_MOTION_DOT": 0,
    "MEAN_MOTION_DDOT": 0,
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**13), 10**13),
    st.floats(),
    st.text(max_size=30),
    st.sampled_from(
        ["2026-11-30 04:30:00.123456", "2026-W49-1T04:30:00.123456", "1956-11-30T04:30:00.123456", "12", ""]
    ),
)


def outcome(of: Any, record: dict[str, Any]) -> Any:
    try:
        return of(record)
    except omm.BadRecord as bad:
        return bad.reason


def test_the_usual_record_takes_the_quick_way() -> None:
    assert omm._usual(USUAL) == omm._any(USUAL)


@given(st.dictionaries(st.sampled_from(sorted(USUAL)), VALUES, max_size=4))
def test_both_ways_agree_on_every_record(changes: dict[str, Any]) -> None:
    record = USUAL | changes
    quick = omm._usual(record)
    if quick is not None:
        assert repr(quick) == repr(outcome(omm._any, record))


@pytest.mark.parametrize("name", sorted(USUAL))
def test_a_record_without_one_of_the_keys_goes_the_long_way(name: str) -> None:
    record = {key: value for key, value in USUAL.items() if key != name}
    assert omm._usual(record) is None
