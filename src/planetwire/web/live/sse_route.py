"""`/api/events` on plain ASGI: for servers that cannot take the protocol class, and for the API description."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from planetwire.errors import PlanetwireError
from planetwire.model.wire import EVENTS_PATH
from planetwire.web.http.answers import answers
from planetwire.web.http.outgoing import Outgoing
from planetwire.web.http.problems import of_error
from planetwire.web.http.proxies import peer_of
from planetwire.web.live.sse import HEADERS, Opening, SseEndpoint


class AsgiCarrier(Outgoing):
    """Holds frames for one `send` loop."""

    def __init__(self) -> None:
        super().__init__()
        self.sender: asyncio.Task[None] | None = None

    def is_full(self) -> bool:
        """Whether it is waiting to drain."""
        return self.full

    def cut(self) -> None:
        """Cancel the loop, also while it hangs in `send`; the server then closes the connection."""
        if self.sender is not None:
            self.sender.cancel()

    def finish(self) -> None:
        """Flush and end; does not wait for a client that lags already."""
        if self.full:
            self.cut()
        else:
            super().finish()

    async def run(self, send: Send) -> None:
        """Send until finished."""
        while True:
            frames = await self.ready()
            if frames:
                body = b"".join(frames)
                await send({"type": "http.response.body", "body": body, "more_body": True})
                self.sent(len(body))
            elif self.finishing:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            if self.finishing:
                self.wake()


class EventStreamResponse(Response):
    """Admits the request when it is called, so that errors still become problem documents."""

    media_type = "text/event-stream"

    def __init__(self, endpoint: SseEndpoint, status_code: int = 200) -> None:
        super().__init__(status_code=status_code)
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the stream until either side ends it."""
        try:
            opening = await self._endpoint.admit(scope["query_string"], scope["headers"], peer_of(scope))
        except PlanetwireError as error:
            await of_error(error, EVENTS_PATH)(scope, receive, send)
            return
        await self._stream(opening, receive, send)

    async def _stream(self, opening: Opening, receive: Receive, send: Send) -> None:
        carrier = AsgiCarrier()
        stream = self._endpoint.join(opening, carrier)
        carrier.follower = stream.subscription
        tasks: list[asyncio.Task[None]] = []
        try:
            await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
            carrier.sender = asyncio.create_task(carrier.run(send))
            tasks = [carrier.sender, asyncio.create_task(_gone(receive))]
            stream.start()
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stream.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def router(endpoint: SseEndpoint) -> APIRouter:
    """The route; access is checked by the endpoint, as for the protocol class."""
    routes = APIRouter(tags=["terminal"])

    @routes.get(EVENTS_PATH, response_class=EventStreamResponse, responses=answers(503))
    async def events(
        request: Request,
        cities: str | None = None,
        since_revision: str | None = None,
        replay_limit: str | None = None,
    ) -> Response:
        """Live patches of the given cities: connected, replay after the cursor, then live.

        Without `cities` the stream lives and holds no patch; `connected` says in `hint` what to add.
        """
        return EventStreamResponse(endpoint)

    return routes
