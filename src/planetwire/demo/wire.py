"""The feed server's HTTP/1.1: minimal, but able to delay, cut, compress and chunk an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

from planetwire.demo.providers.answer import Answer
from planetwire.demo.script import Step

BODY_MAX_BYTES = 32 * 1024 * 1024
HEADERS_MAX = 100
IDLE_S = 60.0
WRITE_S = 60.0
_CHUNK_BYTES = 16 * 1024
_BODILESS = (204, 304)


class BadRequest(Exception):
    """Bytes that are not an acceptable request; `status` says why."""

    def __init__(self, status: int) -> None:
        super().__init__(HTTPStatus(status).phrase)
        self.status = status


@dataclass(frozen=True)
class Request:
    """One request; header names are lower-case, query names too."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    keep_alive: bool

    @property
    def conditional(self) -> bool:
        """Whether it carries a validator."""
        return "if-none-match" in self.headers or "if-modified-since" in self.headers


async def requests(reader: asyncio.StreamReader) -> AsyncIterator[Request]:
    """Requests of one connection until it ends or has been idle too long. Raises BadRequest."""
    while True:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), IDLE_S)
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            return
        except asyncio.LimitOverrunError as error:
            raise BadRequest(431) from error
        request = await _request(head, reader)
        yield request
        if not request.keep_alive:
            return


async def _request(head: bytes, reader: asyncio.StreamReader) -> Request:
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or len(lines) > HEADERS_MAX:
        raise BadRequest(400)
    method, target, version = words
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    if "transfer-encoding" in headers:
        raise BadRequest(411)
    size = headers.get("content-length", "0")
    if not size.isdecimal() or int(size) > BODY_MAX_BYTES:
        raise BadRequest(413 if size.isdecimal() else 400)
    body = await asyncio.wait_for(reader.readexactly(int(size)), IDLE_S) if int(size) else b""
    parts = urlsplit(target)
    query = {name.lower(): value for name, value in parse_qsl(parts.query, keep_blank_values=True)}
    connection = headers.get("connection", "").lower()
    keep = connection != "close" and (version != "HTTP/1.0" or connection == "keep-alive")
    return Request(method, unquote(parts.path), query, headers, body, keep)


def _unchanged(request: Request, answer: Answer) -> bool:
    """ETag decides if the request has one; that of the plain or the compressed body."""
    given = request.headers.get("if-none-match")
    if given is not None:
        tags = {tag.strip().removeprefix("W/") for tag in given.split(",")}
        return bool(tags & {"*", answer.etag, _gzip_tag(answer)})
    since = request.headers.get("if-modified-since")
    if since is None or answer.modified_s is None:
        return False
    try:
        return int(answer.modified_s) <= parsedate_to_datetime(since).timestamp()
    except ValueError:
        return False


def _gzip_tag(answer: Answer) -> str:
    return answer.etag[:-1] + '-gzip"'


@dataclass(frozen=True)
class Outgoing:
    """An answer ready to be sent."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    step: Step
    head_only: bool


def prepare(request: Request, answer: Answer, step: Step) -> Outgoing:
    """Decide validators, 304 and compression. A step may override each."""
    validated = step.validators and answer.status == 200
    packed = step.gzip if step.gzip is not None else "gzip" in request.headers.get("accept-encoding", "").lower()
    packed = packed and len(answer.body) > 0 and (step.gzip is not None or answer.content_type != "application/gzip")
    headers = [("Vary", "Accept-Encoding")]
    if validated:
        headers.append(("ETag", _gzip_tag(answer) if packed else answer.etag))
        if answer.modified_s is not None:
            headers.append(("Last-Modified", formatdate(int(answer.modified_s), usegmt=True)))
    headers += list({**answer.headers, **step.headers}.items())
    if validated and _unchanged(request, answer):
        return Outgoing(304, headers, b"", step, False)
    headers.append(("Content-Type", step.content_type or answer.content_type))
    if packed:
        headers.append(("Content-Encoding", "gzip"))
    return Outgoing(answer.status, headers, answer.gzipped if packed else answer.body, step, request.method == "HEAD")


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _CHUNK_BYTES):
        yield body[start : start + _CHUNK_BYTES]


def body_on_wire(out: Outgoing) -> bytes:
    """The body bytes to send: framed, and cut as the step says."""
    if out.head_only or out.status in _BODILESS:
        return b""
    body = out.body
    if out.step.chunked:
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in _pieces(body)) + b"0\r\n\r\n"
    return body if out.step.cut_at_byte is None else body[: out.step.cut_at_byte]


async def send(writer: asyncio.StreamWriter, out: Outgoing, body: bytes, *, keep_alive: bool) -> None:
    """Write the answer; after a cut the caller closes. Raises TimeoutError, ConnectionError."""
    status = HTTPStatus(out.status) if out.status in HTTPStatus._value2member_map_ else None
    lines = [f"HTTP/1.1 {out.status} {status.phrase if status else 'Scripted'}", "Server: planetwire-demo"]
    lines += [f"Date: {formatdate(usegmt=True)}", f"Connection: {'keep-alive' if keep_alive else 'close'}"]
    lines += [f"{name}: {value}" for name, value in out.headers]
    if out.status not in _BODILESS:
        lines.append("Transfer-Encoding: chunked" if out.step.chunked else f"Content-Length: {len(out.body)}")
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)
    await asyncio.wait_for(writer.drain(), WRITE_S)
