"""Computes what a group of patches writes to the store: revisions, events, rows. Pure.

The result equals that of the patches one after the other, however they are grouped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from planetwire.facts.observations.wire import Key, key_of, wire_body
from planetwire.model import Appended, LogEvent, ObservationPatch
from planetwire.observing import HEADLINE_SERIES

HEADLINE = frozenset(map(str, HEADLINE_SERIES))
UNTIMED_RETRY_MS = 60_000  # a reading without a time counts as a repeat of the last one only within this

Slot = tuple[str, str, str, int]
"""City, source, series, observation time: where keys of several contents may lie."""


@dataclass(frozen=True, slots=True)
class Known:
    """The stored state that the patches touch."""

    keys: Mapping[Key, tuple[int, int]]
    """Revision, and when it was accepted in ms."""
    previous: Mapping[str, int]
    """Last revision of each city."""
    newest_ms: Mapping[str, int]
    """Time of each city's newest headline reading."""


class Reading(NamedTuple):
    """One value of a curve. A tuple for speed: thousands are made per second."""

    city: str
    series_key: str
    source: str
    obs_time_ms: int
    temp_c: float
    max_so_far_c: float | None
    revision: int
    station_code: str | None
    station_label: str | None


@dataclass(slots=True)
class Group:
    """The rows to write, and the answer: one `Appended` per patch."""

    appended: list[Appended] = field(default_factory=list)
    events: list[tuple[LogEvent, ObservationPatch]] = field(default_factory=list)
    keys: dict[Key, int] = field(default_factory=dict)
    forgotten: set[Slot] = field(default_factory=set)
    readings: dict[tuple[str, int, str, str], Reading] = field(default_factory=dict)
    """By city, time, series, source."""


def slots(keys: Iterable[Key]) -> list[Slot]:
    """The distinct slots of these keys, in order."""
    return sorted({key[:4] for key in keys})


def keyed(patches: Iterable[ObservationPatch]) -> list[tuple[Key, ObservationPatch]]:
    """Each patch with its key."""
    return [(key_of(patch), patch) for patch in patches]


def newest(readings: Iterable[Reading]) -> list[Reading]:
    """The newest reading of each curve."""
    found: dict[tuple[str, str, str], Reading] = {}
    for reading in readings:
        curve = (reading.city, reading.series_key, reading.source)
        if curve not in found or reading.obs_time_ms > found[curve].obs_time_ms:
            found[curve] = reading
    return list(found.values())


def grouped(patches: Sequence[tuple[Key, ObservationPatch]], known: Known, head: int, epoch: str, now_ms: int) -> Group:
    """The result of accepting the patches now, after `head`."""
    group = Group()
    previous, newest_ms = dict(known.previous), dict(known.newest_ms)
    for key, patch in patches:
        revision = _accepted(group, known, key, now_ms)
        if revision is not None:
            group.appended.append(Appended(revision, True, None))
            continue
        if not key[3]:
            _forget(group, key[:4])
        head += 1
        at, before = key[3] or patch.ts_ms, previous.get(patch.city, 0)
        body = wire_body(patch, head, before, epoch, is_latest=_is_latest(patch, at, newest_ms))
        event = LogEvent(f"city:{patch.city}", head, before, body)
        group.keys[key] = previous[patch.city] = head
        group.events.append((event, patch))
        group.appended.append(Appended(head, False, event))
        _read(group, patch, at, head)
    return group


def _accepted(group: Group, known: Known, key: Key, now_ms: int) -> int | None:
    """The revision of the patch that this one repeats, if any."""
    if key in group.keys:
        return group.keys[key]
    found = known.keys.get(key)
    if found is None or key[:4] in group.forgotten or (not key[3] and now_ms - found[1] > UNTIMED_RETRY_MS):
        return None
    return found[0]


def _forget(group: Group, slot: Slot) -> None:
    """Of readings without a time only the last content is kept, so that a value that returns is new."""
    if slot in group.forgotten:
        for key in [key for key in group.keys if key[:4] == slot]:
            del group.keys[key]
    group.forgotten.add(slot)


def _is_latest(patch: ObservationPatch, at: int, newest_ms: dict[str, int]) -> bool:
    for series, _ in patch.points:
        if series in HEADLINE:
            newest = newest_ms.get(patch.city, 0)
            newest_ms[patch.city] = max(newest, at)
            return at >= newest
    return False


def _read(group: Group, patch: ObservationPatch, at: int, revision: int) -> None:
    city, source, payload = patch.city, patch.source, patch.payload
    code, label = payload.get("station_code"), payload.get("station_label")
    for series_key, temp_c in patch.points:
        high = payload.get("max_so_far") if series_key == payload["series_key"] else None
        reading = Reading(city, series_key, source, at, temp_c, high, revision, code, label)
        group.readings[city, at, series_key, source] = reading
