"""The web process: it serves until SIGTERM, and ends its streams before it ends."""

from __future__ import annotations

import asyncio
import socket
from ssl import SSLContext

import uvloop

from planetwire.log import get_logger
from planetwire.runtime.failpoint import arm
from planetwire.runtime.settle import settle
from planetwire.settings import Settings
from planetwire.supervise.datadir import DataDir
from planetwire.supervise.own_secrets import secrets_of
from planetwire.supervise.roles import database_of, end_in_any_case, running_loops, url_of
from planetwire.supervise.supervisor import listening_socket
from planetwire.tls import server_context
from planetwire.web.http.server import server_config
from planetwire.web.http.uvicorn_seam import Server
from planetwire.wiring import web as serving
from planetwire.wiring.secrets import Secrets

log = get_logger()


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
        server = Server(server_config(web.app, web.protocol, context), told.set)
        settle()
        async with running_loops(web.loops):
            log.info("web.server.started", url=url_of(settings, sock.getsockname()[1]))
            await _serve_until(told, server, sock, web)


async def _serve_until(told: asyncio.Event, server: Server, sock: socket.socket, web: serving.Web) -> None:
    """Live streams are ended first: uvicorn would wait for them, and their clients should hear when to return."""
    served = asyncio.ensure_future(server.serve(sockets=[sock]))
    served.add_done_callback(lambda _: told.set())
    await told.wait()
    end_in_any_case()
    await web.drain()
    await served
