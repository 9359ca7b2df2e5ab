"""`celestrak_gp`: general perturbation elements of satellites, as OMM JSON; CSV, KVN, XML and TLE as imports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from planetwire.collect.body import is_html, sample_of, without_bom
from planetwire.collect.http import FetchRules
from planetwire.collect.omm import BadRecord, fact_of
from planetwire.collect.omm_text import csv_records, kvn_records, xml_records
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
        """Satellites of a body in any of the five formats, told by the body itself; `at` is not needed."""
        body = without_bom(body)
        notes: Counter[str] = Counter()
        records = _records(body, notes)
        facts, rejects, keys = _facts(records.items, notes)
        if not (records.items or records.rejects) and not _is_empty_list(body):
            raise FeedError(f"no element sets in the body: {sample_of(body)!r}", code="bad_body")
        return Parsed(
            rows=facts,
            rejects=sorted((*records.rejects, *rejects), key=lambda one: one.offset),
            complete=records.complete,
            notes=dict(notes),
            refused_keys=frozenset(keys),
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


def _facts(items: Iterable[tuple[int, object]], notes: Counter[str]) -> tuple[list[Fact], list[Reject], set[str]]:
    newest: dict[str, Fact] = {}
    rejects: list[Reject] = []
    refused: set[str] = set()
    for index, item in items:
        try:
            fact = _fact(item)
        except BadRecord as bad:
            rejects.append(reject(bad.reason, item.sample if isinstance(item, BadRecord) else item, index))
            refused |= {bad.key} if bad.key else set()
            continue
        before = newest.get(fact.external_key)
        if before is not None:
            notes["duplicates"] += 1
        if before is None or _newer(fact, before):
            newest[fact.external_key] = fact
    return list(newest.values()), rejects, refused


def _fact(item: object) -> Fact:
    if isinstance(item, BadRecord):
        raise item
    if not isinstance(item, dict):
        raise BadRecord("not an object")
    return fact_of(item)


def _newer(one: Fact, other: Fact) -> bool:
    """By epoch; at equal epochs the later element set number."""
    return (one.data["EPOCH"], one.data["ELEMENT_SET_NO"]) > (other.data["EPOCH"], other.data["ELEMENT_SET_NO"])
