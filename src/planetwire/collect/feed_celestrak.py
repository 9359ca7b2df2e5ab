"""`celestrak_gp`: general perturbation elements of satellites, as OMM JSON; CSV, KVN, XML and TLE as imports."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from planetwire.collect.body import is_html, sample_of, without_bom
from planetwire.collect.http import FetchRules
from planetwire.collect.omm import BadRecord, catalogue_number, fact_of
from planetwire.collect.omm_text import csv_records, kvn_records, xml_records
from planetwire.collect.pieces import Piece, all_at_once, in_pieces
from planetwire.collect.records import Records, read_records, reject
from planetwire.collect.tle import tle_records
from planetwire.errors import FeedError
from planetwire.model import Fact, Parsed, Reject

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
        if not (records.items or records.rejects) and not _is_empty_list(body):
            raise FeedError(f"no element sets in the body: {sample_of(body)!r}", code="bad_body")
        reading = _Reading(records, notes)
        yield from in_pieces(
            reading.facts(), rows, whole=records.complete, total=reading.total_by_now, end=reading.parsed
        )


def _is_empty_list(body: bytes) -> bool:
    return body.strip()[:1] == b"["


def _records(body: bytes, notes: Counter[str]) -> Records:
    start = body.lstrip()[:1]
    if start in (b"[", b"{"):
        return _json_records(body)
    if start == b"<" and not is_html(body):
        return xml_records(body)
    text = body.decode("utf-8", "replace")
    first_line = next((line for line in text.splitlines() if line.strip()), "")
    if "NORAD_CAT_ID" in first_line.upper() and "," in first_line:
        return csv_records(text)
    if first_line.lstrip().startswith(("CCSDS_OMM_VERS", "OBJECT_NAME", "COMMENT")) and "=" in text:
        return kvn_records(text)
    records, flags = tle_records(text)
    notes.update(flags)
    return records


def _json_records(body: bytes) -> Records:
    if body.lstrip().startswith(b"{"):
        body = b"[" + body.strip() + b"]"  # one object instead of a list, as a query for one satellite may give
        records = read_records(body)
        if any("NORAD_CAT_ID" in item for _, item in records.items if isinstance(item, dict)):
            return records
        raise FeedError(f"no element sets in the object: {sample_of(body[1:-1])!r}", code="bad_body")
    return read_records(body)


@dataclass(slots=True)
class _Reading:
    """Conversion of one body's records, and what it met on the way."""

    records: Records
    notes: Counter[str]
    rejects: list[Reject] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    count: int = 0

    def facts(self) -> Iterator[Fact | None]:
        """One of each key: those that are there once as they come, at last the newest of each other.

        None for any other record. Records are let go as they are read, or their memory comes back all at once.
        """
        items = deque(self.records.items)
        self.records.items.clear()
        self.count = len(items)
        several = _several(items)
        newest: dict[str, Fact] = {}
        while items:
            fact = self._fact(*items.popleft())
            if fact is not None and fact.external_key in several:
                self._keep_newest(newest, fact)
                fact = None
            yield fact
        yield from newest.values()

    def _fact(self, index: int, item: object) -> Fact | None:
        try:
            return _fact(item)
        except BadRecord as bad:
            self.rejects.append(reject(bad.reason, item.sample if isinstance(item, BadRecord) else item, index))
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
        return self.count - len(self.rejects) - self.notes["duplicates"]

    def parsed(self, facts: list[Fact]) -> Parsed:
        """The result, once all facts were made."""
        return Parsed(
            rows=facts,
            rejects=sorted((*self.records.rejects, *self.rejects), key=lambda one: one.offset),
            complete=self.records.complete,
            notes=dict(self.notes),
            refused_keys=frozenset(self.refused),
        )


def _several(items: Iterable[tuple[int, object]]) -> frozenset[str]:
    """Keys that more than one record has, however it is spelt; quick where all are numbers and none repeats."""
    numbers = [item.get("NORAD_CAT_ID") if isinstance(item, dict) else None for _, item in items]
    if {*map(type, numbers)} == {int} and len({*numbers}) == len(numbers):
        return frozenset()
    counts = Counter(map(_key, numbers))
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
        raise BadRecord("not an object")
    return fact_of(item)


def _newer(one: Fact, other: Fact) -> bool:
    """By epoch; at equal epochs the later element set number."""
    return (one.data["EPOCH"], one.data["ELEMENT_SET_NO"]) > (other.data["EPOCH"], other.data["ELEMENT_SET_NO"])
