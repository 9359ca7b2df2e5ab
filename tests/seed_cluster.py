"""A migrated, empty PostgreSQL folder, made once per test run and copied: initdb is half the time of a first start.

One installation of each run still starts from nothing.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planetwire.supervise.embedded_postgres import EmbeddedPostgres
from planetwire.supervise.installation import migrate

PLACE = "PW_SEED_CLUSTER"  # inherited by the processes of the run; not a setting


def prepare() -> bool:
    """Choose the place, unless a parent did; returns whether to remove it."""
    if PLACE in os.environ:
        return False
    folder = Path(tempfile.mkdtemp(prefix="pw-seed-"))
    folder.chmod(0o755)
    os.environ[PLACE] = str(folder)
    return True


def is_prepared() -> bool:
    """False in a benchmark, which starts exactly what users start."""
    return PLACE in os.environ


def remove() -> None:
    """To be called if `prepare` returned True."""
    shutil.rmtree(os.environ.pop(PLACE), ignore_errors=True)


def copy_to(data_dir: Path, *, simulated: bool) -> None:
    """Copy the folder, with the mark of simulated data; the first caller creates the original, others wait."""
    place = Path(os.environ[PLACE])
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "made").exists():
            with ThreadPoolExecutor(1) as own:  # the browser's driver keeps an event loop in the thread of the tests
                own.submit(_make, place / "cluster").result()
            (place / "made").touch()
    data_dir.mkdir(mode=0o711, exist_ok=True)
    if simulated:
        (data_dir / "simulated").touch()
    # With owners: PostgreSQL does not run as root, its files belong to another user.
    subprocess.run(["cp", "-a", place / "cluster" / "postgres", data_dir / "postgres"], check=True)


def _make(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    cluster = EmbeddedPostgres(folder, config={"fsync": "off"})
    cluster.start()
    try:
        asyncio.run(migrate(cluster.dsn))
    finally:
        cluster.stop()
