"""METAR and SPECI reports in raw text: splits bulletins into reports, and parses a report into a row.

Invariant: a temperature is taken only from a group of the documented form; anything else is null with a flag,
never a guess.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from planetwire.model import Json

AHEAD = timedelta(hours=12)  # a report's time may be this far after the reference time
MAX_MONTHS_BACK = 3
MIN_TEMP_C, MAX_TEMP_C = -90.0, 60.0
T_GROUP_TOLERANCE_TENTHS = 10
MAX_RAW_CHARS = 600
MAX_WIND = 250  # in any unit

# Maps bytes that no report has to spaces, and line ends to one kind: the result is ASCII.
_PLAIN = bytes(10 if byte in (10, 13) else byte if 32 <= byte < 127 else 32 for byte in range(256))
_LINE = re.compile(r"[^\n]+")
_CLOSED = re.compile("=")
_NEXT_LINE = re.compile(r"\n(?!\s)")
MAX_HEADING_CHARS = 200
MAX_REPORT_CHARS = 4_000
_SEQUENCE = re.compile(r"\s*\d{3}\s*")
_HEADING = re.compile(r"\s*[A-Z]{4}\d{0,2} [A-Z]{4} \d{6}(?: (?P<bbb>[A-Z]{3}))?\s*")
_AWIPS_ID = re.compile(r"\s*(?:MTR|SPE|SAX)[A-Z0-9]{1,3}\s*")
_KIND_LINE = re.compile(r"\s*(?P<kind>METAR|SPECI)(?P<cor> COR)?\s*")
_DATE_LINE = re.compile(r"\s*\d{4}/\d\d/\d\d \d\d:\d\d\s*")
_REPORT = re.compile(
    r"(?<![A-Z0-9/])(?:(?P<kind>METAR|SPECI)\s+)?(?P<cor>COR\s+)?(?P<station>[A-Z][A-Z0-9]{3})\s+(?:COR\s+)?"
    r"(?P<time>\d{6})Z(?![0-9A-Z])"
)
_NO_STATION = frozenset({"NEXT", "LAST", "FROM", "TILL", "EST1", "STFD"})
_BODY_END = re.compile(r"(?<!\S)(?:RMK|TEMPO|BECMG|NOSIG|INTER|PROB\d\d)(?!\S)")
_VALUE = r"M?\d{2}"
_MISSING = r"(?://|XX|MM)?"
_PAIR = re.compile(rf"({_VALUE}|{_MISSING})/({_VALUE}|{_MISSING})")
_MALFORMED = re.compile(r"M?-?\d{1,3}/(?:M?-?\d{1,3})?")
_T_GROUP = re.compile(r"T(?:([01])(\d{3})|////)(?:([01])(\d{3})|////)?")
_WIND = re.compile(r"(\d{3}|VRB|///)P?(\d{2,3})(?:G P?(\d{2,3})|GP?(\d{2,3}))?(KTS?|MPS|KMH)?")
_CORRECTION = re.compile(r"COR|CC[A-Z]")
_KNOT_STATIONS = ("K", "P")  # United States: wind is in knots even if the unit is missing


@dataclass(frozen=True, slots=True)
class RawReport:
    """One report's text, with the kind and correction mark of its bulletin."""

    text: str
    kind: str | None = None
    corrected: bool = False


class BadReport(ValueError):
    """Why a report is refused."""


class NilReport(ValueError):
    """The station states that it has no report: not an error."""


def reports_in(body: bytes) -> Iterator[RawReport]:
    """Every report of a body of bulletins or lines, in order; other texts too, which `read` refuses."""
    text = body.replace(b"\xc2\xa0", b" ").translate(_PLAIN).decode("ascii")
    for kind, corrected, start, end in _bulletins(text):
        for chunk in _chunks(text, start, end):
            yield from _split(_one_spaced(chunk), kind, corrected)


def _one_spaced(text: str) -> str:
    """Collapses white space. Not by splitting: a body of one-letter words would become millions of objects."""
    text = text.replace("\n", " ").strip()
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def _chunks(text: str, start: int, end: int) -> Iterator[str]:
    """Texts between `=`; without any `=`, each unindented line begins a report."""
    border = _CLOSED if text.find("=", start, end) >= 0 else _NEXT_LINE
    for match in border.finditer(text, start, end):
        yield text[start : match.start()]
        start = match.end()
    yield text[start:end]


def _bulletins(text: str) -> Iterator[tuple[str | None, bool, int, int]]:
    """The places of texts between heading lines, with the kind and correction mark of their heading."""
    kind: str | None = None
    corrected = False
    begun = 0
    for match in _LINE.finditer(text):
        line = text[match.start() : min(match.end(), match.start() + MAX_HEADING_CHARS)]
        heading, kind_line = _HEADING.fullmatch(line), _KIND_LINE.fullmatch(line)
        if not (heading or kind_line or _is_frame(line)):
            continue
        yield kind, corrected, begun, match.start()
        begun = match.end()
        if heading:
            kind, corrected = None, (heading["bbb"] or "").startswith("CC")
        elif kind_line:
            kind, corrected = kind_line["kind"], corrected or kind_line["cor"] is not None
    yield kind, corrected, begun, len(text)


def _is_frame(line: str) -> bool:
    return any(pattern.fullmatch(line) for pattern in (_SEQUENCE, _AWIPS_ID, _DATE_LINE))


def _split(chunk: str, kind: str | None, corrected: bool) -> Iterator[RawReport]:
    """One chunk between two `=`; a second `CCCC ddhhmmZ` begins a second report."""
    starts = [match.start() for match in _REPORT.finditer(chunk) if _is_start(match)]
    if len(starts) < 2:
        if chunk and chunk not in ("METAR", "SPECI"):
            yield RawReport(chunk, kind, corrected)
        return
    bounds = [0 if not chunk[: starts[0]].strip() else starts[0], *starts[1:], len(chunk)]
    for begin, end in itertools.pairwise(bounds):
        yield RawReport(chunk[begin:end].strip(), kind, corrected)


def _is_start(match: re.Match[str]) -> bool:
    return match["station"] not in _NO_STATION


def observed_at(ddhhmm: str, at: datetime) -> datetime:
    """The latest time with this day, hour and minute that is at most 12 h after `at`. Raises BadReport."""
    day, hour, minute = int(ddhhmm[:2]), int(ddhhmm[2:4]), int(ddhhmm[4:])
    limit = at.astimezone(UTC) + AHEAD
    for months_back in range(MAX_MONTHS_BACK + 1):
        month = limit.year * 12 + limit.month - 1 - months_back
        try:
            candidate = datetime(month // 12, month % 12 + 1, day, hour, minute, tzinfo=UTC)
        except ValueError:
            continue  # no such day in this month, or no such hour
        if candidate <= limit:
            return candidate
    raise BadReport(f"no such time: {ddhhmm}Z")


def read(report: RawReport, at: datetime) -> Json:
    """The row of one report. Raises BadReport, or NilReport for a station without one."""
    text = report.text[:MAX_REPORT_CHARS]
    match = next((found for found in _REPORT.finditer(text) if _is_start(found)), None)
    if match is None:
        if re.search(r"\bNIL\b", text):
            raise NilReport
        raise BadReport("no station and time")
    tokens = text[match.end() :].split()
    if not tokens:
        raise BadReport("nothing after station and time")
    if "NIL" in tokens[:2]:
        raise NilReport
    head = text[: match.end()].split() + tokens[:2]
    corrected = report.corrected or any(_CORRECTION.fullmatch(token) for token in head if token != match["station"])
    measured = temperatures(text[match.end() :])
    return {
        "station": match["station"],
        "obs_time": iso(observed_at(match["time"], at)),
        **measured,
        "kind": match["kind"] or report.kind or _leading_kind(text) or "METAR",
        "corrected": corrected,
        "auto": "AUTO" in tokens[:2],
        "wind": _wind(tokens, match["station"], measured["flags"]),
        "raw": text[:MAX_RAW_CHARS],
    }


def iso(at: datetime) -> str:
    """ISO UTC with Z, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _leading_kind(text: str) -> str | None:
    first = text.split(maxsplit=1)[0]
    return first if first in ("METAR", "SPECI") else None


def temperatures(text: str) -> Json:
    """`temp_c`, `dewpoint_c`, `precision` (0.1 from the T group, else 1.0) and `flags` of the text after the time.

    The T group gives the tenths, unless it differs from the body by more than 1 °C: then the body's value is used.
    """
    flags: list[str] = []
    end = _BODY_END.search(text)
    body, remarks = (text[: end.start()], text[end.start() :]) if end else (text, "")
    temp, dew = _body_pair(body.split(), flags)
    fine_temp, fine_dew = _t_group(remarks.split())
    temp_c = _finer(temp, fine_temp, "temp", flags)
    dew_c = _finer(dew, fine_dew, "dewpoint", flags)
    precise = temp_c is not None and fine_temp is not None and "temp_t_group_ignored" not in flags
    if temp_c is None and not flags:
        flags.append("temp_missing")
    return {
        "temp_c": temp_c,
        "dewpoint_c": dew_c,
        "precision": None if temp_c is None else 0.1 if precise else 1.0,
        "flags": flags,
    }


def _body_pair(tokens: list[str], flags: list[str]) -> tuple[int | None, int | None]:
    """Temperature and dew point in tenths of °C, from the first group of the right form."""
    pairs = [match for token in tokens if (match := _PAIR.fullmatch(token))]
    known = next((match for match in pairs if any(char.isdigit() for char in match[0])), None)
    if known is not None:
        return _in_range(_tenths(known[1]), "temp", flags), _in_range(_tenths(known[2]), "dewpoint", flags)
    if any(_MALFORMED.fullmatch(token) and not _is_miles(tokens, index) for index, token in enumerate(tokens)):
        flags.append("temp_malformed")
    return None, None


def _is_miles(tokens: list[str], index: int) -> bool:
    return tokens[index + 1 : index + 2] == ["SM"]


def _tenths(text: str) -> int | None:
    if not text or not text[-1].isdigit():
        return None
    return -10 * int(text[1:]) if text[0] == "M" else 10 * int(text)


def _in_range(tenths: int | None, name: str, flags: list[str]) -> int | None:
    if tenths is None or MIN_TEMP_C * 10 <= tenths <= MAX_TEMP_C * 10:
        return tenths
    flags.append(f"{name}_out_of_range")
    return None


def _t_group(remarks: list[str]) -> tuple[int | None, int | None]:
    match = next((found for token in remarks if (found := _T_GROUP.fullmatch(token))), None)
    if match is None:
        return None, None
    pairs = ((match[1], match[2]), (match[3], match[4]))
    temp, dew = (None if value is None else int(value) * (-1 if sign == "1" else 1) for sign, value in pairs)
    return temp, dew


def _finer(body: int | None, fine: int | None, name: str, flags: list[str]) -> float | None:
    """Degrees, from the body's whole degrees and the remark's tenths."""
    best = body
    if fine is not None and MIN_TEMP_C * 10 <= fine <= MAX_TEMP_C * 10:
        if body is None or abs(fine - body) <= T_GROUP_TOLERANCE_TENTHS:
            best = fine
        else:
            flags.append(f"{name}_t_group_ignored")
    return None if best is None else best / 10 + 0.0


def _wind(tokens: list[str], station: str, flags: list[str]) -> Json | None:
    """Direction (None when variable), speed and gust in the report's own unit; None without a unit and a rule."""
    match = next((found for token in tokens[:4] if (found := _WIND.fullmatch(token))), None)
    if match is None:
        return None
    unit = (match[5] or ("KT" if station.startswith(_KNOT_STATIONS) else "")).removesuffix("S") or None
    unit = "MPS" if match[5] == "MPS" else unit
    if unit is None:
        return None
    gust = match[3] or match[4]
    dir_deg = int(match[1]) if match[1].isdigit() else None
    speed, gusting = int(match[2]), int(gust) if gust else None
    if (dir_deg or 0) > 360 or max(speed, gusting or 0) > MAX_WIND:
        flags.append("wind_out_of_range")
        return None
    return {"dir_deg": dir_deg, "speed": speed, "gust": gusting, "unit": unit}
