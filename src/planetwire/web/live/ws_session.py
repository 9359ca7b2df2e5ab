"""One socket of `/ws`: its subscriptions, its outgoing frames, and the one task that sends them.

Invariant: nothing is queued without a bound. Events wait behind the hub's cursor, rows as the latest of their job, and
the client's next message is not read while the buffer is full.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect

from planetwire.errors import PlanetwireError
from planetwire.log import get_logger
from planetwire.model import Cursor, Json, ResyncReason
from planetwire.ports import Clock, LiveStream, Subscription
from planetwire.web.http.outgoing import Outgoing
from planetwire.web.live import frames
from planetwire.web.live.frames import DATASOURCE_TASKS, EARTH_UPDATES
from planetwire.web.live.task_board import TaskBoard
from planetwire.web.live.ws_message import WsMessage, parse_message

log = get_logger()

REPLAY_LIMIT = 2000  # events replayed to a returning client; with more it reloads its layers
ROWS_MAX = 1000  # jobs whose rows may wait for one client; with more it is cut as too slow
CLOSE_RESTART = 1012
CLOSE_TIMEOUT_S = 2.0  # for the close frame at shutdown
TOPICS = (EARTH_UPDATES,)
CUT_KEY = "planetwire_cut"  # in the ASGI state of a WebSocket: resets its connection


class WsSession:
    """The hub's FrameSink and the board's RowWatcher for one socket."""

    def __init__(
        self,
        socket: WebSocket,
        hub: LiveStream,
        board: TaskBoard,
        clock: Clock,
        cut: Callable[[], None] | None,
        *,
        sees_errors: bool = True,
    ) -> None:
        self._socket = socket
        self._hub = hub
        self._board = board
        self._clock = clock
        self._cut = cut
        self._sees_errors = sees_errors
        self._outgoing = Outgoing()
        self._rows: dict[int, bytes] = {}
        self._watching = False
        self._sender: asyncio.Task[None] | None = None
        self._blocked_at_s: float | None = None  # since when one send has been waiting
        self.subscription: Subscription | None = None
        self.write = self._outgoing.write
        self.write_many = self._outgoing.write_many
        self.pending_bytes = self._outgoing.pending_bytes

    # --- life

    async def run(self) -> None:
        """Until the client leaves, is cut, or the server shuts down. The socket is already accepted."""
        heads = self._hub.heads(TOPICS)
        self._write_json({"type": "connected", "epoch": self._hub.epoch, "heads": dict(heads)})
        self._sender = asyncio.create_task(self._send_all())
        tasks = [self._sender, asyncio.create_task(self._receive_all())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leave_channels({EARTH_UPDATES, DATASOURCE_TASKS})
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception) and not isinstance(result, (WebSocketDisconnect, RuntimeError)):
                    log.error("web.socket.crashed", exc_info=result)

    def cut(self) -> None:
        """The client is too slow: drop the connection and its buffers."""
        if self._sender is not None:
            self._sender.cancel()
        if self._cut is not None:
            self._cut()

    def finish(self) -> None:
        """At shutdown: flush, then close 1012."""
        self._leave_channels({EARTH_UPDATES, DATASOURCE_TASKS})
        if self._outgoing.full:
            self.cut()
        else:
            self._outgoing.finish()

    def stalled_for_s(self, now_s: float) -> float:
        """How long the present send has been waiting for the client."""
        return 0.0 if self._blocked_at_s is None else now_s - self._blocked_at_s

    # --- to the client

    async def _send_all(self) -> None:
        while True:
            for frame in await self._outgoing.ready():
                await self._send(frame)
                self._outgoing.sent(len(frame))
            rows, self._rows = self._rows, {}
            for frame in rows.values():
                await self._send(frame)
            if self._outgoing.finishing and not self._outgoing.pending_bytes():
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._socket.close(CLOSE_RESTART)
                return

    async def _send(self, frame: bytes) -> None:
        self._blocked_at_s = self._clock.monotonic()
        await self._socket.send_text(frame.decode())
        self._blocked_at_s = None

    def _write_json(self, frame: Json) -> None:
        self.write(orjson.dumps(frame))

    def offer(self, job_id: int, frame: bytes) -> None:
        """A ledger row; only the latest of a job waits."""
        self._rows[job_id] = frame
        if len(self._rows) > ROWS_MAX:
            self.cut()
        else:
            self._outgoing.wake()

    def beat(self) -> None:
        """A heartbeat with the cursor of `earth_updates`, null when it is not followed."""
        following = self.subscription
        cursor = None if following is None else Cursor(self._hub.epoch, following.cursor)
        self._write_json(frames.heartbeat(cursor, self._clock.now()))

    def tell_layers(self, revision: int) -> None:
        """To whoever subscribed to anything: the lists of layers and sources are to be read again."""
        if self.subscription is not None or self._watching:
            self._write_json({"type": "layers_changed", "revision": revision})

    def resync(self, reason: ResyncReason, /) -> None:
        """The layers must be fetched again."""
        log.info("stream.resync.required", reason=reason.value, head=self._hub.head, channel=EARTH_UPDATES)
        head = Cursor(self._hub.epoch, self._hub.head)
        self._write_json(frames.resync_required(reason, head, self._clock.now(), channel=EARTH_UPDATES))

    # --- from the client

    async def _receive_all(self) -> None:
        while True:
            await self._outgoing.room()
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            try:
                await self._handle(parse_message(message.get("text") or message.get("bytes")))
            except PlanetwireError as error:
                self._write_json({"type": "error", "code": error.code, "detail": error.message})

    async def _handle(self, message: WsMessage) -> None:
        if message.unsubscribe:
            self._leave_channels(set(message.unsubscribe))
        if message.subscribe or message.unsubscribe:
            await self._join_channels(message)
        if message.ping is not None:
            self._write_json({"type": "pong", "ping": message.ping})

    async def _join_channels(self, message: WsMessage) -> None:
        """Join, send `subscribed`, then replay: no event published in between is missed."""
        if EARTH_UPDATES in message.subscribe and (self.subscription is None or EARTH_UPDATES in message.since):
            start = await self._hub.locate(TOPICS, message.since.get(EARTH_UPDATES), REPLAY_LIMIT)
            self._leave_channels({EARTH_UPDATES})
            self.subscription = self._hub.join(TOPICS, start, self)
        if DATASOURCE_TASKS in message.subscribe:
            self._watching = True
            self._board.attach(self, sees_errors=self._sees_errors)
        followed = {EARTH_UPDATES: self.subscription is not None, DATASOURCE_TASKS: self._watching}
        channels = [name for name, yes in followed.items() if yes]
        self._write_json({"type": "subscribed", "channels": channels, "heads": dict(self._hub.heads(TOPICS))})
        self._outgoing.follower = self.subscription
        if self.subscription is not None and not self._outgoing.full:
            self.subscription.resume()

    def _leave_channels(self, channels: set[str]) -> None:
        if EARTH_UPDATES in channels and self.subscription is not None:
            self.subscription.close()
            self.subscription = self._outgoing.follower = None
        if DATASOURCE_TASKS in channels and self._watching:
            self._watching = False
            self._board.detach(self)
            self._rows.clear()
