"""Liveness, readiness, metrics and the diagnostic, for operators and their machines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import orjson
from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from planetwire.errors import PlanetwireError
from planetwire.web.auth import Guard

CHECK_TIMEOUT_S = 3.0

Check = Callable[[], Awaitable[str | None]]
"""Gives None when all is well, else what is wrong."""


async def run_check(check: Check) -> str | None:
    """The check's answer; a time-out or an error of ours counts as an answer."""
    try:
        return await asyncio.wait_for(check(), CHECK_TIMEOUT_S)
    except TimeoutError:
        return f"no answer within {CHECK_TIMEOUT_S:g} s"
    except PlanetwireError as error:
        return error.message


async def run_checks(checks: Mapping[str, Check]) -> dict[str, str]:
    """Each check's answer, or "ok"."""
    answers = await asyncio.gather(*(run_check(check) for check in checks.values()))
    return {name: answer or "ok" for name, answer in zip(checks, answers, strict=True)}


class Diagnosis(Protocol):
    """The check of docs/operations.md."""

    async def look(self) -> dict[str, Any]:
        """Nothing is changed by it."""

    async def send(self, url: str) -> dict[str, Any]:
        """With a change of our own that is followed to a WebSocket of this process at `url`. Raises StateError."""


def router(checks: Mapping[str, Check], halves: list[str], diagnosis: Diagnosis, guard: Guard) -> APIRouter:
    """`checks`: what readiness asks – stores, migrations, a relay leader. Feeds and Redis are never part of it."""
    routes = APIRouter(tags=["operations"])

    @routes.get("/healthz")
    async def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @routes.get("/readyz")
    async def readyz() -> Response:
        """200 when the stores of the halves that are on answer; 503 and the reason otherwise."""
        found = await run_checks(checks)
        ready = all(answer == "ok" for answer in found.values())
        body = {"ready": ready, "halves": halves, "checks": found}
        return Response(orjson.dumps(body), 200 if ready else 503, media_type="application/json")

    @routes.get("/metrics", dependencies=[Depends(guard.diagnostics)])
    async def metrics() -> Response:
        """Prometheus text."""
        return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)

    @routes.get("/api/v1/diagnostics", dependencies=[Depends(guard.diagnostics)])
    async def show() -> Response:
        """The check of docs/operations.md as JSON, from what the database says; nothing is written."""
        return Response(orjson.dumps(await diagnosis.look()), media_type="application/json")

    @routes.post("/api/v1/diagnostics", dependencies=[Depends(guard.admin)])
    async def send(request: Request) -> Response:
        """The same with a canary: one change timed through every stage, as `planetwire doctor` does it."""
        host, port = request.scope["server"]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        return Response(orjson.dumps(await diagnosis.send(url)), media_type="application/json")

    return routes
