"""TLS handled here, so that limits apply from the start of a connection and not only after its handshake.

If uvicorn got the TLS context, connections would be invisible until then: a minute for a silent client. asyncio's TLS
protocol is inserted by hand, under uvloop too, whose `start_tls` loses the client's first bytes.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any

from planetwire.web.http.bounded_protocol import BoundedProtocol
from planetwire.web.http.front import LINGER_S

HANDSHAKE_MAX_S = 3_600  # never reached: the front's deadline for the headers is earlier


class TlsGate(SSLProtocol):
    """Wraps one protocol, which gets its transport after the handshake."""

    def __init__(self, behind: BoundedProtocol, context: ssl.SSLContext) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            behind,
            context,
            None,  # type: ignore[arg-type]  # no future: the protocol's callback is used
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_MAX_S,
            ssl_shutdown_timeout=int(LINGER_S),
        )
        self._behind = behind

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection and start the handshake."""
        self._behind.arrive(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Without a handshake the inner protocol gets no other notice."""
        super().connection_lost(exc)
        if self._behind.transport is None:
            self._behind.leave()


def gated(protocol: Callable[..., BoundedProtocol], context: ssl.SSLContext | None) -> Callable[..., Any]:
    """The factory for `uvicorn.Config(http=…)`: the protocol, behind a gate if there is a TLS context."""
    if context is None:
        return protocol

    def made(**arguments: Any) -> TlsGate:
        return TlsGate(protocol(**arguments), context)

    return made
