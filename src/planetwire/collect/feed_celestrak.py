"""`celestrak_gp`: general perturbation elements of satellites, as OMM JSON; CSV, KVN, XML and TLE as imports."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from planetwire.collect.formats.body import is_html, sample_of, without_bom
from planetwire.collect.formats.json_records import json_records
from planetwire.collect.formats.lines import lines_of
from planetwire.collect.formats.omm import BadRecord, catalogue_number, fact_of
from planetwire.collect.formats.omm_text import NAMED, csv_records, kvn_records
from planetwire.collect.formats.omm_xml import xml_records
from planetwire.collect.formats.pieces import Piece, all_at_once, in_pieces
from planetwire.collect.formats.records import MAX_RECORD_BYTES, Records, reject
from planetwire.collect.formats.tle import tle_records
from planetwire.collect.http.client import FetchRules
from planetwire.errors import FeedError
from planetwire.model import Fact, Parsed

NO_DATA = "No GP data found"
HOUR_S = 3600.0


class CelestrakGp:
    """The whole catalogue in one body: a snapshot, so what is missing from it is swept.

    The provider asks for one download per group and update, and answers a repetition with 403 and a text.
    """

    source = "celestrak_gp"
    kind = "satellite"
    default_url = "https://celestrak.org/NORAD/elements/gp.php?GROUP=active&FORMAT=json"
    interval_s = 4 * HOUR_S
    floor_s = 2 * HOUR_S
    sweeps = True
    rules = FetchRules(refusal_cooldown_s=2 * HOUR_S, empty_text=NO_DATA)

    def parse(self, body: bytes, at: datetime) -> Parsed:
        """Satellites of a body in any of the five formats, told by the body itself; `at` is not needed.

        One with several records keeps its newest, and comes after those with one.
        """
        return all_at_once(self.pieces(body, at, sys.maxsize))

    def pieces(self, body: bytes, at: datetime, rows: int) -> Iterator[Piece | None]:
        """The same piece by piece: the body is read and checked as a whole at first, then converted."""
        body = without_bom(body)
        notes: Counter[str] = Counter()
        records = _records(body, notes)
        if not records.count and _first_byte(body) != b"[":
            raise FeedError(f"no element sets in the body: {sample_of(body)!r}", code="bad_body")
        reading = _Reading(records, notes)
        yield from in_pieces(
            reading.facts(), rows, whole=records.complete, total=reading.total_by_now, end=reading.parsed
        )


_START = re.compile(rb"\s*(.?)", re.DOTALL)


def _first_byte(body: bytes) -> bytes:
    """The first that is no space."""
    match = _START.match(body)
    return match[1] if match else b""


def _records(body: bytes, notes: Counter[str]) -> Records:
    start = _first_byte(body)
    if start in (b"[", b"{"):
        return _json_records(body)
    if start == b"<" and not is_html(body):
        return xml_records(body)
    first_line = _first_line(body)
    if NAMED in first_line.upper() and "," in first_line:
        return csv_records(body)
    if first_line.startswith(("CCSDS_OMM_VERS", "OBJECT_NAME", "COMMENT")) and b"=" in body:
        return kvn_records(body)
    return tle_records(body, notes)


def _first_line(body: bytes) -> str:
    start, end = next(lines_of(body), (0, 0))
    return body[start : min(end, start + MAX_RECORD_BYTES)].decode("utf-8", "replace").lstrip()


def _json_records(body: bytes) -> Records:
    """A list, or one object instead of a list, as a query for one satellite may give."""
    records = json_records(body, named=NAMED)
    if _first_byte(body) == b"{" and all(place[2] is None for _, place in records.places):
        raise FeedError(f"no element sets in the object: {sample_of(body)!r}", code="bad_body")
    return records


@dataclass(slots=True)
class _Reading:
    """Conversion of one body's records, and what it met on the way."""

    records: Records
    notes: Counter[str]
    refused: set[str] = field(default_factory=set)

    def facts(self) -> Iterator[Fact | None]:
        """One of each key: those that are there once as they come, at last the newest of each other.

        None for any other record.
        """
        several = _several(place[2] for _, place in self.records.places)
        newest: dict[str, Fact] = {}
        for index, item in self.records.items():
            fact = self._fact(index, item)
            if fact is not None and fact.external_key in several:
                self._keep_newest(newest, fact)
                fact = None
            yield fact
        yield from newest.values()

    def _fact(self, index: int, item: object) -> Fact | None:
        try:
            return _fact(item)
        except BadRecord as bad:
            sample = item.sample if isinstance(item, BadRecord) else item
            self.records.rejects.append(reject(bad.reason, sample, index, bad.code))
            self.refused |= {bad.key} if bad.key else set()
            return None

    def _keep_newest(self, newest: dict[str, Fact], fact: Fact) -> None:
        before = newest.get(fact.external_key)
        if before is not None:
            self.notes["duplicates"] += 1
        if before is None or _newer(fact, before):
            newest[fact.external_key] = fact

    def total_by_now(self) -> int:
        """Records that were not refused or passed over yet."""
        return self.records.count - len(self.records.rejects) - self.notes["duplicates"]

    def parsed(self, facts: list[Fact]) -> Parsed:
        """The result, once all facts were made."""
        return Parsed(
            rows=facts,
            rejects=sorted(self.records.rejects, key=lambda one: one.offset),
            complete=self.records.complete,
            notes=dict(self.notes),
            refused_keys=frozenset(self.refused),
        )


def _several(names: Iterable[object]) -> frozenset[str]:
    """Keys that more than one record has, however it is spelt."""
    counts = Counter(map(_key, names))
    return frozenset(key for key, count in counts.items() if key is not None and count > 1)


def _key(value: object) -> str | None:
    try:
        return str(catalogue_number(value))
    except BadRecord:
        return None


def _fact(item: object) -> Fact:
    if isinstance(item, BadRecord):
        raise item
    if not isinstance(item, dict):
        raise BadRecord("not an object", code="no_record")
    return fact_of(item)


def _newer(one: Fact, other: Fact) -> bool:
    """By epoch; at equal epochs the later element set number."""
    return (one.data["EPOCH"], one.data["ELEMENT_SET_NO"]) > (other.data["EPOCH"], other.data["ELEMENT_SET_NO"])
