"""Upgrade, backup and restore with a million facts: times, sizes, and that search finds every fact afterwards.

The previous version's wheel is filled with facts without derived rows, as an older one would have left them; this
version takes over the data dir, is backed up while it derives them, and is restored elsewhere, where it continues until
search has every one. `PLANETWIRE_BENCH_SMALL=1` uses a tenth.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
from _running import NO_FEEDS, Installation, line

import previous_version
from planetwire.wiring.keeping import folder_bytes

FACTS = 100_000 if os.environ.get("PLANETWIRE_BENCH_SMALL") else 1_000_000
PENDING = "select count(*) from derived_pending"
UNSEEN = "set planetwire.derives = on"  # as set by jobs that derive themselves: no trigger notes these facts
FILL = """insert into collected_data (source, external_key, kind, title, data, lat, lon, observed_at)
select 'usgs_quakes', 'q' || n, 'earthquake', 'M 4.' || n % 10 || ' – ' || n || ' km N of ' || md5(n::text),
    jsonb_build_object('mag', 4.0 + (n % 10) / 10.0, 'place', md5(n::text), 'depth_km', n % 700, 'status', 'reviewed'),
    (n % 170) - 85, (n % 350) - 175, now() - make_interval(secs => n)
from generate_series(1, $1::int) n"""
LIMIT_S = 3_600.0


@contextmanager
def timed(what: str, seconds: dict[str, float]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - began
    print(f"  {what}: {seconds[what]:.1f} s (load {os.getloadavg()[0]:.1f})", flush=True)


def command(data_dir: Path, *words: str, wanted: int = 0) -> str:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PLANETWIRE_")}
    environment = kept | NO_FEEDS | {"PLANETWIRE_DATA_DIR": str(data_dir)}
    done = subprocess.run(
        [sys.executable, "-m", "planetwire", *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == wanted, done.stderr + done.stdout
    return done.stdout


async def fill(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(UNSEEN)
    await connection.execute(FILL, FACTS)
    await connection.close()


def derived(made: Installation) -> None:
    ends = time.monotonic() + LIMIT_S
    while made.value(PENDING):
        assert time.monotonic() < ends, "derived rows were not made in an hour"
        time.sleep(0.2)


def missing(made: Installation) -> int:
    """The number of facts that search does not find, or that are missing."""
    facts, found = (made.value(f"select count(*) from {table}") for table in ("collected_data", "earth_interactables"))
    return FACTS - int(facts) + FACTS - int(found)


def megabytes(folder: Path) -> str:
    return f"{folder_bytes(folder) / 1e6:,.0f} MB"


def main() -> None:
    folder, seconds = Path(tempfile.mkdtemp(prefix="pw-bench-")), dict[str, float]()
    folder.chmod(0o755)
    data, saved, elsewhere = folder / "data", folder / "saved", folder / "elsewhere"
    python = previous_version.python_with_it(Path(tempfile.gettempdir()) / "planetwire-previous-version")
    old, new, again = (
        Installation(data, ("up",), NO_FEEDS, program=(str(python), "-m", "planetwire")),
        Installation(data, ("up",), NO_FEEDS),
        Installation(elsewhere, ("up",), NO_FEEDS),
    )
    try:
        old.start()
        with timed(f"previous version: {FACTS:,} facts by SQL", seconds):
            asyncio.run(fill(old.dsn))
        old.stop()
        print(f"  data dir: {megabytes(data)}")
        with timed("migrate --plan, stopped", seconds):
            due = json.loads(command(data, "migrate", "--plan", "--json", wanted=3))["migrations"]
        with timed(f"this version: {len(due)} migrations, to the first page", seconds):
            new.start()
        with timed("backup, running", seconds):
            command(data, "backup", str(saved))
        print(f"  backup: {megabytes(saved)}; data dir: {megabytes(data)}")
        with timed("doctor", seconds):
            command(data, "doctor")
        new.stop()
        with timed("restore elsewhere", seconds):
            command(elsewhere, "restore", str(saved))
        print(f"  restored data dir: {megabytes(elsewhere)}")
        with timed("start of the restored one", seconds):
            again.start()
        with timed("doctor of the restored one", seconds):
            command(elsewhere, "doctor")
        with timed("every fact derived, in the background", seconds):
            derived(again)
        lost = missing(again)
    finally:
        for made in (old, new, again):
            made.stop()
        shutil.rmtree(folder, ignore_errors=True)
    detail = "; ".join(f"{what} {took:.1f} s" for what, took in seconds.items())
    sys.exit(0 if line(f"{FACTS:,} facts, lost by upgrade, backup and restore", lost, 0, detail) else 1)


if __name__ == "__main__":
    main()
