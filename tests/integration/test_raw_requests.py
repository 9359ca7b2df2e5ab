"""Requests over a real socket, byte by byte as no client would send them: never a 5xx, and the server goes on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote_from_bytes, urlsplit

import httpx
import pytest_asyncio

from fix_earth import TOKEN, Earth, running_earth
from nasty import BODIES, NASTY
from planetwire.database.postgres import Pool

WITHIN_S = 60.0
NAMED = (
    *(b"cookie: planetwire_session=", b"cookie: ", b"authorization: Bearer "),
    *(b"host: ", b"origin: ", b"x-forwarded-for: "),
)
SHORT = [value for value in NASTY if len(value) <= 6_000]


@pytest_asyncio.fixture
async def both(pg_dsn: str, pg_pool: Pool, tmp_path: Path) -> AsyncIterator[Earth]:
    """Both halves on a socket."""
    async with running_earth(pg_dsn, pg_pool, tmp_path) as made:
        yield made


async def statuses(earth: Earth, sent: bytes) -> list[int]:
    """Of all answers until the connection ends."""
    address = urlsplit(earth.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(sent)
        async with asyncio.timeout(WITHIN_S):
            await writer.drain()
            got = await reader.read()
    except ConnectionError:  # refused before all of it was read
        got = b""
    finally:
        writer.close()
    return [int(found) for found in re.findall(rb"^HTTP/1\.1 (\d{3}) ", got, re.MULTILINE)]


async def begins(earth: Earth, sent: bytes) -> None:
    """The same of what may be a stream: the first line of its answer, since it has no end to wait for."""
    address = urlsplit(earth.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(sent)
        async with asyncio.timeout(WITHIN_S):
            line = await reader.readline()
    finally:
        writer.close()
    assert re.match(rb"HTTP/1\.1 [234]\d\d ", line), (sent[:300], line)


async def held(earth: Earth, sent: bytes) -> None:
    found = await statuses(earth, sent)
    assert all(status < 500 for status in found), (sent[:300], found)


def request(method: bytes, target: bytes, headers: bytes = b"", body: bytes = b"") -> bytes:
    length = b"content-length: %d\r\n" % len(body) if body else b""
    return b"%s %s HTTP/1.1\r\nhost: 127.0.0.1\r\n%s%sconnection: close\r\n\r\n%s" % (
        method,
        target,
        headers,
        length,
        body,
    )


async def test_no_target_is_a_5xx(both: Earth) -> None:
    for value in SHORT:
        quoted = quote_from_bytes(value, safe="").encode()
        for target in (b"/" + quoted, b"/api/v1/objects/" + quoted, b"/api/city/" + quoted + b"/detail"):
            await held(both, request(b"GET", target))
        for query in (b"limit=", b"source=", b"cities=", b"q="):
            for path in (b"/api/v1/jobs", b"/api/v1/visualization/satellites", b"/api/v1/search"):
                await held(both, request(b"GET", path + b"?" + query + quoted))
            await begins(both, request(b"GET", b"/api/events?" + query + quoted))
        raw = re.sub(rb"[\x00\r\n ]", b"", value)
        await held(both, request(b"GET", b"/" + raw))
        await held(both, request(b"GET", b"/api/v1/jobs?source=" + raw))


async def test_no_header_is_a_5xx(both: Earth) -> None:
    for value in SHORT:
        line = re.sub(rb"[\r\n]", b"", value)
        for name in NAMED:
            for target in (b"/api/v1/session", b"/api/v1/jobs", b"/"):
                await held(both, request(b"GET", target, name + line + b"\r\n"))
            await held(both, request(b"POST", b"/api/v1/jobs", name + line + b"\r\n", b"{}"))
        for query in (b"", b"?cities=seoul"):
            await begins(both, request(b"GET", b"/api/events" + query, b"last-event-id: " + line + b"\r\n"))


async def test_no_body_is_a_5xx(both: Earth) -> None:
    sign = b"content-type: application/json\r\nauthorization: Bearer " + TOKEN.encode() + b"\r\n"
    for body in BODIES:
        for method, target in (
            (b"POST", b"/api/v1/jobs"),
            (b"PATCH", b"/api/v1/sources/usgs_quakes"),
            (b"POST", b"/api/internal/collector-patch"),
        ):
            await held(both, request(method, target, sign, body))


async def test_it_serves_on_afterwards(both: Earth) -> None:
    await held(both, b"\x00" * 100 + b"\r\n\r\n")
    await held(both, b"GET / HTTP/9.9\r\n\r\n")
    await held(both, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")  # somebody begins TLS
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{both.url}/readyz")).status_code == 200
