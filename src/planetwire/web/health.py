"""Liveness, readiness, metrics and the diagnostic, for operators and their machines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from fastapi import APIRouter, Depends, Response
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


def router(
    checks: Mapping[str, Check],
    halves: list[str],
    diagnostics: Callable[[], Awaitable[dict[str, Any]]],
    guard: Guard,
) -> APIRouter:
    """`checks`: what readiness asks – stores, migrations, a relay leader. Feeds and Redis are never part of it."""
    routes = APIRouter(tags=["operations"])

    @routes.get("/healthz")
    async def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @routes.get("/readyz")
    async def readyz() -> Response:
        """200 when the stores of the halves that are on answer; 503 and the reason otherwise."""
        names = list(checks)
        answers = await asyncio.gather(*(run_check(checks[name]) for name in names))
        found = {name: answer or "ok" for name, answer in zip(names, answers, strict=True)}
        ready = all(answer is None for answer in answers)
        body = {"ready": ready, "halves": halves, "checks": found}
        return Response(orjson.dumps(body), 200 if ready else 503, media_type="application/json")

    @routes.get("/metrics", dependencies=[Depends(guard.reader)])
    async def metrics() -> Response:
        """Prometheus text."""
        return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)

    @routes.get("/api/v1/diagnostics", dependencies=[Depends(guard.reader)])
    async def show() -> Response:
        """The check of docs/operations.md as JSON; `planetwire doctor` prints the same."""
        return Response(orjson.dumps(await diagnostics()), media_type="application/json")

    return routes
