"""uvicorn's settings, the same for the product and for tests that want all of it."""

from __future__ import annotations

import math
import ssl
from typing import Any

import uvicorn

from planetwire.settings import RequestSettings
from planetwire.web.http.security import ALWAYS

SHUTDOWN_S = 5  # open requests get this long
SOCKET_MESSAGE_MAX_BYTES = 64 * 1024


def server_config(app: Any, protocol: Any, context: ssl.SSLContext | None = None) -> uvicorn.Config:
    """`protocol`: of `make_protocol`; `context`: to speak TLS."""
    from planetwire.web.http.socket_protocol import SocketProtocol  # a plain server does without either
    from planetwire.web.http.tls_gate import gated

    return _config(app, http=gated(protocol, context), ws=SocketProtocol)


def plain_config(app: Any, bounds: RequestSettings, context: ssl.SSLContext | None = None) -> uvicorn.Config:
    """Without any class of ours."""
    return _config(
        app,
        http="httptools",
        ws="websockets-sansio",
        timeout_keep_alive=math.ceil(bounds.idle_s),
        ssl_context_factory=None if context is None else lambda config, default: context,
    )


def _config(app: Any, **protocols: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="none",
        lifespan="off",
        access_log=False,
        log_config=None,  # its lines go the way of ours, see log.py
        log_level="warning",
        ws_max_size=SOCKET_MESSAGE_MAX_BYTES,
        ws_per_message_deflate=False,  # a compression context a connection costs more than it saves
        timeout_graceful_shutdown=SHUTDOWN_S,
        server_header=False,
        proxy_headers=False,  # `BehindProxies` does it, for every carrier alike
        headers=list(ALWAYS),
        **protocols,
    )
