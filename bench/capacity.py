"""The capacity of a small host: the whole demo in a control group of 2 cores and 8 GB, with its clients outside.

Thirty cities push a reading with runway points each minute into a log that already holds six hours; 500 readers of nine
cities each, 50 map clients that reload every changed snapshot, the largest each minute, and one browser on the page.
Everything that `planetwire demo` starts is counted: our processes, PostgreSQL, and the simulated providers (also shown
separately).

    capacity.py                    2 cores, 8 GB, ten minutes
    capacity.py --only terminal    the weather half alone on 1 core and 1 GB, without map clients
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import httpx
import uvloop
from _cgroup import MB, Group, Memory, Tree, group, status_kb
from _crowd import PUSHED, Crowd, reading
from _running import SMALL, browser_program, line
from playwright.async_api import async_playwright

from fix_browser import FLAGS
from fix_installation import Installation
from planetwire.cities import CITIES
from planetwire.collect.push.ingest import normalise
from planetwire.datasets.registry import observed_sources
from planetwire.facts.sqlite.observations_sqlite import SqliteObservationStore
from planetwire.runtime.clock import ManualClock, SystemClock, utc_text

SOURCES = observed_sources()

READERS, MAP_CLIENTS = 500, 50
PREFILLED_MIN = 6 * 60
SATELLITES = 12_000
READY_S, SETTLE_S, BROWSER_S = 180.0, 15.0, 120.0
SAMPLE_S = 1.0  # how often memory is read
BROWSER_WEIGHT = 0.1  # it stands for another machine, so the measured group has priority
AGE_MS, LOG_MB, WHOLE = 500.0, 60.0, "whole"
Account = Group | Tree


@dataclass(frozen=True, slots=True)
class Host:
    """A machine, and the part of it that may be used."""

    cores: float
    memory_bytes: int
    cores_goal: float
    memory_goal_mb: float


HOSTS = {WHOLE: Host(2, 8 << 30, 1.2, 2_000), "terminal": Host(1, 1 << 30, 0.6, 500)}


NOTHING = Memory(0, 0, 0)


@dataclass
class Figures:
    """The results."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    feeds_cpu_s: float = 0.0
    peak: Memory = NOTHING
    log_mb: float = 0.0
    events: int = 0
    by_role: dict[str, str] = field(default_factory=dict)
    notes: str = ""


async def prefill(path: Path) -> int:
    """Six hours of readings of thirty cities each minute, as if received; returns the number of events."""
    end = SystemClock().now()
    clock = ManualClock(end - timedelta(minutes=PREFILLED_MIN - 2))  # none is past retention at the start
    store = SqliteObservationStore(path, clock)
    await store.start()
    for minute in range(PREFILLED_MIN - 2):
        now, at = clock.now(), utc_text(clock.now().replace(microsecond=0))
        await store.append([normalise(SOURCES, reading(city.key, at, minute), now) for city in CITIES[:PUSHED]])
        clock.advance(60)
    await store.aclose()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("select count(*) from observation_patch_events").fetchone()[0])


@contextlib.contextmanager
def installed(made: Group | None, only: str, folder: Path) -> Iterator[tuple[Installation, Account]]:
    """The demo, in the group if there is one."""
    environment = {
        "PLANETWIRE_OBSERVATIONS_URL": f"sqlite:///{folder / 'observations.db'}",
        "PLANETWIRE_STREAM__MAX_PER_ADDRESS": str(2 * (READERS + MAP_CLIENTS)),  # all share one address here
    }
    command = ("demo",) if only == WHOLE else ("demo", "--only", only)
    running = Installation(folder / "data", command, environment)
    running.program = (*(made.enter if made else ()), *running.program)
    try:
        running.start()
        yield running, made or Tree(lambda: running.process.pid if running.process else 0)
    finally:
        running.stop()


async def ready(running: Installation, only: str) -> None:
    """Wait for the first data of every feed. Raises TimeoutError."""
    async with asyncio.timeout(READY_S), httpx.AsyncClient(base_url=running.url, trust_env=False, timeout=30) as client:
        while True:
            with contextlib.suppress(httpx.HTTPError, ValueError, KeyError):
                rows = (await client.get("/api/scan/terminal")).json()["rows"]
                path = "/api/v1/visualization/satellites?limit=1"
                enough = only != WHOLE or (await client.get(path)).json()["total"] >= SATELLITES
                if enough and sum(row["current_temp"] is not None for row in rows) > len(CITIES) // 2:
                    return
            await asyncio.sleep(0.5)


@contextlib.asynccontextmanager
async def browsing(url: str, aside: Group | None, folder: Path) -> AsyncIterator[None]:
    """A browser on the page; without Chromium, a printed line."""
    program = browser_program()
    if program is None:
        print("  without a browser: no chromium on this machine", flush=True)
        yield
        return
    wrapper = folder / "browser"
    wrapper.write_text(_script(aside.enter if aside else (), program))
    wrapper.chmod(0o755)
    async with async_playwright() as playwright:
        options = {"args": FLAGS, "headless": True, "timeout": BROWSER_S * 1000}
        browser = await playwright.chromium.launch(executable_path=wrapper, **options)
        page = await browser.new_page(viewport={"width": 1440, "height": 900}, timezone_id="UTC")
        await page.goto(url, timeout=BROWSER_S * 1000)
        try:
            yield
        finally:
            with contextlib.suppress(Exception):  # it may have ended, which affects no figure
                await asyncio.wait_for(browser.close(), 10)


def _script(enter: Sequence[str], program: str) -> str:
    """A script that enters the group and execs the browser."""
    if not enter:
        return f'#!/bin/sh\nexec {program} "$@"\n'
    return "#!/bin/sh\n" + enter[2].replace('exec "$@"', f'exec {program} "$@"') + "\n"


def process_cpu_s(pid: int) -> float:
    """CPU time of one process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(running: Installation, account: Account, crowd: Crowd, seconds: float) -> Figures:
    """CPU over the period, the highest memory and the largest log seen."""
    feeds = running.children()["feeds"]
    began, before, feeds_before = time.monotonic(), account.cpu_s(), process_cpu_s(feeds)
    roles_before = {pid: process_cpu_s(pid) for pid in running.roles()}
    crowd.measure(True)
    found = Figures(peak=account.memory())
    while (left := began + seconds - time.monotonic()) > 0:
        await asyncio.sleep(min(SAMPLE_S, left))
        now = account.memory()
        if now.held > found.peak.held:
            found.peak = now
    crowd.measure(False)
    found.seconds = time.monotonic() - began
    found.cpu_s, found.feeds_cpu_s = account.cpu_s() - before, process_cpu_s(feeds) - feeds_before
    found.notes = account.notes()
    for pid, role in running.roles().items():
        with contextlib.suppress(OSError):
            used = (process_cpu_s(pid) - roles_before.get(pid, 0.0)) / found.seconds
            found.by_role[role] = f"{role} {used:.2f} cores, {status_kb(pid)['RssAnon'] / 1000:.0f} MB"
    return found


def log_size(path: Path) -> tuple[float, int]:
    """Megabytes of the file with its write-ahead log, and events in it."""
    size = sum(each.stat().st_size for each in (path, path.with_name(f"{path.name}-wal")) if each.exists())
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return size / MB, int(connection.execute("select count(*) from observation_patch_events").fetchone()[0])


async def crowded(
    running: Installation, account: Account, only: str, seconds: float, browser: AbstractAsyncContextManager[None]
) -> tuple[Figures, Crowd]:
    """Connect the crowd, measure, disconnect it."""
    crowd = Crowd(running.url, running.token("ingest"))
    await ready(running, only)
    print(f"  ready after {account.cpu_s():.1f} CPU-s, the first loads included", flush=True)
    try:
        await crowd.read(READERS)
        if only == WHOLE:
            await crowd.map(MAP_CLIENTS)
            crowd.start(crowd.refresh(running.token()))
        crowd.start(crowd.push())
        async with browser:
            await asyncio.sleep(SETTLE_S)
            return await measure(running, account, crowd, seconds), crowd
    finally:
        await crowd.aclose()


def judge(only: str, found: Figures, crowd: Crowd) -> bool:
    """One line per figure; returns whether all goals were met."""
    host, met = HOSTS[only], []
    cores, done = found.cpu_s / found.seconds, crowd.done
    print(f"  {'; '.join(found.by_role[role] for role in sorted(found.by_role))}; {found.notes}")
    print(f"  {done['readings pushed']} readings pushed, {done['readings delivered']:,} delivered")
    if only == WHOLE:
        sent = f"{done['bytes of snapshots'] / MB:,.0f} MB as sent, {done['refreshes']} refreshes of the largest"
        took = f"p99 {crowd.reloads.quantile_ms(0.99):.0f} ms ({crowd.reloads})"
        print(f"  {done['snapshots']:,} snapshots, {sent}, each {took}")
    whole = found.peak
    apart = f"of which the simulated providers {found.feeds_cpu_s / found.seconds:.2f}"
    met.append(line(f"{only}: cores", cores, host.cores_goal, f"over {found.seconds:.0f} s, {apart}"))
    own = f"processes {whole.anonymous / MB:.0f}, shared {whole.shared / MB:.0f}"
    detail = f"{own}; beside it the kernel's copies of files {whole.files / MB:.0f}"
    met.append(line(f"{only}: memory, MB", whole.held / MB, host.memory_goal_mb, detail))
    met.append(line(f"{only}: observation log, MB", found.log_mb, LOG_MB, f"{found.events:,} events, history and WAL"))
    p99 = crowd.readings.quantile_ms(0.99)
    met.append(line(f"{only}: age of readings, p99 ms", p99, AGE_MS, str(crowd.readings)))
    if only == WHOLE:
        p99 = crowd.changes.quantile_ms(0.99)
        met.append(line(f"{only}: age of layer events, p99 ms", p99, AGE_MS, str(crowd.changes)))
    wrong = ", ".join(f"{what} ({times})" for what, times in crowd.wrong.most_common(3)) or "nothing"
    met.append(line(f"{only}: gaps, cuts and refusals", crowd.wrong.total(), 0, wrong))
    return all(met)


def run(only: str, seconds: float) -> bool:
    """Run one mode in a temporary folder."""
    host, folder = HOSTS[only], Path(tempfile.mkdtemp(prefix="pw-capacity-"))
    folder.chmod(0o755)
    name = f"planetwire-{os.getpid()}-{only}"
    try:
        events = uvloop.run(prefill(folder / "observations.db"))
        print(
            f"{only}: {host.cores:g} cores, {host.memory_bytes >> 30} GB, {seconds:.0f} s, {events:,} events in the log"
        )
        with (
            group(name, host.cores, host.memory_bytes) as made,
            group(f"{name}-browser", os.cpu_count() or 1, 4 << 30, weight=BROWSER_WEIGHT) as aside,
            installed(made, only, folder) as (running, account),
        ):
            page = running.url + ("/terminal" if only == "terminal" else "/")
            browser = browsing(page, aside, folder)
            found, crowd = asyncio.run(crowded(running, account, only, seconds, browser))
            found.log_mb, found.events = log_size(folder / "observations.db")
            return judge(only, found, crowd)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a small host carries.")
    parser.add_argument(
        "--only", choices=["terminal"], default=WHOLE, help="the weather half alone, on 1 core and 1 GB"
    )
    parser.add_argument("--minutes", type=float, default=1.0 if SMALL else 10.0, help="how long is measured (≤ 60)")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is cleaned up
    sys.exit(0 if run(chosen.only, min(chosen.minutes, 60) * 60) else 1)


if __name__ == "__main__":
    main()
