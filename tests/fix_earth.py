"""The Earth half of a web process inside the test, with separate loops, so that a single stage can be stopped."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvicorn

from ledger_tools import WAIT_S, until
from planetwire.database.postgres import Pool
from planetwire.diagnosis import path as diagnosing
from planetwire.model import Json
from planetwire.runtime.ending import end_all
from planetwire.settings import Settings
from planetwire.supervise import doctor
from planetwire.web.http.server import server_config
from planetwire.web.live import probe
from planetwire.wiring import web as serving
from planetwire.wiring.secrets import Secrets

TOKEN, INGEST = "admin-token-of-the-tests", "ingest-token-of-the-tests"
SECRETS = Secrets(TOKEN, INGEST, b"key")


@dataclass
class Earth:
    """`settings` are those for a `planetwire doctor` of it."""

    settings: Settings
    web: serving.Web
    pool: Pool
    url: str
    tasks: dict[str, asyncio.Future[Any]] = field(default_factory=dict)

    async def stop(self, loop: str) -> None:
        """End one background loop."""
        await end_all([self.tasks.pop(loop)])

    async def led(self) -> None:
        """Wait until a relay leads and the listener is connected."""

        async def so() -> bool:
            return bool(
                await self.pool.fetchval(
                    "select leader_expires_at > clock_timestamp() and exists (select from pg_stat_activity"
                    " where datname = current_database() and application_name = 'planetwire listen')"
                    " from earth_log_head"
                )
            )

        await until(so)

    async def doctor(self, **options: Any) -> dict[str, Json]:
        """The result of `planetwire doctor`, by step."""
        steps = await asyncio.to_thread(doctor.examine, self.settings, **options)
        return {step["step"]: step for step in steps}


@pytest_asyncio.fixture
async def earth(pg_dsn: str, pg_pool: Pool, tmp_path: Path) -> AsyncIterator[Earth]:
    """Running, with a leading relay and no feeds. The machine's load must not decide: a doctor waits."""
    with pytest.MonkeyPatch.context() as patient:
        patient.setattr(probe, "PROBE_TIMEOUT_S", WAIT_S)
        for name in ("STEP_S", "WRITE_S", "ACQUIRE_S", "CANARY_S", "DELIVERY_S"):
            patient.setattr(diagnosing, name, WAIT_S)
        async with running_earth(pg_dsn, pg_pool, tmp_path, halves="earth") as made:
            yield made


@asynccontextmanager
async def running_earth(dsn: str, pool: Pool, data_dir: Path, **more: Any) -> AsyncIterator[Earth]:
    """With other settings than the fixture's."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        settings = Settings(database_url=dsn, data_dir=data_dir, port=port, admin_token=TOKEN, **more)  # type: ignore[arg-type]
        async with serving.open_web(settings, dsn, SECRETS, login_code=None) as web:
            server = uvicorn.Server(server_config(web.app, web.protocol))
            server.capture_signals = _no_signals  # type: ignore[method-assign,assignment]
            made = Earth(settings, web, pool, f"http://127.0.0.1:{port}")
            made.tasks = {name: asyncio.ensure_future(run()) for name, run in web.loops.items()}
            served = asyncio.ensure_future(server.serve(sockets=[sock]))
            try:
                await made.led()
                yield made
            finally:
                await web.drain()
                server.should_exit = True
                await asyncio.wait([served], timeout=60)
                await end_all(made.tasks.values())


class _no_signals:
    """Otherwise uvicorn would replace the test runner's signal handlers."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...
