"""Two-line element sets, with or without names, extracted from any surrounding text.

Every column is checked before its value is used: a shifted line also yields values, all of them wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from planetwire.collect.formats.lines import check_lines
from planetwire.collect.formats.omm import BadRecord, epoch_text
from planetwire.collect.formats.records import Records

LINE_CHARS = 68  # without the checksum
PIVOT_YEAR = 57
MAX_NAME_CHARS = 80
ALPHA5_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # without I and O; A is 10, Z is 33

_LINE_1 = re.compile(r"1 [ 0-9A-Z]{5}")
_LINE_2 = re.compile(r"2 [ 0-9A-Z]{5}")
MIN_LINE_CHARS = 40  # shorter ones are prose
_ALPHA5 = re.compile(rf"[{ALPHA5_LETTERS}]\d{{4}}")
_SPACED_ID = re.compile(r" *\d+ *")
# A tag, or text between line ends and tags; up to so many `<` that open no tag belong to the text.
_TAG = rb"/?[A-Za-z!][^<>\r\n]*>"
_PIECE = re.compile(rb"<%s|((?:[^\r\n<]++|<(?!%s)){1,64})" % (_TAG, _TAG))
MAX_LINE_CHARS = 200  # the rest of a line is ignored
_FIELDS_1 = {
    "separators": re.compile(r"1 .{5}[A-Z ] .{8} .{14} .{10} .{8} .{8} . .{4}"),
    "designator": re.compile(r"[0-9A-Z ]{8}"),
    "epoch": re.compile(r"[ \d]\d[ \d]{2}\d\.\d{1,8} *"),
    "mean motion derivative": re.compile(r" *[+-]? *\d?\.\d+ *"),
    "second derivative": re.compile(r" *[+-]? *\d{1,5} *[+-]\d| *"),
    "BSTAR": re.compile(r" *[+-]? *\d{1,5} *[+-]\d| *"),
    "ephemeris type": re.compile(r"[ \d]"),
    "element set number": re.compile(r" *\d*"),
}
_COLUMNS_1 = {
    "designator": slice(9, 17),
    "epoch": slice(18, 32),
    "mean motion derivative": slice(33, 43),
    "second derivative": slice(44, 52),
    "BSTAR": slice(53, 61),
    "ephemeris type": slice(62, 63),
    "element set number": slice(64, 68),
}
_FIELDS_2 = {
    "separators": re.compile(r"2 .{5} .{8} .{8} .{7} .{8} .{8} .{16}"),
    "inclination": re.compile(r" *\d{1,3}\.\d+"),
    "ascending node": re.compile(r" *\d{1,3}\.\d+"),
    "eccentricity": re.compile(r" *\d*"),
    "argument of perigee": re.compile(r" *\d{1,3}\.\d+"),
    "mean anomaly": re.compile(r" *\d{1,3}\.\d+"),
    "mean motion": re.compile(r" *\d{1,2}\.\d+"),
    "revolution number": re.compile(r" *\d*"),
}
_COLUMNS_2 = {
    "inclination": slice(8, 16),
    "ascending node": slice(17, 25),
    "eccentricity": slice(26, 33),
    "argument of perigee": slice(34, 42),
    "mean anomaly": slice(43, 51),
    "mean motion": slice(52, 63),
    "revolution number": slice(63, 68),
}
_EXPONENT = re.compile(r"([+-]?) *(\d{1,5}) *([+-])(\d)")


@dataclass(slots=True)
class _Reader:
    """The state between lines: an open line 1, and the line before it, which may be a name."""

    out: Records
    notes: Counter[str]
    name: str | None = None
    open_name: str | None = None
    open_line: str | None = None
    ended: bool = False  # the last line completed a set

    def take(self, line: str) -> None:
        self.ended = False
        if _LINE_1.match(line) and len(line) > MIN_LINE_CHARS:
            self.close()
            self.open_line, self.open_name = line, self.name
            self.name = None
        elif _LINE_2.match(line) and len(line) > MIN_LINE_CHARS:
            self.drop_name()
            self.pair(line)
        else:
            self.close()
            self.drop_name()
            self.name = line
            if not name_of(line):
                self.drop_name()

    def pair(self, line: str) -> None:
        if self.open_line is None:
            self.out.refuse("bad_lines", "line 2 without a line 1", line)
            return
        self.ended = len(line) >= LINE_CHARS
        self.out.add((self.open_name, (self.open_line, line), line_key(self.open_line)))
        self.open_line = None

    def close(self) -> None:
        if self.open_line is not None:
            self.out.add((self.open_name, (self.open_line, None), line_key(self.open_line)))
            self.open_line = None

    def drop_name(self) -> None:
        """Discard the remembered line: it was no name."""
        if self.name is not None:
            self.notes["prose"] += 1
            self.name = None


def tle_records(body: bytes, notes: Counter[str]) -> Records:
    """Sets as OMM keyword mappings, or BadRecord for refused ones; `notes` counts peculiarities.

    Counts: `prose` lines, sets with `checksum_absent`, `trailing_text`, `eccentricity_blank`. There is no end mark, so
    a body counts as complete only if it ends with a set.
    """
    reader = _Reader(Records(body, made=lambda place: _set_of(place, notes)), notes)
    line, end = "", 0
    for count, match in enumerate(_PIECE.finditer(body)):
        check_lines(count)
        start, end = match.span(1)
        line = body[start : min(end, start + 4 * MAX_LINE_CHARS)].decode("utf-8", "replace")[:MAX_LINE_CHARS].rstrip()
        if line.strip():
            reader.take(line)
    reader.out.complete = reader.ended and (len(line) > LINE_CHARS or end < len(body))
    reader.close()
    reader.drop_name()
    return reader.out


def _set_of(place: tuple[str | None, tuple[str, str | None], str | None], notes: Counter[str]) -> object:
    name, (line_1, line_2), key = place
    if line_2 is None:
        return BadRecord("line 1 without a line 2", key, line_1, code="bad_lines")
    try:
        record, flags = record_of(line_1, line_2)
    except BadRecord as bad:
        return BadRecord(bad.reason, key, f"{line_1}\n{line_2}", code="bad_lines")
    record["OBJECT_NAME"] = name_of(name or "")
    notes.update(flags)
    return record


def name_of(line: str) -> str:
    """The name line without its `0 ` prefix; empty for a comment or a line too long to be a name."""
    text = line.strip()
    if text.startswith("#") or len(text) > MAX_NAME_CHARS:
        return ""
    return text.removeprefix("0 ").strip()


def catalogue_number(text: str) -> int:
    """Columns 3–7: five digits, spaces allowed around fewer, or Alpha-5. Raises BadRecord."""
    if _ALPHA5.fullmatch(text):
        return (ALPHA5_LETTERS.index(text[0]) + 10) * 10_000 + int(text[1:])
    if not _SPACED_ID.fullmatch(text) or not text.isascii():
        raise BadRecord(f"no catalogue number: {text!r}")
    return int(text)


def line_key(line: str) -> str | None:
    """The catalogue number of a line as text, None when it has none."""
    try:
        return str(catalogue_number(line[2:7]))
    except BadRecord:
        return None


def checksum(line: str) -> int:
    """The last digit of a sum: digits count as themselves, a minus as one, everything else as zero."""
    return sum(int(c) if c in "0123456789" else c == "-" for c in line[:LINE_CHARS]) % 10


def _checked(line: str, number: int, flags: set[str]) -> None:
    if not line.isascii() or "\t" in line:
        raise BadRecord(f"line {number} has characters that no element set has")
    if len(line) < LINE_CHARS:
        raise BadRecord(f"line {number} has {len(line)} columns instead of {LINE_CHARS + 1}")
    digit = line[LINE_CHARS : LINE_CHARS + 1].strip()
    if not digit:
        flags.add("checksum_absent")
    elif digit != str(checksum(line)):
        raise BadRecord(f"line {number}: checksum {checksum(line)}, the line says {digit}")
    if len(line) > LINE_CHARS + 1:
        if line[LINE_CHARS + 1] != " ":
            raise BadRecord(f"line {number} has {len(line)} columns instead of {LINE_CHARS + 1}")
        flags.add("trailing_text")


def _columns(line: str, number: int, columns: dict[str, slice], fields: dict[str, re.Pattern[str]]) -> dict[str, str]:
    body = line[:LINE_CHARS]
    if not fields["separators"].fullmatch(body):
        raise BadRecord(f"line {number}: columns are shifted")
    values = {name: body[columns[name]] for name in columns}
    for name, value in values.items():
        if not fields[name].fullmatch(value):
            raise BadRecord(f"line {number}: {name} {value!r} is malformed")
    return values


def record_of(line_1: str, line_2: str) -> tuple[dict[str, object], set[str]]:
    """The OMM keywords of one set, and its flags. Raises BadRecord."""
    flags: set[str] = set()
    _checked(line_1, 1, flags)
    _checked(line_2, 2, flags)
    first = _columns(line_1, 1, _COLUMNS_1, _FIELDS_1)
    second = _columns(line_2, 2, _COLUMNS_2, _FIELDS_2)
    key = catalogue_number(line_1[2:7])
    if catalogue_number(line_2[2:7]) != key:
        raise BadRecord(f"lines 1 and 2 name different objects: {line_1[2:7]!r}, {line_2[2:7]!r}")
    if not second["eccentricity"].strip():
        flags.add("eccentricity_blank")
    return {"NORAD_CAT_ID": key, "CLASSIFICATION_TYPE": line_1[7], **_elements(first, second)}, flags


def _elements(first: dict[str, str], second: dict[str, str]) -> dict[str, object]:
    return {
        "OBJECT_ID": designator(first["designator"]),
        "EPOCH": epoch_text(epoch(first["epoch"])),
        "MEAN_MOTION_DOT": float(first["mean motion derivative"].replace(" ", "")),
        "MEAN_MOTION_DDOT": with_exponent(first["second derivative"]),
        "BSTAR": with_exponent(first["BSTAR"]),
        "EPHEMERIS_TYPE": int(first["ephemeris type"].strip() or 0),
        "ELEMENT_SET_NO": int(first["element set number"].strip() or 0),
        "INCLINATION": float(second["inclination"]),
        "RA_OF_ASC_NODE": float(second["ascending node"]),
        "ECCENTRICITY": int(second["eccentricity"].strip() or 0) / 1e7,
        "ARG_OF_PERICENTER": float(second["argument of perigee"]),
        "MEAN_ANOMALY": float(second["mean anomaly"]),
        "MEAN_MOTION": float(second["mean motion"]),
        "REV_AT_EPOCH": int(second["revolution number"].strip() or 0),
    }


def with_exponent(text: str) -> float:
    """`-11606-4` is −0.11606e−4: a decimal point is assumed before the digits. Blank is 0."""
    match = _EXPONENT.fullmatch(text.strip())
    if match is None:
        return 0.0
    return float(f"{match[1]}0.{match[2].rjust(5, '0')}e{match[3]}{match[4]}") or 0.0


def full_year(two_digits: int) -> int:
    """57–99 are 1957–1999, 00–56 are 2000–2056."""
    return two_digits + (1900 if two_digits >= PIVOT_YEAR else 2000)


def epoch(text: str) -> datetime:
    """`YYDDD.dddddddd`, exact to the microsecond. Raises BadRecord for a day the year does not have."""
    year = full_year(int(text[:2]))
    day_text, _, fraction = text[2:].strip().partition(".")
    if not day_text.strip().isdigit():
        raise BadRecord(f"line 1: epoch {text!r} is malformed")
    start = datetime(year, 1, 1, tzinfo=UTC)
    day = start + timedelta(days=int(day_text) - 1)
    if day.year != year:
        raise BadRecord(f"line 1: {year} has no day {int(day_text)}")
    return day + timedelta(microseconds=int(fraction.ljust(8, "0")) * 864)


def designator(text: str) -> str | None:
    """`98067A` is `1998-067A`; blank is None, anything irregular stays as it is."""
    text = text.strip()
    if re.fullmatch(r"\d{5}[A-Z]{1,3}", text):
        return f"{full_year(int(text[:2]))}-{text[2:]}"
    return text or None
