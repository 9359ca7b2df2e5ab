"""Readiness: one deadline over all checks, whatever they do, and never an error of ours."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import httpx
from fastapi import FastAPI

from planetwire.errors import BackendError
from planetwire.web import health
from planetwire.web.access.auth import Guard
from planetwire.web.health import REASON_MAX, Check, Readiness
from planetwire.web.http import problems


async def fine() -> str | None:
    return None


async def fails() -> str | None:
    raise ZeroDivisionError("with a secret in it")


async def is_away() -> str | None:
    raise BackendError("PostgreSQL is away\n\x1b[31m" + "x" * 1_000)


async def test_each_check_is_told_and_nothing_of_an_error_but_its_kind() -> None:
    over = asyncio.Event()

    async def hangs() -> str | None:
        """Also when it is cancelled, as a driver may that says goodbye to a server which does not answer."""
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()
        return None

    checks: dict[str, Check] = {"fine": fine, "hangs": hangs, "fails": fails, "away": is_away}
    found = await Readiness(checks, deadline_s=0.01).look()
    assert found["fine"] == "ok"
    assert found["hangs"] == "no answer within 0.01 s"
    assert found["fails"] == "cannot be checked: ZeroDivisionError"
    assert found["away"].startswith("PostgreSQL is away") and found["away"].isprintable()
    assert len(found["away"]) < REASON_MAX + 30
    over.set()


async def test_a_check_that_hangs_is_not_begun_again_by_the_next_who_ask() -> None:
    begun, go_on = [], asyncio.Event()

    async def slow() -> str | None:
        begun.append(1)
        await go_on.wait()
        return None

    readiness = Readiness({"slow": slow}, deadline_s=0.001)
    for _ in range(5):
        assert (await readiness.look())["slow"] != "ok"
    assert len(begun) == 1
    go_on.set()
    readiness = Readiness({"slow": slow})
    assert await readiness.look() == {"slow": "ok"}
    assert len(begun) == 2


async def test_readyz_is_503_with_the_reasons() -> None:
    app = FastAPI()
    problems.install(app)
    checks: dict[str, Check] = {"fine": fine, "fails": fails}
    nobody: health.Diagnosis = None  # type: ignore[assignment]
    app.include_router(health.router(Readiness(checks), ["earth"], nobody, Guard("a", "b", b"k")))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        assert json.loads(answer.content) == {
            "ready": False,
            "halves": ["earth"],
            "checks": {"fine": "ok", "fails": "cannot be checked: ZeroDivisionError"},
        }
        del checks["fails"]
        assert (await client.get("/readyz")).status_code == 200
