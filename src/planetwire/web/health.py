"""Liveness, readiness, metrics and the diagnostic, for operators and monitoring."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import orjson
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from planetwire.errors import PlanetwireError
from planetwire.log import get_logger
from planetwire.text.printable import printable
from planetwire.web.access.auth import Guard
from planetwire.web.http.answers import answers

log = get_logger()

READY_S = 2.5  # for all checks together: probes wait 3 s
REASON_MAX = 200  # characters

Check = Callable[[], Awaitable[str | None]]
"""Gives None when all is well, else what is wrong."""


class Readiness:
    """Runs all checks in parallel under one deadline that no check can exceed.

    A check that hangs is left to its own time limits, since cancelling it could take as long. Concurrent probes share
    one run of each check.
    """

    def __init__(self, checks: Mapping[str, Check], *, deadline_s: float = READY_S) -> None:
        self._checks = checks
        self._deadline_s = deadline_s
        self._running: dict[str, asyncio.Task[str]] = {}

    async def look(self) -> dict[str, str]:
        """By check: "ok" or the problem. Never raises or exceeds the deadline."""
        asked = {name: self._task(name) for name in self._checks}
        if asked:
            await asyncio.wait(asked.values(), timeout=self._deadline_s)
        late = f"no answer within {self._deadline_s:g} s"
        return {name: task.result() if task.done() else late for name, task in asked.items()}

    def _task(self, name: str) -> asyncio.Task[str]:
        running = self._running.get(name)
        if running is None or running.done():
            running = self._running[name] = asyncio.ensure_future(self._answer(name))
        return running

    async def _answer(self, name: str) -> str:
        try:
            reason = await self._checks[name]()
        except asyncio.CancelledError:  # the loop is shutting down
            return "given up"
        except PlanetwireError as error:
            reason = error.message
        except Exception as error:  # the schema of another version, a full disk: the log has the details
            log.warning("web.readiness.failed", check=name, error=repr(error))
            reason = f"cannot be checked: {type(error).__name__}"
        return printable(reason, REASON_MAX) if reason else "ok"


class Diagnosis(Protocol):
    """The diagnostic of docs/operations.md."""

    async def examine(self) -> dict[str, Any]:
        """Read-only."""

    async def send(self, url: str) -> dict[str, Any]:
        """With a canary that is followed to a WebSocket of this process at `url`. Raises StateError."""


def router(
    readiness: Readiness, halves: list[str], diagnosis: Diagnosis, guard: Guard, scheme: str = "http"
) -> APIRouter:
    """`readiness` checks stores, migrations and the relay's leader, never feeds or Redis.

    `scheme`: of this process's own port, not of a proxy.
    """
    routes = APIRouter(tags=["operations"])

    @routes.get("/healthz")
    async def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @routes.get("/readyz", responses={503: {"description": "Not ready", "content": {"application/json": {}}}})
    async def readyz() -> Response:
        """200 when the stores of the halves that are on answer; 503 and the reason otherwise, within 3 s."""
        found = await readiness.look()
        ready = all(answer == "ok" for answer in found.values())
        body = {"ready": ready, "halves": halves, "checks": found}
        return Response(orjson.dumps(body), 200 if ready else 503, media_type="application/json")

    @routes.get("/metrics", response_class=PlainTextResponse, dependencies=[Depends(guard.diagnostics)])
    async def metrics() -> Response:
        """Prometheus text."""
        return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)

    @routes.get("/api/v1/diagnostics", dependencies=[Depends(guard.diagnostics)])
    async def show() -> Response:
        """The check of docs/operations.md as JSON, from what the database says; nothing is written."""
        return Response(orjson.dumps(await diagnosis.examine()), media_type="application/json")

    @routes.post("/api/v1/diagnostics", responses=answers(409), dependencies=[Depends(guard.admin)])
    async def send(request: Request) -> Response:
        """The same with a canary: one change timed through every stage, as `planetwire doctor` does it."""
        host, port = request.scope["server"]
        url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        return Response(orjson.dumps(await diagnosis.send(url)), media_type="application/json")

    return routes
