"""A second handle on a transport's descriptor: it sends, and never closes what is not its own."""

from __future__ import annotations

import asyncio
import gc
import os
import socket

import pytest
import uvloop

from live_streams import SseClient, eventually, live_server
from planetwire.web.live.sse_protocol import Borrowed, EventsProtocol


def test_a_handle_that_is_dropped_leaves_the_descriptor_open() -> None:
    """Whatever way it goes: by then the number may be somebody else's."""
    near, far = socket.socketpair()
    with near, far:
        borrowed = Borrowed(near.family, near.type, near.proto, near.fileno())
        assert borrowed.send(b"here") == 4
        del borrowed
        gc.collect()
        assert near.send(b" still") == 6
        assert far.recv(100) == b"here still"


async def test_a_stream_that_ended_lets_go_of_its_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the transport closes it; and nobody sends to it any more."""
    opened: list[EventsProtocol] = []
    lost = EventsProtocol.connection_lost
    at_the_end: list[int] = []

    def connection_lost(self: EventsProtocol, exc: Exception | None) -> None:
        opened.append(self)
        assert self._borrowed is not None
        number = self._borrowed.fileno()
        lost(self, exc)
        os.fstat(number)  # still open: the transport has yet to close it
        at_the_end.append(self._borrowed.fileno())

    monkeypatch.setattr(EventsProtocol, "connection_lost", connection_lost)
    async with live_server() as live:
        client = await SseClient.connect(live.port, "/api/events?cities=shanghai")
        await client.until("connected")
        live.publish("shanghai", type="x")
        await client.until("x")
        await client.close()
        await eventually(lambda: bool(opened), "the connection is lost")
        live.publish("shanghai", type="x")
        assert (live.hub.live, live.hub.delivered) == (0, 1)
    assert at_the_end == [-1]


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_streams_are_sent_to_on_either_loop(loop: object) -> None:
    """Under uvloop, as the product runs, and under asyncio's own."""

    async def read() -> list[int]:
        async with live_server() as live:
            client = await SseClient.connect(live.port, "/api/events?cities=shanghai")
            await client.until("connected")
            for _ in range(20):
                live.publish("shanghai", type="x")
            return [frame["revision"] for frame in await client.frames(20)]

    with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
        assert runner.run(read()) == list(range(1, 21))
