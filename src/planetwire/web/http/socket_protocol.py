"""A WebSocket's connection, whose refusals say what every answer says."""

from __future__ import annotations

from websockets.http11 import Response
from websockets.server import ServerProtocol

from planetwire.web.http.security import ALWAYS, NOTHING
from planetwire.web.http.uvicorn_seam import SocketConnection

CLOSED_KEY = "planetwire_closed"  # in the ASGI state of a WebSocket: its connection is gone


class SafeHandshake(ServerProtocol):
    """The side of the library that writes what comes before the upgrade."""

    def send_response(self, response: Response) -> None:
        """Also a refusal of the library's own."""
        for name, value in (*ALWAYS, ("content-security-policy", NOTHING)):
            if name not in response.headers:
                response.headers[name] = value
        super().send_response(response)


class SocketProtocol(SocketConnection):
    """For `uvicorn.Config(ws=…)`."""

    handshake = SafeHandshake

    def connection_lost(self, exc: Exception | None) -> None:
        """Told to who counted the connection before the upgrade."""
        super().connection_lost(exc)
        closed = self.state.get(CLOSED_KEY)
        if closed is not None:
            closed()
