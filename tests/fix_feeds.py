"""The feed server in a thread of this process; its clock stands still until a test advances it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from planetwire.demo.server import FeedServer, World, demo_environment
from planetwire.demo.simclock import SimClock, parse_start

FEED_START = "2026-03-20T12:00:30Z"
START_TIMEOUT_S = 60


@contextmanager
def running_feed_server(
    *, at: str | None = FEED_START, rate: float = 0.0, seed: int = 1, strict: bool = False, cadence_s: int = 60
) -> Iterator[FeedServer]:
    """A started server. `at` None: the present time; `rate` 1: time runs."""
    clock = SimClock(None if at is None else parse_start(at), rate)
    server = FeedServer(World(seed, clock, cadence_s=cadence_s, strict=strict))
    loop = asyncio.new_event_loop()
    started, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        await server.start()
        started.set()
        await stop.wait()
        await server.stop()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, name="feed-server")
    thread.start()
    try:
        assert started.wait(START_TIMEOUT_S), "the feed server did not start"
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(START_TIMEOUT_S)
        assert not thread.is_alive(), "the feed server did not stop"


@pytest.fixture
def feed_server() -> Iterator[FeedServer]:
    """Simulated feeds at 2026-03-20T12:00:30Z, with a stopped clock; see planetwire.demo.server for its controls."""
    with running_feed_server() as server:
        yield server


@pytest.fixture
def feed_environment(feed_server: FeedServer) -> dict[str, str]:
    """Settings that point the built-in feeds at `feed_server`."""
    return demo_environment(feed_server.url)


@pytest.fixture
def start_feed_server() -> Iterator[Callable[..., FeedServer]]:
    """Starts feed servers with given options; stops them afterwards."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(running_feed_server(**options))
