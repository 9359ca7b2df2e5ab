"""Routes of the terminal: the list of cities, one city in detail or in brief, several at once, the registry.

Invariant: a snapshot's cursor is read before its rows, so that every event after it may be applied to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

import orjson
from fastapi import APIRouter, Depends, Query, Request, Response

from planetwire.cities import CITIES, City, resolve
from planetwire.errors import BackendError, InputError, NotFound
from planetwire.model import Cursor, Json
from planetwire.observing import Sources
from planetwire.ports import Clock, EventLog, ObservationStore
from planetwire.runtime.clock import utc_text
from planetwire.web.access.auth import Guard
from planetwire.web.snapshots.encoded import Encoded, digest
from planetwire.web.snapshots.encodings import ENCODINGS, Encoding, compress
from planetwire.web.snapshots.snapshot_http import RESPONSES, answer, asked_encoding
from planetwire.web.terminal import snapshot
from planetwire.web.terminal.bodies import Generation, TerminalBodies

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

    def __init__(
        self, store: ObservationStore, log: EventLog, clock: Clock, sources: Sources, bodies: TerminalBodies
    ) -> None:
        self._store = store
        self._log = log
        self._clock = clock
        self._sources = sources
        self._bodies = bodies

    async def scan(self, encoding: Encoding) -> Encoded:
        """All cities in rank order, also those without a reading. Raises BackendError."""
        return await self._body("scan", "generated_at", self._scan, encoding)

    async def detail(self, city: City, encoding: Encoding) -> Encoded:
        """One city with its curves. Raises BackendError."""
        return await self._body(f"detail {city.key}", "fetched_at", lambda now: self._detail(city, now), encoding)

    async def summary(self, city: City, encoding: Encoding) -> Encoded:
        """One city's headline. Raises BackendError."""
        return await self._body(f"summary {city.key}", "fetched_at", lambda now: self._summary(city, now), encoding)

    async def _body(
        self, name: str, stamp: str, content: Callable[[datetime], Awaitable[Json]], encoding: Encoding
    ) -> Encoded:
        async def build() -> tuple[Json, Json]:
            now = self._clock.now()
            return await content(now), {stamp: utc_text(now)}

        return await self._bodies.get(name, await self._cursor(), encoding, build)

    async def _cursor(self) -> Cursor:
        return Cursor(self._log.epoch, await self._log.head())

    async def _scan(self, now: datetime) -> Json:
        latest = await self._store.latest()
        highs = await self._store.highs({city.key: snapshot.day_start(city, now) for city in CITIES})
        rows = [snapshot.scan_row(self._sources, c, now, latest.get(c.key, ()), highs.get(c.key)) for c in CITIES]
        return {"rows": rows, "freshness_limits": self._sources.freshness_limits()}

    async def _detail(self, city: City, now: datetime) -> Json:
        readings, high = await self._readings(city, now)
        history = await self._store.history(city.key, snapshot.curve_start(city, now))
        return await asyncio.to_thread(snapshot.detail, self._sources, city, now, readings, history, high)

    async def _summary(self, city: City, now: datetime) -> Json:
        return snapshot.summary(self._sources, city, now, *await self._readings(city, now))

    async def _readings(self, city: City, now: datetime) -> tuple[Sequence[Json], snapshot.High]:
        latest = await self._store.latest([city.key])
        highs = await self._store.highs({city.key: snapshot.day_start(city, now)})
        return latest.get(city.key, ()), highs.get(city.key)

    async def batch(self, names: Sequence[str], encoding: Encoding) -> Encoded:
        """Details of several cities. One that fails is listed in `errors` and does not affect the others."""
        cursor = await self._cursor()
        content = {**await self._details(names), "revision": cursor.revision, "epoch": cursor.epoch}
        return await Encoded.of(cursor, orjson.dumps(content)).compressed(encoding)

    async def _details(self, names: Sequence[str]) -> Json:
        results = await asyncio.gather(*(self._one_of_batch(name) for name in names))
        details: Json = {}
        errors: Json = {}
        for name, result in zip(names, results, strict=True):
            if isinstance(result, Encoded):
                details[find_city(name).key] = orjson.Fragment(bytes(result.body))
            else:
                errors[name] = result
        return {
            "cities": list(details),
            "details": details,
            "errors": errors,
            "missing": list(errors),
            "partial": bool(errors),
        }

    async def _one_of_batch(self, name: str) -> Encoded | Json:
        try:
            async with asyncio.timeout(BATCH_TIMEOUT_S):
                return await self.detail(find_city(name), "identity")
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


def router(
    store: ObservationStore,
    log: EventLog,
    clock: Clock,
    sources: Sources,
    guard: Guard,
    generation: Generation = lambda name: 0,
) -> APIRouter:
    """The terminal's reading routes. `generation` of a snapshot's name changes when a cache pattern matches it."""
    routes = APIRouter(dependencies=[Depends(guard.reader)], tags=["terminal"])
    terminal = Terminal(store, log, clock, sources, TerminalBodies(clock, generation))
    registry = _registry()

    @routes.get("/api/scan/terminal", responses=RESPONSES)
    async def scan(request: Request) -> Response:
        """All cities with their current reading and the high of their local day."""
        return await _answer(request, terminal.scan)

    @routes.get("/api/city/{name}/detail", responses=RESPONSES)
    async def detail(request: Request, name: str) -> Response:
        """One city's curves of the local day so far, 24 hours at least."""
        return await _answer(request, partial(terminal.detail, find_city(name)))

    @routes.get("/api/city/{name}/summary", responses=RESPONSES)
    async def summary(request: Request, name: str) -> Response:
        """One city's current reading."""
        return await _answer(request, partial(terminal.summary, find_city(name)))

    @routes.get("/api/cities", responses=RESPONSES)
    async def cities(request: Request) -> Response:
        """The registry in rank order."""
        encoding = asked_encoding(request)
        return answer(request, registry[encoding], encoding)

    @routes.get("/api/cities/detail-batch", responses=RESPONSES)
    async def detail_batch(request: Request, cities: str = Query(""), limit: int = Query(BATCH_CITIES_MAX)) -> Response:
        """Details of up to 24 cities; one that fails is listed in `errors`."""
        return await _answer(request, partial(terminal.batch, batch_names(cities, limit)))

    return routes


def _registry() -> Mapping[Encoding, Encoded]:
    body = orjson.dumps({"items": [snapshot.registry_entry(city) for city in CITIES], "next_cursor": None})
    forms = {encoding: compress(body, encoding) for encoding in ENCODINGS}
    return {encoding: Encoded(f'"{digest(form)}"', form) for encoding, form in forms.items()}


async def _answer(request: Request, give: Callable[[Encoding], Awaitable[Encoded]]) -> Response:
    encoding = asked_encoding(request)
    encoded = await give(encoding)
    cursor = encoded.cursor
    named = {"X-Patch-Revision": str(cursor.revision), "X-Patch-Epoch": cursor.epoch}
    return answer(request, encoded, encoding, named)
