"""uvicorn's settings, the same for the product and for tests that want all of it."""

from __future__ import annotations

import ssl
from typing import Any

import uvicorn

from planetwire.web.http.security import ALWAYS
from planetwire.web.http.socket_protocol import SocketProtocol
from planetwire.web.http.tls_gate import gated

SHUTDOWN_S = 5  # open requests get this long
SOCKET_MESSAGE_MAX_BYTES = 64 * 1024


def server_config(app: Any, protocol: Any, context: ssl.SSLContext | None = None) -> uvicorn.Config:
    """`protocol`: of `make_protocol`; `context`: to speak TLS."""
    return uvicorn.Config(
        app,
        http=gated(protocol, context),  # type: ignore[arg-type]
        loop="none",
        lifespan="off",
        access_log=False,
        log_config=None,  # its lines go the way of ours, see log.py
        log_level="warning",
        ws=SocketProtocol,
        ws_max_size=SOCKET_MESSAGE_MAX_BYTES,
        ws_per_message_deflate=False,  # a compression context a connection costs more than it saves
        timeout_graceful_shutdown=SHUTDOWN_S,
        server_header=False,
        proxy_headers=False,  # `BehindProxies` does it, for every carrier alike
        headers=list(ALWAYS),
    )
