"""One role as a process: its settings from the data dir, its loops, and a clean shutdown on SIGTERM.

The web process is in `web_role.py`: its framework is half of what it loads, and no other process needs it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import SSLContext

import uvloop
from pydantic import SecretStr

from planetwire.errors import SetupError
from planetwire.log import get_logger
from planetwire.runtime.ending import AGAIN_S, end_all
from planetwire.runtime.failpoint import arm
from planetwire.runtime.settle import settle
from planetwire.settings import Settings
from planetwire.supervise.datadir import DataDir
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from planetwire.supervise.own_secrets import secrets_of
from planetwire.tls import own_trust, scheme_of
from planetwire.wiring import work as wiring
from planetwire.wiring.work import Loop

log = get_logger()

ASKED_AGAIN_S = 1.0
END_S = 10.0  # a process ends within this time after SIGTERM, also if its database ended first


def database_of(settings: Settings) -> str:
    """The own server's address, or that of a running `up` on the data dir. Raises SetupError."""
    if settings.database_url is not None:
        return settings.database_url
    data = DataDir(settings.data_dir)
    running = data.runtime() if data.is_running() else None
    if running and running.get("database_url"):
        return str(running["database_url"])
    raise SetupError(
        f"no database: start `planetwire up` on {settings.data_dir}, or set PLANETWIRE_DATABASE_URL to your own server"
    )


def web_url_of(settings: Settings) -> str:
    """Where the web process answers: that of a running `up`, else as configured."""
    data = DataDir(settings.data_dir)
    running = data.runtime() if data.is_running() else None
    return str(running["url"]) if running and running.get("url") else url_of(settings, settings.port)


def trust_of(settings: Settings) -> SSLContext | None:
    """Verifies the TLS certificate of that web process; None for plain HTTP. Raises SetupError."""
    data = DataDir(settings.data_dir)
    running = data.runtime() if data.is_running() else None
    if running is None:
        return own_trust(settings.tls_cert)
    return own_trust(Path(running["tls_cert"]) if running.get("tls_cert") else None)


def url_of(settings: Settings, port: int) -> str:
    """The address as configured."""
    return f"{scheme_of(settings)}://{settings.host}:{port}"


def effective(settings: Settings) -> Settings:
    """Settings with what a running or would-be installation adds: addresses and generated tokens."""
    data = DataDir(settings.data_dir)
    update: dict[str, object] = {}
    if settings.earth and settings.database_url is None:
        running = data.runtime() if data.is_running() else None
        update["database_url"] = (running or {}).get("database_url") or EmbeddedPostgres(settings.data_dir).dsn
    for name in ("admin_token", "ingest_token", "changes_bus_secret"):
        kept = data.kept_secret(name.replace("_", "."))
        if getattr(settings, name) is None and kept is not None:
            update[name] = SecretStr(kept)
    return settings.model_copy(update=update)


def run_work(settings: Settings, *, feeds: bool) -> None:
    """Run jobs until SIGTERM; with `feeds` the schedule and the observation feeds too."""
    arm(settings.failpoint)
    dsn = database_of(settings)
    web = wiring.OwnWeb(web_url_of(settings), trust_of(settings))
    uvloop.run(_loops(wiring.open_work(settings, dsn, secrets_of(settings), feeds=feeds, web=web)))


def run_collect(settings: Settings) -> None:
    """Run the schedule (Earth) and the observation feeds (Terminal) until SIGTERM."""
    arm(settings.failpoint)
    dsn = database_of(settings) if settings.earth else None
    web = wiring.OwnWeb(web_url_of(settings), trust_of(settings))
    uvloop.run(_loops(wiring.open_collect(settings, dsn, secrets_of(settings), web=web)))


def run_relay(settings: Settings) -> None:
    """Lead, or stand by, until SIGTERM."""
    arm(settings.failpoint)
    uvloop.run(_loops(wiring.open_relay(settings, database_of(settings), secrets_of(settings))))


def end_in_any_case() -> None:
    """Bound the shutdown: leases, leadership and acknowledged rows are safe even if the process is killed."""
    last_resort = threading.Timer(END_S, os._exit, (1,))
    last_resort.daemon = True
    last_resort.start()


async def _loops(opening: wiring.Opening) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    first_at: list[float] = []

    def on_signal() -> None:
        """A repeated signal ends the process at once; the rescue takes back its jobs. A Ctrl-C that arrives from both
        the terminal and the supervisor counts as one.
        """
        first_at.append(loop.time())
        if first_at[-1] - first_at[0] > ASKED_AGAIN_S:
            os._exit(1)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    async with opening as parts, running_loops(parts.loops) as failed:
        failed.add_done_callback(lambda _: stop.set())
        settle()
        await stop.wait()
        end_in_any_case()
        await parts.drain()


@asynccontextmanager
async def running_loops(loops: Mapping[str, Loop], *, again_s: float = AGAIN_S) -> AsyncIterator[asyncio.Future[None]]:
    """The loops, for as long as the block lasts. A loop that fails ends the process: its supervisor restarts it."""
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    tasks = {name: asyncio.ensure_future(run()) for name, run in loops.items()}

    def ended(name: str, task: asyncio.Future[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("supervise.loop.failed", loop=name, exc_info=task.exception())
            if not failed.done():
                failed.set_result(None)
            signal.raise_signal(signal.SIGTERM)

    for name, task in tasks.items():
        task.add_done_callback(lambda task, name=name: ended(name, task))  # type: ignore[misc]
    try:
        yield failed
    finally:
        await end_all(tasks.values(), again_s)
        if not failed.done():
            failed.cancel()
    errors = [task.exception() for task in tasks.values() if not task.cancelled() and task.exception()]
    if errors:
        raise SystemExit(1)
