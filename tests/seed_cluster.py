"""A migrated, empty PostgreSQL folder, made once a test run and copied: initdb is half of what a first start costs.

One installation of each run starts from nothing all the same.
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

PLACE = "PW_SEED_CLUSTER"  # passed on to the processes that share the run; no name of a setting


def prepare() -> bool:
    """Name the place, unless who started us did; whether it is ours to remove."""
    if PLACE in os.environ:
        return False
    folder = Path(tempfile.mkdtemp(prefix="pw-seed-"))
    folder.chmod(0o755)
    os.environ[PLACE] = str(folder)
    return True


def is_prepared() -> bool:
    """Not in a benchmark, which starts what its users start."""
    return PLACE in os.environ


def remove() -> None:
    """For whom `prepare` told so."""
    shutil.rmtree(os.environ.pop(PLACE), ignore_errors=True)


def copy_to(data_dir: Path, *, simulated: bool) -> None:
    """Put the folder there, and the mark of simulated data; the first who asks makes the folder, the others wait."""
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
    # Owners too: PostgreSQL does not run as root, its files are somebody else's.
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
