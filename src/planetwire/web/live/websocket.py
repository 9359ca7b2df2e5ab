"""`/ws`: checks before the upgrade, heartbeats, the slow-reader rule and the end of all sockets at shutdown."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, WebSocket
from starlette.responses import Response

from planetwire.errors import Forbidden, PlanetwireError
from planetwire.log import get_logger
from planetwire.ports import Clock, LiveStream
from planetwire.settings import StreamSettings
from planetwire.web.access.auth import Guard, same_origin
from planetwire.web.access.limits import ConnectionLimits, Slot
from planetwire.web.http.problems import of_error
from planetwire.web.http.proxies import peer_of
from planetwire.web.live.task_board import TaskBoard
from planetwire.web.live.ws_session import CUT_KEY, TOPICS, WsSession

log = get_logger()

PATH = "/ws"
SWEEP_S = 1.0  # how often stalled sends are checked
BEATS_AT_ONCE = 500  # heartbeats written before yielding to the loop


class SocketEndpoint:
    """All sockets of this process."""

    def __init__(
        self,
        hub: LiveStream,
        board: TaskBoard,
        *,
        guard: Guard,
        limits: ConnectionLimits,
        clock: Clock,
        settings: StreamSettings,
    ) -> None:
        self.sessions: set[WsSession] = set()
        self.cut = 0
        self._hub = hub
        self._board = board
        self._guard = guard
        self._limits = limits
        self._clock = clock
        self._heartbeat_s = settings.heartbeat_s
        self._stall_s = settings.stall_s

    async def serve(self, socket: WebSocket) -> None:
        """One socket from handshake to end. Refusals are HTTP answers before the upgrade."""
        try:
            slot, sees_errors = await self._admit(socket)
        except PlanetwireError as error:
            await _deny(socket, of_error(error, PATH))
            return
        try:
            await socket.accept()
            cut = getattr(socket.state, CUT_KEY, None)
            session = WsSession(socket, self._hub, self._board, self._clock, cut, sees_errors=sees_errors)
            self.sessions.add(session)
            try:
                await session.run()
            finally:
                self.sessions.discard(session)
        finally:
            slot.release()

    async def _admit(self, socket: WebSocket) -> tuple[Slot, bool]:
        headers = socket.headers
        origin = headers.get("origin")
        if origin is not None and not same_origin(origin, headers.get("host")):
            raise Forbidden("the request comes from another site", code="wrong_origin")
        caller = self._guard.caller_of(headers.raw, peer_of(socket.scope))
        await self._guard.check_read(caller)
        sees_errors = await self._guard.sees_errors(caller)
        await self._guard.check_opening(caller.address)
        slot = self._limits.take(caller.address)
        try:
            await self._hub.locate(TOPICS, None, 1)  # so that `heads` is known; else the client gets a 503
        except BaseException:
            slot.release()
            raise
        return slot, sees_errors

    async def run(self) -> None:
        """Heartbeats on the wall clock and the slow-reader rule, until cancelled."""
        next_s = self._clock.monotonic() + self._heartbeat_s
        while True:
            await self._clock.sleep(min(SWEEP_S, max(0.0, next_s - self._clock.monotonic())))
            if self._clock.monotonic() >= next_s:
                next_s = max(next_s + self._heartbeat_s, self._clock.monotonic())
                await self.beat()
            self.sweep()

    async def beat(self) -> None:
        """One heartbeat to every socket."""
        for number, session in enumerate(list(self.sessions), 1):
            session.beat()
            if number % BEATS_AT_ONCE == 0:
                await asyncio.sleep(0)

    def sweep(self) -> None:
        """Cut sockets whose client took nothing for `stall_s`, whatever they follow."""
        now_s = self._clock.monotonic()
        for session in list(self.sessions):
            if session.stalled_for_s(now_s) >= self._stall_s:
                log.info("stream.subscriber.cut", transport="websocket")
                self.cut += 1
                session.cut()

    def tell_layers(self, revision: int) -> None:
        """The list of layers is another one now, as the declarations of this revision have it."""
        for session in list(self.sessions):
            session.tell_layers(revision)

    def drain(self) -> None:
        """Close all with 1012. Idempotent."""
        for session in list(self.sessions):
            session.finish()


async def _deny(socket: WebSocket, response: Response) -> None:
    if "websocket.http.response" in socket.scope.get("extensions", {}):
        await socket.send_denial_response(response)
    else:
        await socket.close(1008)


def router(endpoint: SocketEndpoint) -> APIRouter:
    """The route; access and Origin are checked by the endpoint, before the upgrade."""
    routes = APIRouter()

    @routes.websocket(PATH)
    async def ws(socket: WebSocket) -> None:
        """Layer events and job rows (contracts §5)."""
        await endpoint.serve(socket)

    return routes
