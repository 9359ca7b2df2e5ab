"""A connection until its TLS handshake is done: bounded and counted like every other, and none of uvicorn's business.

Handed to uvicorn a context would hide the connection until then, a minute if its client says nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, cast

from planetwire.web.bounded_protocol import BoundedProtocol
from planetwire.web.front import Front, Wait


class Early(asyncio.Protocol):
    """What comes between the end of the handshake and the protocol's turn."""

    def __init__(self) -> None:
        self.data = b""
        self.lost = False

    def data_received(self, data: bytes) -> None:
        """Kept: at most what the transport reads in one turn."""
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self.lost = True


class TlsGate(asyncio.Protocol):
    """In front of one protocol."""

    waits: Wait | None = None
    _transport: asyncio.Transport
    _dropped = False
    _task: asyncio.Task[None] | None = None

    def __init__(self, behind: BoundedProtocol, context: ssl.SSLContext) -> None:
        self._behind = behind
        self._context = context
        self._front: Front = behind.front

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counted, and the handshake begun."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.pause_reading()
        socket = transport.get_extra_info("socket")
        self._behind.reserved = not self._front.opened(self, socket.fileno())
        self._task = asyncio.get_running_loop().create_task(self._shake_hands())

    async def _shake_hands(self) -> None:
        loop, early = asyncio.get_running_loop(), Early()
        try:
            transport = await loop.start_tls(
                self._transport,
                early,
                self._context,
                server_side=True,
                ssl_handshake_timeout=self._front.settings.header_s,
            )
        except OSError:  # no TLS, none that we speak, or gone; a timeout too
            self._end()
            return
        except asyncio.CancelledError:
            self._end()
            raise
        if transport is None or early.lost or self._dropped:
            self._end()
            return
        self._front.wait(self, None)
        transport.set_protocol(self._behind)
        self._behind.connection_made(transport)
        if early.data:
            self._behind.data_received(early.data)

    def _end(self) -> None:
        self._transport.abort()
        self._front.wait(self, None)
        self._front.gone(dropped=self._dropped)

    def expire(self, wait: Wait) -> None:
        """See `Waiting`. Nothing can be said before there is a key to say it with."""
        self._transport.abort()

    def drop(self) -> None:
        """See `Waiting`."""
        self._dropped = True
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Before the handshake began."""
        if self._task is not None:
            self._task.cancel()


def gated(protocol: Callable[..., BoundedProtocol], context: ssl.SSLContext | None) -> Callable[..., Any]:
    """What `uvicorn.Config(http=…)` makes connections with: the protocol, behind a gate where there is a context."""
    if context is None:
        return protocol

    def made(**arguments: Any) -> TlsGate:
        return TlsGate(protocol(**arguments), context)

    return made
