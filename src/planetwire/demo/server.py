"""The feed server: the simulated providers over HTTP on loopback, with scripts, counts and an adjustable clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from socket import socket
from typing import Any

import orjson

from planetwire.demo.providers.answer import JSON, Answer, Query, text
from planetwire.demo.providers.simulation import simulations
from planetwire.demo.script import Counts, CountTable, Scripts, Step, bytes_of, checked, step_of
from planetwire.demo.simclock import SimClock
from planetwire.demo.wire import BadRequest, Request, body_on_wire, prepare, requests, send
from planetwire.demo.world import GP_PATH, METAR_PATH, QUAKES_FOLDER, RUNWAYS_PATH, World
from planetwire.errors import Forbidden, InputError, NotFound, PlanetwireError
from planetwire.log import get_logger

log = get_logger()

CONTROL = "/_control/"
CONNECTIONS_MAX = 256
_LOOPBACK = ("127.0.0.1", "::1")


def demo_environment(url: str) -> dict[str, str]:
    """Settings that point every built-in feed at a running feed server, with short intervals."""
    feeds = {
        "celestrak_gp": (f"{url}{GP_PATH}?GROUP=active&FORMAT=json", 600),
        "usgs_quakes": (f"{url}{QUAKES_FOLDER}all_day.geojson", 15),
        "awc_metar": (f"{url}{METAR_PATH}", 30),
        "runway_obs": (f"{url}{RUNWAYS_PATH}", 30),
        **{one.source: (f"{url}{one.path}", one.interval_s) for one in simulations()},
    }
    environment = {"PLANETWIRE_SIMULATED": "true"}
    for source, (address, interval_s) in feeds.items():
        prefix = f"PLANETWIRE_FEEDS__{source.upper()}__"
        environment |= {f"{prefix}URL": address, f"{prefix}INTERVAL_S": str(interval_s), f"{prefix}FLOOR_S": "0"}
    return environment


class FeedServer:
    """Serves a world. Start and stop it on one event loop; everything else may be called from any thread."""

    def __init__(self, world: World, *, host: str = "127.0.0.1", port: int = 0, sock: socket | None = None) -> None:
        """`sock`: already listening, so that the address survives a restart of the server."""
        self.world = world
        self._sock = sock
        self.counts = CountTable()
        self._scripts = Scripts()
        self._host, self._port = host, port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Address without a trailing slash, once started."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    async def start(self) -> None:
        """Bind and serve. Raises OSError when the port is taken."""
        if self._sock is not None:
            self._server = await asyncio.start_server(self._connected, sock=self._sock)
        else:
            self._server = await asyncio.start_server(self._connected, self._host, self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        log.info("demo.server.started", url=self.url, seed=self.world.seed)

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    def script(self, path: str, steps: Iterable[Step]) -> None:
        """Answer the next requests of a path by these steps, then normally. Raises InputError."""
        self._scripts.add(path, [checked(step) for step in steps])

    def set_body(self, path: str, body: bytes, content_type: str = JSON) -> None:
        """Serve exactly these bytes at a path, whatever the query, until reset."""
        self._scripts.fix(path, Answer(body, content_type, modified_s=self.world.clock.now_s()))

    def unset_body(self, path: str) -> None:
        """Let the simulation answer the path again."""
        self._scripts.fix(path, None)

    def advance(self, seconds: float) -> None:
        """Advance the simulated clock."""
        self.world.clock.advance(seconds)

    def reset(self) -> None:
        """Drop scripts, fixed bodies and counts; the clock keeps its time."""
        self._scripts.clear()
        self.counts.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._converse(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = str((writer.get_extra_info("peername") or ("",))[0])
        if len(self._connections) > CONNECTIONS_MAX:
            return
        try:
            async for request in requests(reader):
                if not await self._respond(request, writer, peer):
                    return
        except BadRequest as bad:
            refusal = prepare(Request("GET", "/", {}, {}, b"", False), text(bad.status, str(bad)), Step())
            await send(writer, refusal, refusal.body, keep_alive=False)

    async def _respond(self, request: Request, writer: asyncio.StreamWriter, peer: str) -> bool:
        """Answer one request; returns whether the connection is kept."""
        if request.path.startswith(CONTROL):
            out = prepare(request, self._control(request, peer), Step(validators=False))
            await send(writer, out, body_on_wire(out), keep_alive=request.keep_alive)
            return request.keep_alive
        self.counts.asked(request.path)
        step = self._scripts.take(request.path)
        if step.delay_s:
            await asyncio.sleep(step.delay_s)
        out = prepare(request, await self._answer(request, step, peer), step)
        keep = request.keep_alive and step.cut_at_byte is None
        body = body_on_wire(out)
        # Counted before it is written, so that a client that has read the answer finds it counted.
        self.counts.answered(request.path, out.status, len(body))
        await send(writer, out, body, keep_alive=keep)
        return keep

    async def _answer(self, request: Request, step: Step, peer: str) -> Answer:
        if request.method not in ("GET", "HEAD"):
            return Answer(b"", status=405, headers={"Allow": "GET, HEAD"})
        if step.replaces():
            return step.answer()
        fixed = self._scripts.fixed(request.path)
        if fixed is not None:
            return fixed
        query = Query(request.query, peer, request.conditional and step.validators)
        return await asyncio.to_thread(self.world.answer, request.path, query)

    def _control(self, request: Request, peer: str) -> Answer:
        try:
            if peer not in _LOOPBACK:
                raise Forbidden("control is for this machine only")
            return Answer(orjson.dumps(self._controlled(request)), JSON)
        except PlanetwireError as error:
            return Answer(orjson.dumps({"code": error.code, "detail": error.message}), JSON, error.status)

    def _controlled(self, request: Request) -> dict[str, Any]:
        action = request.path.removeprefix(CONTROL)
        if request.method == "GET" and action == "state":
            clock = self.world.clock
            return {"now_s": clock.now_s(), "start_s": clock.start_s, "rate": clock.rate, "seed": self.world.seed}
        if request.method == "GET" and action == "counts":
            return {path: self.counts[path].as_json() for path in self.counts}
        if request.method != "POST":
            raise NotFound("no such control")
        if request.headers.get("content-type", "").partition(";")[0].strip() != JSON:
            raise InputError("control takes application/json", code="bad_content_type")
        return self._changed(action, _object(request.body))

    def _changed(self, action: str, given: Mapping[str, Any]) -> dict[str, Any]:
        if action == "reset":
            self.reset()
            return {}
        if action == "advance":
            return {"now_s": self._advanced(given.get("seconds"))}
        path = str(given.get("path", ""))
        if action not in ("script", "body"):
            raise NotFound("no such control")
        if not path.startswith("/"):
            raise InputError("a path starts with /", code="bad_path")
        if action == "script":
            steps = given.get("steps")
            if not isinstance(steps, list):
                raise InputError("steps is a list", code="bad_step")
            return {"waiting": self._scripts.add(path, [step_of(one) for one in steps])}
        body = bytes_of(given)
        if body is None:
            self.unset_body(path)
        else:
            self.set_body(path, body, str(given.get("content_type", JSON)))
        return {"bytes": len(body or b"")}

    def _advanced(self, seconds: Any) -> float:
        try:
            return self.world.clock.advance(float(seconds))
        except (TypeError, ValueError) as error:
            raise InputError("seconds is a number from 0 up", code="bad_seconds") from error


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        given = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as error:
        raise InputError("the body is not JSON", code="bad_json") from error
    if not isinstance(given, dict):
        raise InputError("the body is a JSON object", code="bad_json")
    return given


__all__ = ["Counts", "FeedServer", "SimClock", "Step", "World", "demo_environment"]
