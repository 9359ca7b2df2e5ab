"""One GET with its redirects: hop by hop, reading only the last body, everything bounded.

Invariant: token and password of the configured origin are never sent to another one, and the answer of another host is
marked as foreign.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

import httpcore
import httpx

from planetwire.collect.http.connect import NO_SUCH_HOST, Connections, Gate, RecordingStream
from planetwire.collect.http.credential import Access, contains_secret, spellings, with_parameter, without_user
from planetwire.collect.http.unpack import Unpacker
from planetwire.errors import FeedError
from planetwire.remote import HEADER_CHARS_MAX, host_of, whole_number, why_unreachable

READ_S = 30.0  # between two pieces of a response, and to connect
MAX_REDIRECTS = 5
LOCATION_BYTES_MAX = 8 * 1024
ERROR_BYTES_MAX = 4 * 1024  # read of an error response
ERROR_S = 5.0  # to read it
PIECES_AT_A_STRETCH = 256
PIECE_BYTES_LEAST = 64  # least average in a body of maximum size; tiny pieces only cost time
PIECES_LEAST = 1_024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_DATA = frozenset({200, 203})
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(rb"[A-Za-z0-9._:-]+")
_TIMEOUTS = {"connect": READ_S, "read": READ_S, "write": READ_S, "pool": READ_S}


@dataclass(frozen=True, slots=True)
class Answer:
    """The last host's answer: `body` unpacked; of an error response only its beginning.

    `foreign`: it came from another host than the configured one.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    foreign: bool


@dataclass(slots=True)
class Getter:
    """The GETs of one fetch. Raises FeedError in our own words, whatever the provider does."""

    url: str
    access: Access
    limit_bytes: int
    gate: Gate
    connections: Connections
    secrets: tuple[str, ...] = field(init=False)
    _start: httpx.URL = field(init=False)
    _keys: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.secrets = spellings(self.url, self.access.token)
        plain, basic = without_user(self.url)
        self._keys = {"Authorization": basic} if basic else {}
        token, credential = self.access.token, self.access.credential
        if token and credential.place == "header":
            self._keys[credential.name] = f"{credential.prefix}{token}"
        start = _parsed(plain) or _refuse(f"no address that can be asked: {host_of(self.url)}", "bad_body")
        self._start = self._keyed(start)

    async def get(self, headers: Mapping[str, str]) -> Answer:
        """The answer at the end of the redirects."""
        place, keyed, foreign = self._start, True, False
        self.gate.redirected = False
        for _ in range(MAX_REDIRECTS + 1):
            async with self._request(place, {**headers, **(self._keys if keyed else {})}) as response:
                received = _headers(response.headers)
                if response.status not in _REDIRECTS:
                    return await self._read(response, received, foreign)
                location = _location(response.headers)
            place, before = self._next(place, location), place
            self.gate.redirected = True
            keyed = keyed and _origin(place) == _origin(before)
            place = self._keyed(place) if keyed else place
            foreign = foreign or _host(place) != _host(before)
        return _refuse(f"more than {MAX_REDIRECTS} redirects", "redirect_refused")

    def _keyed(self, place: httpx.URL) -> httpx.URL:
        """The address with the token, if it is sent as a query parameter."""
        token, credential = self.access.token, self.access.credential
        if not token or credential.place != "query":
            return place
        return httpx.URL(with_parameter(str(place), credential.name, token))

    def _next(self, here: httpx.URL, location: str) -> httpx.URL:
        there = _parsed(location, here)
        if there is None:
            return _refuse("the provider redirects to no address that can be asked", "redirect_refused")
        if here.scheme == "https" and there.scheme == "http":
            return _refuse("the provider redirects from https to http; not followed", "redirect_refused")
        if _origin(there) != _origin(self._start) and contains_secret(location, self.secrets):
            return _refuse("the provider redirects to another host with our key; not followed", "redirect_refused")
        return there

    @asynccontextmanager
    async def _request(self, place: httpx.URL, headers: Mapping[str, str]) -> AsyncIterator[httpcore.Response]:
        pool = self.connections.to(place.scheme, place.host)
        target = httpcore.URL(scheme=place.raw_scheme, host=place.raw_host, port=place.port, target=place.raw_path)
        with self._translated("asked"):
            response = await pool.handle_async_request(
                httpcore.Request(
                    "GET",
                    target,
                    headers=[("Host", place.netloc), ("Connection", "close"), *headers.items()],
                    extensions={"timeout": _TIMEOUTS},
                )
            )
        self.gate.answered = True
        try:
            yield response
        finally:
            await response.aclose()  # closes the connection, unless the body was read to its end

    async def _read(self, response: httpcore.Response, headers: Mapping[str, str], foreign: bool) -> Answer:
        if response.status in _DATA:
            body = await self._whole(response, headers)
        else:
            body = await self._beginning(response, headers)
        return Answer(response.status, headers, body, foreign)

    async def _whole(self, response: httpcore.Response, headers: Mapping[str, str]) -> bytes:
        announced = whole_number(headers.get("content-length"))
        if announced is not None and announced > self.limit_bytes:
            return _refuse(f"the body is larger than {self.limit_bytes} bytes", "bad_body")
        unpacker, body, raw, piece = Unpacker(headers.get("content-encoding")), bytearray(), 0, b""
        pieces_max = self.limit_bytes // PIECE_BYTES_LEAST + PIECES_LEAST
        with self._translated("read"):
            async with aclosing(_pieces(response, pieces_max)) as pieces:
                async for piece in pieces:
                    raw += len(piece)
                    for part in unpacker.feed(piece):
                        body += part
                        if max(raw, len(body)) > self.limit_bytes:
                            return _refuse(f"the body is larger than {self.limit_bytes} bytes", "bad_body")
        body += unpacker.end()
        if announced is not None and announced != raw:
            return _refuse(f"{raw} bytes came, {announced} were announced", "truncated")
        connection = response.extensions.get("network_stream")
        if announced and isinstance(connection, RecordingStream) and await connection.has_more(piece):
            return _refuse(f"more came than the {announced} bytes that were announced", "truncated")
        return bytes(body)

    async def _beginning(self, response: httpcore.Response, headers: Mapping[str, str]) -> bytes:
        """The first bytes of an error response; how its body ends does not matter."""
        body = bytearray()
        try:
            unpacker, raw = Unpacker(headers.get("content-encoding")), 0
            async with asyncio.timeout(ERROR_S), aclosing(_pieces(response, PIECES_LEAST)) as pieces:
                async for piece in pieces:
                    raw += len(piece)
                    for part in unpacker.feed(piece):
                        body += part[:ERROR_BYTES_MAX]
                        if max(raw, len(body)) >= ERROR_BYTES_MAX:
                            return bytes(body[:ERROR_BYTES_MAX])
            body += unpacker.end()
        except (FeedError, TimeoutError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
            pass
        return bytes(body[:ERROR_BYTES_MAX])

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        """Translates the library's errors, which may quote received bytes, into ours."""
        host = host_of(self.url)
        try:
            yield
        except httpcore.TimeoutException as error:
            raise FeedError(f"no answer in time from {host}", code="transient") from error
        except httpcore.RemoteProtocolError as error:
            if doing == "read":
                raise FeedError("the answer broke off", code="truncated") from error
            if not isinstance(error.args[0], str):  # the parser's error: something other than HTTP was received
                raise FeedError(f"{host} answers with broken or oversized headers", code="bad_body") from error
            raise FeedError(f"{host} closed the connection without an answer", code="transient") from error
        except httpcore.NetworkError as error:
            if doing == "read":
                raise FeedError("the answer broke off", code="truncated") from error
            why = "a redirect led to a host that does not answer" if self.gate.redirected else _why(error)
            raise FeedError(f"cannot reach {host}: {why}", code="transient") from error
        except (httpcore.ProxyError, httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
            raise FeedError(f"cannot ask {host}: {type(error).__name__}", code="transient") from error


async def _pieces(response: httpcore.Response, pieces_max: int) -> AsyncGenerator[bytes, None]:
    """The body as received; yields to the loop now and then, since many tiny pieces may already be buffered."""
    count = 0
    async with aclosing(response.aiter_stream()) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            count += 1
            if count > pieces_max:
                _refuse(f"the body comes in more than {pieces_max:,} pieces", "bad_body")
            if not count % PIECES_AT_A_STRETCH:
                await asyncio.sleep(0)
            yield piece


def _refuse(message: str, code: str) -> NoReturn:
    raise FeedError(message, code=code)


def _why(error: httpcore.NetworkError) -> str:
    return NO_SUCH_HOST if str(error) == NO_SUCH_HOST else why_unreachable(error)


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """By lower-case name; a repeated name has both values, and a too long value counts as absent."""
    joined: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value[: HEADER_CHARS_MAX + 1].decode("latin-1")
        joined[key] = f"{joined[key]}, {text}"[: HEADER_CHARS_MAX + 1] if key in joined else text
    return joined


def _location(raw: Iterable[tuple[bytes, bytes]]) -> str:
    value = next((value for name, value in raw if name.lower() == b"location"), b"")
    return "" if len(value) > LOCATION_BYTES_MAX else value.decode("utf-8", "replace").strip()


def _parsed(address: str, base: httpx.URL | None = None) -> httpx.URL | None:
    """The address without user and fragment; None if it is invalid."""
    if not address:
        return None
    try:
        url = httpx.URL(address) if base is None else base.join(address)
        url = url.copy_with(username="", password="", fragment=None) if url.userinfo or url.fragment else url
        good = url.scheme in _PORTS and _HOST.fullmatch(url.raw_host) and url.raw_path.isascii()
        return url if good else None
    except (httpx.InvalidURL, ValueError, TypeError):
        return None


def can_be_asked(address: str) -> bool:
    """Whether it is an http or https address with a host."""
    return _parsed(address) is not None


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or _PORTS[url.scheme]


def _host(url: httpx.URL) -> tuple[str, int | None]:
    """Host and port; equal for http and https at their default ports."""
    return url.host, None if url.port in (None, _PORTS[url.scheme]) else url.port
