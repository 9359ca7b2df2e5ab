"""The HTTP sink against the real ingest route."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import httpx
import pytest
from fastapi import FastAPI, Request, Response

from planetwire.collect.push.sink_http import ATTEMPTS, MAX_BYTES, HttpPatchSink, bodies_of
from planetwire.errors import BackendError
from planetwire.model import Json
from planetwire.runtime.clock import ManualClock
from planetwire.web.terminal.ingest import IngestEndpoint, router

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)


class QuickClock(ManualClock):
    """Counts waits instead of waiting."""

    waits: list[float]

    def __init__(self) -> None:
        super().__init__(NOW)
        self.waits = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


class OpenGuard:
    """Lets the right token in."""

    async def check_ingest(self, authorization: str | None, address: str) -> None:
        assert authorization == "Bearer secret"


def ingest_app(results: Sequence[Json], failures: int = 0) -> tuple[FastAPI, list[int]]:
    """The ingest route answering with `results`; the first `failures` requests get a 503."""
    app, sizes = FastAPI(), []

    async def accept(raws: Sequence[object]) -> Sequence[Json]:
        sizes.append(len(raws))
        return [results[index % len(results)] for index in range(len(raws))]

    @app.middleware("http")
    async def flaky(request: Request, call_next):  # type: ignore[no-untyped-def]
        nonlocal failures
        if failures > 0:
            failures -= 1
            return Response("busy", 503)
        return await call_next(request)

    app.include_router(router(IngestEndpoint(accept, OpenGuard())))  # type: ignore[arg-type]
    return app, sizes


def sink_to(app: FastAPI) -> tuple[HttpPatchSink, QuickClock]:
    clock = QuickClock()
    return HttpPatchSink("http://web", "secret", clock, transport=httpx.ASGITransport(app=app)), clock


async def test_new_patches_are_counted_and_refused_ones_are_done() -> None:
    """S183."""
    app, _ = ingest_app([{"revision": 1, "duplicate": False}, {"revision": 1, "duplicate": True}, {"code": "x"}])
    sink, _ = sink_to(app)
    assert await sink.deliver([{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}]) == 2
    await sink.aclose()
    await sink.aclose()


async def test_a_body_whose_patches_are_all_refused_is_done() -> None:
    app, _ = ingest_app([{"code": "unknown_city", "error": "no"}])
    sink, _ = sink_to(app)
    assert await sink.deliver([{"n": 1}]) == 0


async def test_large_deliveries_are_split() -> None:
    app, sizes = ingest_app([{"revision": 1, "duplicate": False}])
    sink, _ = sink_to(app)
    assert await sink.deliver([{"n": n} for n in range(1_201)]) == 1_201
    assert sizes == [500, 500, 201]
    assert all(len(body) <= MAX_BYTES for body in bodies_of([{"text": "x" * 15_000}] * 300))
    assert list(bodies_of([])) == []


async def test_a_passing_fault_is_tried_again() -> None:
    app, sizes = ingest_app([{"revision": 1, "duplicate": False}], failures=ATTEMPTS - 1)
    sink, clock = sink_to(app)
    assert await sink.deliver([{"n": 1}]) == 1
    assert clock.waits == [0.25, 0.5]
    assert sizes == [1]


async def test_a_lasting_fault_is_a_backend_error() -> None:
    app, sizes = ingest_app([{"revision": 1, "duplicate": False}], failures=99)
    sink, _ = sink_to(app)
    with pytest.raises(BackendError, match="503"):
        await sink.deliver([{"n": 1}])
    assert sizes == []


async def test_nobody_there_is_a_backend_error() -> None:
    sink = HttpPatchSink("http://127.0.0.1:9", "secret", QuickClock())
    with pytest.raises(BackendError):
        await sink.deliver([{"n": 1}])
    await sink.aclose()


async def test_a_wrong_token_is_a_backend_error_and_not_repeated() -> None:
    app = FastAPI()
    sink, clock = sink_to(app)
    with pytest.raises(BackendError, match="404"):
        await sink.deliver([{"n": 1}])
    assert clock.waits == []
