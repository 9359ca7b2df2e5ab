"""The simulated earthquake bulletin: `/earthquakes/feed/v1.0/summary/<size>_<span>.geojson`.

Events lie in a fixed grid of time slots, so the events of a time do not depend on the time of the request. Before the
server's start only every eighth slot is filled, which is about the real rate; from then on every one is.
"""

from __future__ import annotations

import math
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import orjson

from planetwire.demo.providers.answer import GEOJSON, Answer, Query, text
from planetwire.demo.providers.noise import bits, gauss, spread, unit
from planetwire.demo.providers.plates import Belt, belt_at, place_of, point_on

SLOT_S = 40
HISTORY_EVERY = 8
SPANS_S = {"hour": 3_600, "day": 86_400, "week": 7 * 86_400, "month": 30 * 86_400}
SIZES: dict[str, float | None] = {"all": None, "1.0": 1.0, "2.5": 2.5, "4.5": 4.5, "significant": None}
SITE = "https://earthquake.usgs.gov"
_PATH = re.compile(r"^/earthquakes/feed/v1\.0/summary/(all|1\.0|2\.5|4\.5|significant)_(hour|day|week|month)\.geojson$")
_TITLES = {"hour": "Past Hour", "day": "Past Day", "week": "Past Week", "month": "Past Month"}
_LARGEST = 8.2
_CODE_BASE = {"ci": 40_000_000, "nc": 75_000_000, "nn": 900_000, "hv": 74_000_000, "pr": 71_000_000, "uw": 62_000_000}


@dataclass(frozen=True, slots=True)
class Quake:
    """One revision of an event. `key` is its slot; times are epoch milliseconds."""

    key: int
    belt: Belt
    ids: tuple[str, ...]
    time_ms: int
    updated_ms: int
    mag: float | None
    lat: float
    lon: float
    depth_km: float | None
    place: str | None
    kind: str
    status: str


def _magnitude(belt: Belt, *keys: int) -> float:
    """A tenth of the events for each whole magnitude (b = 1), limited to the largest known."""
    return min(_LARGEST, belt.least_mag - math.log10(1 - unit(*keys)))


def _depth(belt: Belt, *keys: int) -> float:
    if belt.slab and unit(*keys, 1) < 0.35:
        return spread(35, 120, *keys, 2) if unit(*keys, 3) < 0.75 else spread(120, 620, *keys, 2)
    return -2.0 + 4 - math.log(1 - unit(*keys, 2)) * (10 if belt.net == "us" else 4) - (2 if belt.net == "hv" else 0)


def _ids(belt: Belt, slot: int, *keys: int) -> tuple[str, ...]:
    """Preferred id first. Some regional events also get a national id later."""
    national = "us7000" + "".join("bcdfghjkmnpqrstuvwxyz"[(slot // 21**power) % 21] for power in (5, 4, 3, 2, 1, 0))
    if belt.net == "us":
        return (national,)
    if belt.net == "ak":
        return (f"ak026{slot % 36**6:06d}", national) if unit(*keys) < 0.06 else (f"ak026{slot % 36**6:06d}",)
    own = f"{belt.net}{_CODE_BASE[belt.net] + slot % 9_000_000:08d}"
    return (own, national) if unit(*keys) < 0.06 else (own,)


@lru_cache(maxsize=100_000)
def born(seed: int, slot: int) -> Quake:
    """The true event of a slot, before any reporting error."""
    keys = (seed, 401, slot)
    belt = belt_at(unit(*keys, 1))
    lat, lon = point_on(belt, unit(*keys, 2), gauss(*keys, 3) * belt.width_km / 2)
    mag = _magnitude(belt, *keys, 4)
    at_ms = int((slot * SLOT_S + spread(0, SLOT_S / 2, *keys, 5)) * 1000)
    quarry = belt.net in ("ci", "nc", "uw") and mag < 2 and unit(*keys, 6) < 0.04
    depth = -0.4 if quarry else _depth(belt, *keys, 7)
    return Quake(
        slot,
        belt,
        _ids(belt, slot, *keys, 8),
        at_ms,
        at_ms,
        mag,
        lat,
        lon,
        depth,
        place_of(belt, lat, lon),
        "quarry blast" if quarry else "earthquake",
        "automatic",
    )


def seen(seed: int, slot: int, now_s: float) -> Quake | None:
    """The slot's event as published at `now_s`: first an automatic report, later corrected and reviewed.

    None before its first report, and again after a false one was retracted.
    """
    true = born(seed, slot)
    keys = (seed, 402, slot)
    age_s = now_s - true.time_ms / 1000
    first_s, second_s, third_s = spread(4, 18, *keys, 1), spread(180, 700, *keys, 2), spread(1_500, 5_400, *keys, 3)
    if age_s < first_s or (unit(*keys, 4) < 0.015 and age_s > second_s):
        return None
    if age_s >= third_s:
        return _stated(true, third_s, 0.0, "reviewed", true.ids[::-1])
    if age_s >= second_s:
        return _stated(true, second_s, 0.3, "automatic", true.ids)
    rough = _stated(true, first_s, 1.0, "automatic", true.ids[:1])
    lacking = bits(*keys, 5) % 60
    return replace(
        rough,
        mag=None if lacking == 0 else rough.mag,
        place=None if lacking == 1 else rough.place,
        depth_km=None if lacking == 2 else rough.depth_km,
    )


def _stated(true: Quake, after_s: float, error: float, status: str, ids: tuple[str, ...]) -> Quake:
    keys = (403, true.key, int(error * 10))
    assert true.mag is not None and true.depth_km is not None
    lat, lon = true.lat + gauss(*keys, 1) * 0.03 * error, true.lon + gauss(*keys, 2) * 0.03 * error
    return replace(
        true,
        ids=ids,
        updated_ms=true.time_ms + int(after_s * 1000),
        mag=round(true.mag + gauss(*keys, 3) * 0.15 * error, 1),
        lat=round(lat, 4),
        lon=round((lon + 180) % 360 - 180, 4),
        depth_km=round(max(-3.0, true.depth_km + gauss(*keys, 4) * 3 * error), 2),
        place=place_of(true.belt, lat, lon),
        status=status,
    )


def _significance(mag: float) -> int:
    return round(max(0.0, mag) ** 2 * 100 / 6.5)


def _felt(quake: Quake, mag: float) -> dict[str, Any]:
    """The public response; only events that people could feel have any."""
    if mag < 4.0 or (quake.belt.sea and mag < 5.5):
        return {"felt": None, "cdi": None, "mmi": None, "alert": None}
    count = 1 + bits(404, quake.key) % int(10 ** (mag - 3))
    alert = None if mag < 5.5 else "green" if mag < 6.8 else "yellow" if mag < 7.4 else "orange"
    return {"felt": count, "cdi": round(mag - 1, 1), "mmi": round(mag - 0.8, 3) if alert else None, "alert": alert}


def feature(quake: Quake) -> dict[str, Any]:
    """The event in the feed's form, keys in the feed's order."""
    mag, preferred = quake.mag, quake.ids[0]
    keys = (405, quake.key)
    regional = quake.belt.net != "us"
    scale = ("ml" if mag is None or mag >= 1.5 else "md") if regional else ("mww" if (mag or 0) >= 5.8 else "mb")
    properties = {
        "mag": mag,
        "place": quake.place,
        "time": quake.time_ms,
        "updated": quake.updated_ms,
        "tz": None,
        "url": f"{SITE}/earthquakes/eventpage/{preferred}",
        "detail": f"{SITE}/earthquakes/feed/v1.0/detail/{preferred}.geojson",
        **_felt(quake, mag or 0.0),
        "status": quake.status,
        "tsunami": int(quake.belt.sea and (mag or 0) >= 6.5),
        "sig": _significance(mag or 0.0),
        "net": preferred[:2],
        "code": preferred[2:],
        "ids": f",{','.join(quake.ids)},",
        "sources": f",{','.join(one[:2] for one in quake.ids)},",
        "types": ",nearby-cities,origin,phase-data," if regional else ",origin,phase-data,",
        "nst": None if preferred.startswith("ak") else 6 + bits(*keys, 1) % 90,
        "dmin": None if preferred.startswith("ak") else round(spread(0.01, 0.4 if regional else 6, *keys, 2), 5),
        "rms": round(spread(0.05, 1.1, *keys, 3), 2),
        "gap": None if preferred.startswith("ak") else 20 + bits(*keys, 4) % 200,
        "magType": None if mag is None else scale,
        "type": quake.kind,
        "title": _title(quake),
    }
    where = [quake.lon if quake.lon < 180 else -180.0, quake.lat, quake.depth_km]
    point = {"type": "Point", "coordinates": where}
    return {"type": "Feature", "properties": properties, "geometry": point, "id": preferred}


def _title(quake: Quake) -> str:
    what = "" if quake.kind == "earthquake" else f" {quake.kind.title()}"
    return f"M {'?' if quake.mag is None else quake.mag}{what} - {quake.place or 'unknown place'}"


class Quakes:
    """Answers the summary feeds. Thread-safe; an unchanged set of events gives the same body."""

    def __init__(self, seed: int, start_s: float) -> None:
        self._seed = seed
        self._dense_from = math.ceil(start_s / SLOT_S)
        self._lock = threading.Lock()
        self._bodies: OrderedDict[tuple[str, int, int], Answer] = OrderedDict()

    def events(self, now_s: float, span_s: int) -> Iterator[Quake]:
        """Events of the last `span_s`, newest first."""
        for slot in range(int(now_s // SLOT_S), int((now_s - span_s) // SLOT_S) - 1, -1):
            if slot < self._dense_from and slot % HISTORY_EVERY:
                continue
            quake = seen(self._seed, slot, now_s)
            if quake is not None and quake.time_ms >= (now_s - span_s) * 1000:
                yield quake

    def answer(self, path: str, query: Query, now_s: float) -> Answer:
        """A summary feed; 404 for an unknown name."""
        match = _PATH.match(path)
        if match is None:
            return text(404, "Not Found")
        size, span = match.group(1), match.group(2)
        with self._lock:
            chosen = [one for one in self.events(now_s, SPANS_S[span]) if _belongs(one, size)]
            changed_ms = max((one.updated_ms for one in chosen), default=0)
            key = (f"{size}_{span}", changed_ms, len(chosen))
            if key not in self._bodies:
                self._bodies[key] = _body(path, size, span, chosen, now_s)
                if len(self._bodies) > 40:
                    self._bodies.popitem(last=False)
            return self._bodies[key]


def _belongs(quake: Quake, size: str) -> bool:
    if size == "significant":
        return _significance(quake.mag or 0.0) >= 600
    least = SIZES[size]
    return least is None or (quake.mag is not None and quake.mag >= least)


def _body(path: str, size: str, span: str, chosen: list[Quake], now_s: float) -> Answer:
    features = [feature(quake) for quake in chosen]
    what = {"all": "All", "significant": "Significant"}.get(size, f"Magnitude {size}+")
    collection: dict[str, Any] = {
        "type": "FeatureCollection",
        "metadata": {
            "generated": int(now_s) * 1000,
            "url": SITE + path,
            "title": f"USGS {what} Earthquakes, {_TITLES[span]}",
            "status": 200,
            "api": "1.14.1",
            "count": len(features),
        },
        "features": features,
    }
    if features:
        axes = list(zip(*(one["geometry"]["coordinates"] for one in features), strict=True))
        columns = [[value for value in axis if value is not None] or [0.0] for axis in axes]
        collection["bbox"] = [min(column) for column in columns] + [max(column) for column in columns]
    return Answer(orjson.dumps(collection), GEOJSON, modified_s=now_s // 1)
