"""uvicorn's HTTP protocol with a plain POST of observations answered without the application.

Why: what lies around the endpoint in a web framework costs more than to normalise a reading. uvicorn still parses,
queues what is pipelined and keeps connections alive; whatever is not plain goes to the application's own route, which
shares the endpoint.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.protocols.utils import get_client_addr, get_path_with_query_string

from planetwire.errors import PlanetwireError
from planetwire.log import get_logger
from planetwire.model.wire import PUSH_MAX_BYTES, PUSH_PATH
from planetwire.web.http.bounded_protocol import BoundedProtocol
from planetwire.web.http.problems import of_error, problem
from planetwire.web.http.security import Headers
from planetwire.web.terminal.ingest import IngestEndpoint

log = get_logger()

# Behind a proxy the application knows who is asking; a body without a length, or one to be asked for, it reads itself.
NOT_PLAIN = frozenset({b"expect", b"forwarded", b"transfer-encoding", b"x-forwarded-for", b"x-forwarded-proto"})


class PushProtocol(BoundedProtocol):
    """`pushed` is given by `make_protocol`; None: all goes to the application."""

    pushed: IngestEndpoint | None = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """`app` is not the application when uvicorn itself refuses."""
        if self.pushed is None or app is not self.app or cycle.scope["path"] != PUSH_PATH:
            super()._start_asgi_task(cycle, app)
            return
        pairs = list(cycle.scope["headers"])
        headers = dict(pairs)
        if cycle.scope["method"] == "POST" and len(headers) == len(pairs) and _plain(headers):
            task = self.loop.create_task(self._push(cycle, self.pushed, headers))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        else:
            super()._start_asgi_task(cycle, app)

    async def _push(self, cycle: RequestResponseCycle, pushed: IngestEndpoint, headers: dict[bytes, bytes]) -> None:
        try:
            response = await _answer(cycle, pushed, headers)
        except PlanetwireError as error:
            response = of_error(error, PUSH_PATH)
        except Exception as error:
            log.error("web.request.crashed", path=PUSH_PATH, exc_info=error)
            response = problem(500, "internal", "an error of ours; the log has the details")
        if response is not None and not cycle.disconnected:
            self._finish(cycle, response)
        cycle.on_response = _nothing  # it holds the protocol

    def _finish(self, cycle: RequestResponseCycle, response: Response) -> None:
        closing = () if cycle.keep_alive else ((b"connection", b"close"),)
        head = self.head(response.status_code, (*response.raw_headers, *closing))
        cycle.response_started = cycle.response_complete = True
        self.transport.write(head + bytes(response.body))
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def head(self, status: int, headers: Headers) -> bytes:
        """As `head_of`; notes the request in the access log."""
        if self.access_log:
            self.access_logger.info(
                '%s - "%s %s HTTP/%s" %d',
                get_client_addr(self.scope),
                self.scope["method"],
                get_path_with_query_string(self.scope),
                self.scope["http_version"],
                status,
            )
        return self.head_of(status, headers)


def _plain(headers: dict[bytes, bytes]) -> bool:
    """Nothing asks for more, and the length need not be refused."""
    length = headers.get(b"content-length", b"")
    return NOT_PLAIN.isdisjoint(headers) and length.isdigit() and int(length) <= PUSH_MAX_BYTES


async def _answer(cycle: RequestResponseCycle, pushed: IngestEndpoint, headers: dict[bytes, bytes]) -> Response | None:
    """None: the client has gone before its body was here."""
    authorization, client = headers.get(b"authorization"), cycle.scope["client"]
    await pushed.admit(None if authorization is None else authorization.decode("latin-1"), client[0] if client else "")
    body = b""
    more = True
    while more:
        message = await cycle.receive()
        if message["type"] != "http.request":
            return None
        body += message["body"]
        more = message["more_body"]
    return await pushed.take(body)


def _nothing() -> None:
    """In place of a callback that was used."""
