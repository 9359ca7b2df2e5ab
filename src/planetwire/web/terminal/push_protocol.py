"""A bounded connection with a plain POST of observations answered without the application.

Why: what lies around the endpoint in a web framework costs more than to normalise a reading. uvicorn still parses,
queues what is pipelined and keeps connections alive; whatever is not plain goes to the application's own route, which
shares the endpoint.
"""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from planetwire.errors import PlanetwireError
from planetwire.log import get_logger
from planetwire.model.wire import PUSH_MAX_BYTES, PUSH_PATH
from planetwire.web.http.bounded_protocol import BoundedProtocol
from planetwire.web.http.problems import of_error, problem
from planetwire.web.http.security import Headers
from planetwire.web.http.uvicorn_seam import Answer, Exchange, HttpScope
from planetwire.web.terminal.ingest import IngestEndpoint

log = get_logger()

# Behind a proxy the application knows who is asking; a body without a length, or one to be asked for, it reads itself.
NOT_PLAIN = frozenset({b"expect", b"forwarded", b"transfer-encoding", b"x-forwarded-for", b"x-forwarded-proto"})


class PushProtocol(BoundedProtocol):
    """`pushed` is given by `make_protocol`; None: all goes to the application."""

    pushed: IngestEndpoint | None = None

    def answerer(self, scope: HttpScope) -> Answer | None:
        """Us, for a plain push."""
        if self.pushed is None or scope["path"] != PUSH_PATH:
            return None
        pairs = list(scope["headers"])
        headers = dict(pairs)
        if scope["method"] == "POST" and len(headers) == len(pairs) and _plain(headers):
            return partial(self._push, self.pushed, headers)
        return None

    async def _push(self, pushed: IngestEndpoint, headers: dict[bytes, bytes], exchange: Exchange) -> None:
        try:
            response = await _answer(pushed, headers, exchange)
        except PlanetwireError as error:
            response = of_error(error, PUSH_PATH)
        except Exception as error:
            log.error("web.request.crashed", path=PUSH_PATH, exc_info=error)
            response = problem(500, "internal", "an error of ours; the log has the details")
        if response is not None and not exchange.gone:
            closing = ((b"connection", b"close"),) if exchange.is_last else ()
            head = self.head(response.status_code, (*response.raw_headers, *closing))
            exchange.finish(head + bytes(response.body))
        exchange.forget()

    def head(self, status: int, headers: Headers) -> bytes:
        """As `head_of`; notes the request in the access log."""
        self.log_access(status)
        return self.head_of(status, headers)


def _plain(headers: dict[bytes, bytes]) -> bool:
    """Nothing asks for more, and the length need not be refused."""
    length = headers.get(b"content-length", b"")
    return NOT_PLAIN.isdisjoint(headers) and length.isdigit() and int(length) <= PUSH_MAX_BYTES


async def _answer(pushed: IngestEndpoint, headers: dict[bytes, bytes], exchange: Exchange) -> Response | None:
    """None: the client has gone before its body was here."""
    authorization = headers.get(b"authorization")
    await pushed.admit(None if authorization is None else authorization.decode("latin-1"), exchange.client)
    body = await exchange.body()
    return None if body is None else await pushed.take(body)
