"""HEAD, for every GET route: the headers of its GET, ETag and length included (RFC 9110, 9.3.2)."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from planetwire.model.wire import EVENTS_PATH

READ = ("/api/", "/healthz", "/readyz", "/metrics")  # the page's files handle HEAD themselves


class HeadAsGet:
    """Middleware. The server suppresses the body, since its own scope still says HEAD."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Not for streams, which never end."""
        if scope["type"] == "http" and scope["method"] == "HEAD" and scope["path"] != EVENTS_PATH:
            scope = {**scope, "method": "GET"} if scope["path"].startswith(READ) else scope
        await self._app(scope, receive, send)
