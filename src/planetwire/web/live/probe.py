"""A client of `/ws` like a browser's, to check whether an event arrives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext
from typing import Any

import orjson
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import WebSocketException

from planetwire.errors import BackendError
from planetwire.runtime.ending import end_all
from planetwire.web.live.frames import EARTH_UPDATES

PROBE_TIMEOUT_S = 5.0
GREETING_MAX = 80


class Probe:
    """When each revision of one layer arrived."""

    def __init__(self, socket: ClientConnection, layer: str, greeting: str) -> None:
        self.greeting = greeting
        self._socket = socket
        self._layer = layer
        self._came: dict[int, float] = {}
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """Receive events and record their times, until cancelled or the socket closes."""
        with suppress(OSError, WebSocketException):
            async for text in self._socket:
                frame: dict[str, Any] = orjson.loads(text)
                if frame.get("channel") == EARTH_UPDATES and self._layer in frame["data"]["layers"]:
                    self._came[frame["revision"]] = time.monotonic()
                    self._moved.set()

    async def arrived(self, revision: int, within_s: float) -> float | None:
        """Monotonic seconds at which this revision arrived, or a later one of the layer; None: not in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not any(number >= revision for number in self._came):
                    self._moved.clear()
                    await self._moved.wait()
        return min((at for number, at in self._came.items() if number >= revision), default=None)


@asynccontextmanager
async def listen(
    url: str, layer: str, token: str | None = None, trust: SSLContext | None = None
) -> AsyncIterator[Probe]:
    """Follow `earth_updates` of the server at `url` (http://…, or https://… with what is trusted there). Raises
    BackendError when that cannot be done.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    secure: dict[str, Any] = {} if trust is None else {"ssl": trust}
    try:
        socket = await connect_websocket(
            f"{url.replace('http', 'ws', 1)}/ws",
            open_timeout=PROBE_TIMEOUT_S,
            proxy=None,
            additional_headers=headers,
            **secure,
        )
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            greeting = str(await socket.recv(decode=True))
            await socket.send(orjson.dumps({"subscribe": [EARTH_UPDATES]}).decode())
            while b'"subscribed"' not in await socket.recv(decode=False):
                pass
    except (OSError, TimeoutError, WebSocketException) as error:
        raise BackendError(f"{url}/ws: {error!r}") from error
    probe = Probe(socket, layer, greeting[:GREETING_MAX])
    reading = asyncio.ensure_future(probe.run())
    try:
        yield probe
    finally:
        await end_all([reading])
        await socket.close()
