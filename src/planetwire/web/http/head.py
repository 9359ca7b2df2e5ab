"""HEAD, for every route that is read: the headers of its GET, ETag and length included (RFC 9110, 9.3.2)."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from planetwire.model.wire import EVENTS_PATH

READ = ("/api/", "/healthz", "/readyz", "/metrics")  # files of the page know HEAD by themselves


class HeadAsGet:
    """Middleware. The server keeps the body back, since its own view of the request still says HEAD."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A stream is left out: it would have no end to wait for."""
        if scope["type"] == "http" and scope["method"] == "HEAD" and scope["path"] != EVENTS_PATH:
            scope = {**scope, "method": "GET"} if scope["path"].startswith(READ) else scope
        await self._app(scope, receive, send)
