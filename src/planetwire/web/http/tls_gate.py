"""TLS of our own: a connection is counted and waited for from its start, and not only from the end of its handshake.

Handed to uvicorn, a context would hide connections until then: a minute, if the client says nothing. asyncio's protocol
is put in between by hand, under uvloop too, whose `start_tls` reads the client's first bytes away from itself.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any

from planetwire.web.http.bounded_protocol import BoundedProtocol
from planetwire.web.http.front import LINGER_S

HANDSHAKE_MAX_S = 3_600  # the front is sooner: what it waits for is the end of the headers


class TlsGate(SSLProtocol):
    """In front of one protocol, which gets a transport of its own when hands are shaken."""

    def __init__(self, behind: BoundedProtocol, context: ssl.SSLContext) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            behind,
            context,
            None,  # type: ignore[arg-type]  # nobody waits: the protocol is told
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE_MAX_S,
            ssl_shutdown_timeout=int(LINGER_S),
        )
        self._behind = behind

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counted, and the handshake begun."""
        self._behind.arrive(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Who never shook hands is not told by anybody else."""
        super().connection_lost(exc)
        if self._behind.transport is None:
            self._behind.leave()


def gated(protocol: Callable[..., BoundedProtocol], context: ssl.SSLContext | None) -> Callable[..., Any]:
    """What `uvicorn.Config(http=…)` makes connections with: the protocol, behind a gate where there is a context."""
    if context is None:
        return protocol

    def made(**arguments: Any) -> TlsGate:
        return TlsGate(protocol(**arguments), context)

    return made
