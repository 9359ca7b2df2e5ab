"""The bounds that remain with uvicorn's own protocol classes (PLANETWIRE_PLAIN_HTTP): a middleware.

A request is checked once its head is complete, so the head's content is bounded, but neither the memory nor the time it
took to arrive; the body is counted as it is read.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planetwire.web.http.front import Front
from planetwire.web.http.request_head import Head, Refusal, body_too_large, head_too_large, url_too_long

CLOSE = (b"connection", b"close")


class PlainBounds:
    """Before every other middleware."""

    def __init__(self, app: ASGIApp, front: Front) -> None:
        self._app = app
        self._front = front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on with its body counted."""
        head = Head(_target(scope), scope["headers"], scope["http_version"], scope["type"] == "websocket")
        refusal = self._refusal(head)
        if refusal is not None:
            await self._refuse(refusal, scope, receive, send)
        elif scope["type"] == "websocket":
            await self._app(scope, receive, send)
        else:
            await self._counted(head, scope, receive, send)

    def _refusal(self, head: Head) -> Refusal | None:
        bounds = self._front.settings
        if len(head.url) > bounds.url_bytes:
            return url_too_long(bounds.url_bytes)
        if len(head.headers) > bounds.header_lines:
            return head_too_large(bounds)
        return head.refusal(self._front, reserved=False)

    async def _counted(self, head: Head, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._front.body_max(head.path)
        size, began = 0, False

        async def receive_counted() -> Message:
            """A reader beyond the limit sees a disconnected client."""
            nonlocal size
            if size <= limit:
                message = await receive()
                size += len(message.get("body", b""))
            return {"type": "http.disconnect"} if size > limit else message

        async def send_unless_refused(message: Message) -> None:
            nonlocal began
            if began or size <= limit:
                began = True
                await send(message)

        try:
            await self._app(scope, receive_counted, send_unless_refused)
        except Exception:
            if size <= limit:
                raise
        if size > limit and not began:
            await self._refuse(body_too_large(limit), scope, receive, send)

    async def _refuse(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the last response of the connection; for an upgrade too."""
        self._front.refused[refusal.code] += 1
        response = refusal.response()
        response.raw_headers.append(CLOSE)
        await response(scope, receive, send)


def _target(scope: Scope) -> bytes:
    """As it was sent, without the host of an absolute one."""
    path: bytes = scope["raw_path"]
    return b"?".join(filter(None, (path, scope["query_string"])))
