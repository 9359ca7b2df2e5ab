"""Delivers observation patches to our own ingest over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from ssl import SSLContext

import httpx
import orjson

from planetwire.collect.formats.shown import shown
from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.model import Json
from planetwire.model.wire import PUSH_PATH
from planetwire.ports import Clock
from planetwire.remote import describe_error, no_cookies, read_bounded

log = get_logger()

MAX_PATCHES = 500
MAX_BYTES = 2 * 1024 * 1024
ATTEMPTS = 3
BACKOFF_S = 0.25
DEADLINE_S = 30.0
ANSWER_BYTES_MAX = 1024 * 1024
HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
_CODE = re.compile(r"[a-z0-9_]{1,64}")


class HttpPatchSink:
    """Port PatchSink over `POST /api/internal/collector-patch` at `url`, the address of the web process."""

    def __init__(
        self,
        url: str,
        token: str,
        clock: Clock,
        *,
        trust: SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`trust`: the trusted certificates of an https:// address; None: the system's."""
        self._clock = clock
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=DEADLINE_S,
            cookies=no_cookies(),
            verify=True if trust is None else trust,
            transport=transport,
        )

    async def deliver(self, patches: Sequence[Json]) -> int:
        """See the port. Refused patches are logged and not retried: they would be refused again."""
        new = 0
        for body in bodies_of(patches):
            new += await self._post(body)
        return new

    async def _post(self, body: bytes) -> int:
        problem = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with asyncio.timeout(DEADLINE_S):
                    status, answer = await self._request(body)
            except TimeoutError:
                problem = f"no whole answer within {DEADLINE_S:g} s"
            except httpx.HTTPError as error:
                problem = describe_error(error)
            else:
                if status < 500:
                    return _counted(status, answer)
                problem = f"status {status}"
            if attempt < ATTEMPTS:
                await self._clock.sleep(BACKOFF_S * attempt)
        raise BackendError(f"the ingest does not answer: {problem}")

    async def _request(self, body: bytes) -> tuple[int, bytes | None]:
        """Status and body of the response; redirects are not followed."""
        async with self._client.stream("POST", PUSH_PATH, content=body, headers=HEADERS) as response:
            return response.status_code, await read_bounded(response, ANSWER_BYTES_MAX)

    async def aclose(self) -> None:
        """Close the connection. Idempotent."""
        await self._client.aclose()


def bodies_of(patches: Sequence[Json]) -> Iterator[bytes]:
    """JSON arrays of at most 500 patches and 2 MiB, in order."""
    parts: list[bytes] = []
    size = 2
    for patch in patches:
        part = orjson.dumps(patch)
        if parts and (len(parts) >= MAX_PATCHES or size + len(part) + 1 > MAX_BYTES):
            yield b"[" + b",".join(parts) + b"]"
            parts, size = [], 2
        parts.append(part)
        size += len(part) + 1
    if parts:
        yield b"[" + b",".join(parts) + b"]"


def _counted(status: int, body: bytes | None) -> int:
    """The number of patches that were new. Raises BackendError if the ingest did not accept the body at all."""
    try:
        answer = orjson.loads(body or b"")
    except orjson.JSONDecodeError:
        answer = None
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise BackendError(f"the ingest refused: status {status}{_code(answer)}")
    known = [result for result in results if isinstance(result, dict)]
    for result in known:
        if "code" in result:
            log.warning("collect.patch.refused", code=str(result["code"])[:64], error=shown(result.get("error")))
    return sum(1 for result in known if result.get("duplicate") is False)


def _code(answer: object) -> str:
    code = answer.get("code") if isinstance(answer, dict) else None
    return f", {code}" if isinstance(code, str) and _CODE.fullmatch(code) else ""
