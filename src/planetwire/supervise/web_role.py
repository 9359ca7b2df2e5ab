"""The web process: serves until SIGTERM, then ends its streams before it exits."""

from __future__ import annotations

import asyncio
import signal
import socket
from ssl import SSLContext

import uvicorn
import uvloop

from planetwire.log import get_logger
from planetwire.runtime.failpoint import arm
from planetwire.runtime.settle import settle
from planetwire.settings import PLAIN_OFF, Settings
from planetwire.supervise.datadir import DataDir
from planetwire.supervise.own_secrets import secrets_of
from planetwire.supervise.roles import database_of, end_in_any_case, running_loops, url_of
from planetwire.supervise.supervisor import listening_socket
from planetwire.tls import server_context
from planetwire.web.http.server import plain_config, server_config
from planetwire.wiring import web as serving
from planetwire.wiring.secrets import Secrets

log = get_logger()

POLL_S = 0.1


def run_web(settings: Settings, fd: int | None) -> None:
    """Serve until SIGTERM."""
    arm(settings.failpoint)
    context = server_context(settings)
    dsn = database_of(settings) if settings.earth else None
    sock = socket.socket(fileno=fd) if fd is not None else listening_socket(settings.host, settings.port)
    code = DataDir(settings.data_dir).take_login_code()
    uvloop.run(_serve(settings, dsn, secrets_of(settings), code, sock, context))


async def _serve(
    settings: Settings,
    dsn: str | None,
    secrets: Secrets,
    code: str | None,
    sock: socket.socket,
    context: SSLContext | None,
) -> None:
    async with serving.open_web(settings, dsn, secrets, login_code=code) as web:
        stop = asyncio.Event()
        server = _server(web, context, stop) if web.protocol else _plain_server(settings, web, context, stop)
        settle()
        async with running_loops(web.loops):
            log.info("web.server.started", url=url_of(settings, sock.getsockname()[1]))
            await _serve_until(stop, server, sock, web)


def _server(web: serving.Web, context: SSLContext | None, stop: asyncio.Event) -> uvicorn.Server:
    from planetwire.web.http.uvicorn_seam import Server  # which a plain server does without

    return Server(server_config(web.app, web.protocol, context), stop.set)


def _plain_server(
    settings: Settings, web: serving.Web, context: SSLContext | None, stop: asyncio.Event
) -> uvicorn.Server:
    """Uvicorn's own server has no callback for signals, so its exit flag is polled. When it raises the signal again
    after serving, nothing is left to end.
    """
    server = uvicorn.Server(plain_config(web.app, settings.requests, context))

    def end(*_: object) -> None:
        server.should_exit = True
        stop.set()

    async def poll_exit() -> None:
        while not server.should_exit:  # noqa: ASYNC110  # uvicorn has no event for it
            await asyncio.sleep(POLL_S)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    web.loops["told"] = poll_exit
    log.warning("web.server.plain", off=PLAIN_OFF)
    return server


async def _serve_until(stop: asyncio.Event, server: uvicorn.Server, sock: socket.socket, web: serving.Web) -> None:
    """End live streams first: uvicorn would wait for them, and their clients need to know when to reconnect."""
    served = asyncio.ensure_future(server.serve(sockets=[sock]))
    served.add_done_callback(lambda _: stop.set())
    await stop.wait()
    end_in_any_case()
    await web.drain()
    await served
