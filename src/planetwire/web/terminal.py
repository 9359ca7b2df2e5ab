"""Routes of the terminal: the list of cities, one city in detail or in brief, several at once, the registry.

Invariant: a snapshot's cursor is read before its rows, so that every event after it may be applied to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import orjson
from fastapi import APIRouter, Depends, Query, Request, Response

from planetwire.cities import CITIES, City, resolve
from planetwire.clock import utc_text
from planetwire.errors import BackendError, InputError, NotFound
from planetwire.model import Cursor, Json
from planetwire.observing import freshness_limits
from planetwire.ports import Clock, EventLog, ObservationStore
from planetwire.web import terminal_snapshot as snapshot
from planetwire.web.auth import Guard
from planetwire.web.snapshot_http import MEDIA_TYPE, Body, SnapshotCache, answer

BATCH_CITIES_MAX = 24
BATCH_TIMEOUT_S = 10.0


def find_city(name: str) -> City:
    """By key, airport code or alias, in any spelling. Raises NotFound `unknown_city`."""
    city = resolve(name)
    if city is None:
        raise NotFound(f"unknown city: {name[:40]!r}", code="unknown_city")
    return city


class Terminal:
    """Builds snapshots from the store; requests for the same state share one body."""

    def __init__(self, store: ObservationStore, log: EventLog, clock: Clock) -> None:
        self._store = store
        self._log = log
        self._clock = clock
        self._cache = SnapshotCache()

    async def scan(self) -> Body:
        """All cities in rank order, also those without a reading. Raises BackendError."""
        return await self._body("scan", "generated_at", self._scan)

    async def detail(self, city: City) -> Body:
        """One city with its curves. Raises BackendError."""
        return await self._body(f"detail {city.key}", "fetched_at", lambda now: self._detail(city, now))

    async def summary(self, city: City) -> Body:
        """One city's headline. Raises BackendError."""
        return await self._body(f"summary {city.key}", "fetched_at", lambda now: self._summary(city, now))

    async def _body(self, name: str, stamp: str, build: Callable[[datetime], Awaitable[Json]]) -> Body:
        cursor = Cursor(self._log.epoch, await self._log.head())
        body = self._cache.get(name, cursor, self._clock.monotonic())
        if body is None:
            now = self._clock.now()
            content = await build(now)
            body = self._cache.put(name, cursor, content, {stamp: utc_text(now)}, self._clock.monotonic())
        return body

    async def _scan(self, now: datetime) -> Json:
        latest = await self._store.latest()
        highs = await self._store.highs({city.key: snapshot.day_start(city, now) for city in CITIES})
        rows = [snapshot.scan_row(c, now, latest.get(c.key, ()), highs.get(c.key)) for c in CITIES]
        return {"rows": rows, "freshness_limits": freshness_limits()}

    async def _detail(self, city: City, now: datetime) -> Json:
        readings, high = await self._readings(city, now)
        history = await self._store.history(city.key, snapshot.curve_start(city, now))
        return await asyncio.to_thread(snapshot.detail, city, now, readings, history, high)

    async def _summary(self, city: City, now: datetime) -> Json:
        return snapshot.summary(city, now, *await self._readings(city, now))

    async def _readings(self, city: City, now: datetime) -> tuple[Sequence[Json], snapshot.High]:
        latest = await self._store.latest([city.key])
        highs = await self._store.highs({city.key: snapshot.day_start(city, now)})
        return latest.get(city.key, ()), highs.get(city.key)

    async def batch(self, names: Sequence[str]) -> Json:
        """Details of several cities. One that fails is listed in `errors` and takes nothing from the others."""
        results = await asyncio.gather(*(self._one_of_batch(name) for name in names))
        details: Json = {}
        errors: Json = {}
        for name, result in zip(names, results, strict=True):
            if isinstance(result, Body):
                details[find_city(name).key] = orjson.Fragment(result.raw)
            else:
                errors[name] = result
        return {
            "cities": list(details),
            "details": details,
            "errors": errors,
            "missing": list(errors),
            "partial": bool(errors),
        }

    async def _one_of_batch(self, name: str) -> Body | Json:
        try:
            async with asyncio.timeout(BATCH_TIMEOUT_S):
                return await self.detail(find_city(name))
        except (NotFound, BackendError) as error:
            return {"code": error.code, "error": error.message}
        except TimeoutError:
            return {"code": "timeout", "error": f"not ready within {BATCH_TIMEOUT_S:.0f} s"}


def batch_names(cities: str, limit: int) -> list[str]:
    """Names of a comma-separated list, once each. Raises InputError `no_cities`, `too_many_cities`, `bad_limit`."""
    if not 1 <= limit <= BATCH_CITIES_MAX:
        raise InputError(f"limit is 1 to {BATCH_CITIES_MAX}", code="bad_limit")
    names = list(dict.fromkeys(name.strip() for name in cities.split(",") if name.strip()))
    if not names:
        raise InputError("name at least one city: cities=a,b", code="no_cities")
    if len(names) > limit:
        raise InputError(f"at most {limit} cities at once", code="too_many_cities")
    return names


def router(store: ObservationStore, log: EventLog, clock: Clock, guard: Guard) -> APIRouter:
    """The terminal's reading routes."""
    routes = APIRouter(dependencies=[Depends(guard.reader)], tags=["terminal"])
    terminal = Terminal(store, log, clock)
    registry = orjson.dumps({"items": [snapshot.registry_entry(city) for city in CITIES], "next_cursor": None})

    @routes.get("/api/scan/terminal")
    async def scan(request: Request) -> Response:
        """All cities with their current reading and the high of their local day."""
        return answer(request, await terminal.scan())

    @routes.get("/api/city/{name}/detail")
    async def detail(request: Request, name: str) -> Response:
        """One city's curves of the local day so far, 24 hours at least."""
        return answer(request, await terminal.detail(find_city(name)))

    @routes.get("/api/city/{name}/summary")
    async def summary(request: Request, name: str) -> Response:
        """One city's current reading."""
        return answer(request, await terminal.summary(find_city(name)))

    @routes.get("/api/cities")
    async def cities() -> Response:
        """The registry in rank order."""
        return Response(registry, media_type=MEDIA_TYPE)

    @routes.get("/api/cities/detail-batch")
    async def detail_batch(cities: str = Query(""), limit: int = Query(BATCH_CITIES_MAX)) -> Response:
        """Details of up to 24 cities; one that fails is listed in `errors`."""
        content = await terminal.batch(batch_names(cities, limit))
        return Response(orjson.dumps(content), media_type=MEDIA_TYPE)

    return routes
