"""Refuses paths and queries that are not UTF-8 without NUL: `bad_characters`.

Why in one place: PostgreSQL and file names accept no NUL, and a lone surrogate cannot be encoded, so each route would
fail in its own way.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

from planetwire.errors import InputError
from planetwire.web.http.problems import of_error

CODE = "bad_characters"


def check_text(name: str, raw: bytes) -> None:
    """Raises InputError `bad_characters`."""
    if b"%" not in raw and raw.isascii() and b"\x00" not in raw:
        return
    try:
        text = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise InputError(f"the {name} is not UTF-8", code=CODE) from None
    if "\x00" in text:
        raise InputError(f"the {name} has a NUL character", code=CODE)


class Legible:
    """Middleware, for requests and for WebSockets before their handshake."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass valid requests on."""
        try:
            if scope["type"] in ("http", "websocket"):
                check_text("path", scope.get("raw_path") or scope["path"].encode("utf-8", "replace"))
                check_text("query", scope.get("query_string", b""))
        except InputError as error:
            await of_error(error, scope["path"])(scope, receive, send)
            return
        await self._app(scope, receive, send)
