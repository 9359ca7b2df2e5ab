"""The work process itself, on a real ledger, with all its feeds hostile at once: the kernel tells its peak."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from fix_roles import Role, eventually
from hostile_feed import (
    BLOCK,
    MIB,
    HostileFeed,
    Script,
    answer,
    at_length,
    bomb,
    chunked,
    head,
    plainly,
    running_hostile_feed,
)
from planetwire.database.postgres import Pool

PEAK_MIB = 300.0
BOMB = bomb(1024 * MIB)
ROUNDS: list[tuple[dict[str, Script], str]] = [
    (
        {
            "/feed": plainly(head(302, Location="/b", Content_Encoding="gzip", Content_Length=len(BOMB)), BOMB),
            "/b": at_length(head(302, Location="/c", Content_Length=600 * MIB), BLOCK, 600 * MIB),
            "/c": at_length(head(302, Location="/feed"), BLOCK, None),
        },
        "redirect_refused",
    ),
    ({"/feed": plainly(head(Content_Encoding="gzip"), BOMB)}, "bad_body"),
    ({"/feed": chunked(b"a" * MIB, 300 * MIB, first=b'["')}, "bad_body"),
    ({"/feed": answer(b'["' + "𝄞".encode() * (4 * MIB - 1) + b'"]')}, "bad_body"),
]


@pytest.fixture
def feed() -> Iterator[HostileFeed]:
    with running_hostile_feed() as running:
        yield running


@pytest_asyncio.fixture
async def work(tmp_path: Path, pg_dsn: str, pg_pool: Pool, feed: HostileFeed) -> AsyncIterator[Role]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLANETWIRE_")} | {
        "PLANETWIRE_DATABASE_URL": pg_dsn,
        "PLANETWIRE_DATA_DIR": str(tmp_path),
        "PLANETWIRE_HALVES": "earth",
        "PLANETWIRE_LOG_FORMAT": "json",
        "PLANETWIRE_FEEDS__CELESTRAK_GP__URL": f"{feed.url}/feed",
        "PLANETWIRE_FEEDS__USGS_QUAKES__URL": f"{feed.other_url}/feed",
        "PLANETWIRE_FEEDS__CELESTRAK_GP__FLOOR_S": "0",
        "PLANETWIRE_FEEDS__USGS_QUAKES__FLOOR_S": "0",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "planetwire", "work", env=environment, stderr=asyncio.subprocess.PIPE
    )
    role = Role("work", process)
    yield role
    await role.stop()


def peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


async def test_the_work_process_stays_small_under_hostile_feeds(work: Role, feed: HostileFeed, pg_pool: Pool) -> None:
    """E1."""
    for scripts, code in ROUNDS:
        feed.scripts = scripts
        ids = [
            await pg_pool.fetchval(
                "insert into collection_tasks (task_type, source, max_attempts) values ('collect', $1, 1) returning id",
                source,
            )
            for source in ("celestrak_gp", "usgs_quakes")
        ]

        async def ended(ids: list[int] = ids) -> list[str] | None:
            rows = await pg_pool.fetch(
                "select status, error_code, error from collection_tasks where id = any($1::bigint[])", ids
            )
            return [row["error_code"] for row in rows] if all(row["status"] == "failed" for row in rows) else None

        assert await eventually(ended, f"both jobs failed with {code}") == [code] * 2
        assert peak_mib(work.process.pid) <= PEAK_MIB, code
