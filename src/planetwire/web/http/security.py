"""The security headers of every response.

`ALWAYS` is part of uvicorn's own headers, so no response lacks it. The content policy depends on the response: anything
but a page may load nothing; a page may load what ours needs and open sockets to this host by name.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planetwire.web.http.hosts import HOST

Headers = Iterable[tuple[bytes, bytes]]

# The login code stands in the fragment, which is never sent. `no-referrer` would send our own writes without an Origin.
ALWAYS = (("x-content-type-options", "nosniff"), ("referrer-policy", "same-origin"))
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
STRICT = ((b"content-security-policy", NOTHING.encode()),)
PAGE = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; worker-src 'self' blob:; connect-src {connect}; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
NO_PAGES = ("/api/", "/healthz", "/readyz", "/metrics", "/ws")


def page_policy(host: str) -> str:
    """For a page requested under this host name: `'self'` does not cover WebSockets in every browser."""
    named = HOST.fullmatch(host) is not None and not host.startswith("[")  # the policy's syntax has no IPv6 hosts
    return PAGE.format(connect=f"'self' ws://{host} wss://{host}" if named else "'self'")


class ContentPolicy:
    """Middleware. A response with its own policy keeps it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Scripts of the page too: a worker has the policy of its script's response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("content-security-policy", _policy(scope, headers))
            await send(message)

        await self._app(scope, receive, with_policy)


def _policy(scope: Scope, headers: MutableHeaders) -> str:
    if scope["path"].startswith(NO_PAGES) or headers.get("content-type", "").startswith("application/problem"):
        return NOTHING
    return page_policy(next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), ""))
