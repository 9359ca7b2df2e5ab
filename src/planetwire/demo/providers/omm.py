"""Mean elements in the text formats of a GP provider: OMM as JSON, CSV, KVN and XML, and two-line sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from planetwire.demo.providers.answer import JSON, TEXT

TICK_US = 864
"""Epochs lie on whole hundred-millionths of a day, as a two-line set can write them."""

TLE_LAST_ID = 99_999
_EPOCH_0 = datetime(1970, 1, 1, tzinfo=UTC)
_EOL = "\r\n"


class Elements(NamedTuple):
    """One record; angles in degrees, mean motion in revolutions per day, epoch in ticks of 864 µs since 1970."""

    name: str
    designator: str
    epoch_ticks: int
    motion: float
    eccentricity: float
    inclination: float
    node: float
    argument: float
    anomaly: float
    norad_id: int
    revolutions: int
    bstar: float
    motion_dot: float


KEYS = (
    "OBJECT_NAME",
    "OBJECT_ID",
    "EPOCH",
    "MEAN_MOTION",
    "ECCENTRICITY",
    "INCLINATION",
    "RA_OF_ASC_NODE",
    "ARG_OF_PERICENTER",
    "MEAN_ANOMALY",
    "EPHEMERIS_TYPE",
    "CLASSIFICATION_TYPE",
    "NORAD_CAT_ID",
    "ELEMENT_SET_NO",
    "REV_AT_EPOCH",
    "BSTAR",
    "MEAN_MOTION_DOT",
    "MEAN_MOTION_DDOT",
)
_QUOTED = {"OBJECT_NAME", "OBJECT_ID", "EPOCH", "CLASSIFICATION_TYPE"}
_JSON_FORM = "{" + ",".join(f'"{key}":' + ('"%s"' if key in _QUOTED else "%s") for key in KEYS) + "}"


def epoch_at(ticks: int) -> datetime:
    """The epoch as a datetime."""
    return _EPOCH_0 + timedelta(microseconds=ticks * TICK_US)


def number(value: float) -> str:
    """In the format of the provider's JSON: integers without a fraction, small numbers as `5.0e-7`."""
    if value == int(value):
        return str(int(value))
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent)}"


def classic(value: float) -> str:
    """In the format of CSV, KVN and XML: no leading zero, small numbers as `-.2218E-4`."""
    if value == 0:
        return "0"
    if abs(value) >= 1e-3:
        return repr(value).replace("0.", ".", 1) if abs(value) < 1 else number(value)
    digits, exponent = f"{abs(value):.7e}".split("e")
    return f"{'-' if value < 0 else ''}.{digits.replace('.', '').rstrip('0')}E{int(exponent) + 1}"


def _values(record: Elements, write: Callable[[float], str]) -> tuple[object, ...]:
    return (
        record.name,
        record.designator,
        epoch_at(record.epoch_ticks).strftime("%Y-%m-%dT%H:%M:%S.%f"),
        write(record.motion),
        write(record.eccentricity),
        write(record.inclination),
        write(record.node),
        write(record.argument),
        write(record.anomaly),
        0,
        "U",
        record.norad_id,
        999,
        record.revolutions,
        write(record.bstar),
        write(record.motion_dot),
        0,
    )


def as_json(records: Sequence[Elements]) -> str:
    """One array on one line."""
    return "[" + ",".join([_JSON_FORM % _values(record, number) for record in records]) + "]" + _EOL


def as_csv(records: Sequence[Elements]) -> str:
    """A header line, then one line per record."""
    rows = (",".join(map(str, _values(record, classic))) for record in records)
    return _EOL.join([",".join(KEYS), *rows]) + _EOL


_CONSTANTS = (
    ("CENTER_NAME", "EARTH"),
    ("REF_FRAME", "TEME"),
    ("TIME_SYSTEM", "UTC"),
    ("MEAN_ELEMENT_THEORY", "SGP4"),
)


def _pairs(record: Elements) -> list[tuple[str, object]]:
    pairs = list(zip(KEYS, _values(record, classic), strict=True))
    return [*pairs[:2], *_CONSTANTS, *pairs[2:]]


def as_kvn(records: Sequence[Elements]) -> str:
    """Blocks of `keyword = value`, one after the other."""
    lines: list[str] = []
    for record in records:
        lines += ["CCSDS_OMM_VERS = 2.0", "CREATION_DATE =", "ORIGINATOR ="]
        lines += [f"{key} = {value}".rstrip() for key, value in _pairs(record)] + [""]
    return _EOL.join(lines) + _EOL


def _xml_tags(pairs: Iterable[tuple[str, object]]) -> str:
    return "".join(f"<{key}>{str(value).replace('&', '&amp;').replace('<', '&lt;')}</{key}>" for key, value in pairs)


def as_xml(records: Sequence[Elements]) -> str:
    """One navigation data message of many orbit messages."""
    parts = ['<?xml version="1.0" encoding="UTF-8"?>', "<ndm>"]
    for record in records:
        pairs = _pairs(record)
        parts.append(
            '<omm id="CCSDS_OMM_VERS" version="2.0"><header><CREATION_DATE/><ORIGINATOR/></header><body><segment>'
            f"<metadata>{_xml_tags(pairs[:6])}</metadata>"
            f"<data><meanElements>{_xml_tags(pairs[6:13])}</meanElements>"
            f"<tleParameters>{_xml_tags(pairs[13:])}</tleParameters></data></segment></body></omm>"
        )
    return _EOL.join([*parts, "</ndm>"]) + _EOL


def _checked(line: str) -> str:
    return line + str(sum(int(c) if c.isdigit() else c == "-" for c in line) % 10)


def _exponent_field(value: float) -> str:
    if value == 0:
        return " 00000+0"
    digits, exponent = f"{abs(value):.4e}".split("e")
    power = int(exponent) + 1
    return f"{'-' if value < 0 else ' '}{digits.replace('.', '')}{power:+d}"


def tle_lines(record: Elements) -> tuple[str, str]:
    """Lines 1 and 2. Only for ids up to 99999."""
    at = epoch_at(record.epoch_ticks)
    year_start = datetime(at.year, 1, 1, tzinfo=UTC)
    day = 1 + (at - year_start) / timedelta(days=1)
    launch = (record.designator[2:4] + record.designator[5:]).ljust(8)
    dot = f"{abs(record.motion_dot):.8f}"[1:]
    first = (
        f"1 {record.norad_id:05d}U {launch} {at:%y}{day:012.8f} {'-' if record.motion_dot < 0 else ' '}{dot} "
        f" 00000+0 {_exponent_field(record.bstar)} 0  999"
    )
    second = (
        f"2 {record.norad_id:05d} {record.inclination:8.4f} {record.node:8.4f} {record.eccentricity * 1e7:07.0f} "
        f"{record.argument:8.4f} {record.anomaly:8.4f} {record.motion:11.8f}{record.revolutions:5d}"
    )
    return _checked(first), _checked(second)


def _two_line(records: Sequence[Elements], *, names: bool) -> str:
    lines: list[str] = []
    for record in records:
        if record.norad_id <= TLE_LAST_ID:
            lines += ([record.name.ljust(24)] if names else []) + list(tle_lines(record))
    return _EOL.join([*lines, ""])


def as_tle(records: Sequence[Elements]) -> str:
    """Name and two lines each; ids that do not fit the format are left out."""
    return _two_line(records, names=True)


def as_2le(records: Sequence[Elements]) -> str:
    """Two lines each, no names; ids that do not fit the format are left out."""
    return _two_line(records, names=False)


WRITERS: dict[str, tuple[Callable[[Sequence[Elements]], str], str]] = {
    "json": (as_json, JSON),
    "csv": (as_csv, TEXT),
    "kvn": (as_kvn, TEXT),
    "xml": (as_xml, "application/xml"),
    "tle": (as_tle, TEXT),
    "3le": (as_tle, TEXT),
    "2le": (as_2le, TEXT),
}
