"""The web process: it serves until SIGTERM, and ends its streams before it ends."""

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

LOOK_S = 0.1


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
        told = asyncio.Event()
        server = _server(web, context, told) if web.protocol else _plain_server(settings, web, context, told)
        settle()
        async with running_loops(web.loops):
            log.info("web.server.started", url=url_of(settings, sock.getsockname()[1]))
            await _serve_until(told, server, sock, web)


def _server(web: serving.Web, context: SSLContext | None, told: asyncio.Event) -> uvicorn.Server:
    from planetwire.web.http.uvicorn_seam import Server  # which a plain server does without

    return Server(server_config(web.app, web.protocol, context), told.set)


def _plain_server(
    settings: Settings, web: serving.Web, context: SSLContext | None, told: asyncio.Event
) -> uvicorn.Server:
    """One that is not ours to tell anything: that a signal came is seen by looking, and when it is raised again after
    serving, nothing is left to end.
    """
    server = uvicorn.Server(plain_config(web.app, settings.requests, context))

    def end(*_: object) -> None:
        server.should_exit = True
        told.set()

    async def look() -> None:
        while not server.should_exit:  # noqa: ASYNC110  # uvicorn tells nobody
            await asyncio.sleep(LOOK_S)
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    web.loops["told"] = look
    log.warning("web.server.plain", off=PLAIN_OFF)
    return server


async def _serve_until(told: asyncio.Event, server: uvicorn.Server, sock: socket.socket, web: serving.Web) -> None:
    """Live streams are ended first: uvicorn would wait for them, and their clients should hear when to return."""
    served = asyncio.ensure_future(server.serve(sockets=[sock]))
    served.add_done_callback(lambda _: told.set())
    await told.wait()
    end_in_any_case()
    await web.drain()
    await served
