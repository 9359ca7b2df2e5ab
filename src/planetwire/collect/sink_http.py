"""Where observation patches go: to our own ingest over HTTP, or straight into it in the same process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ssl import SSLContext

import httpx
import orjson

from planetwire.errors import BackendError
from planetwire.log import get_logger
from planetwire.model import Json
from planetwire.ports import Clock

log = get_logger()

PATH = "/api/internal/collector-patch"
MAX_PATCHES = 500
MAX_BYTES = 2 * 1024 * 1024
ATTEMPTS = 3
BACKOFF_S = 0.25
TIMEOUT_S = 30.0


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
        """`trust`: of an https:// address; None: as the system does."""
        self._clock = clock
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_S,
            verify=True if trust is None else trust,
            transport=transport,
        )

    async def deliver(self, patches: Sequence[Json]) -> int:
        """See the port. Refused patches are logged and count as done: sent again they would be refused again."""
        new = 0
        for body in bodies_of(patches):
            new += await self._post(body)
        return new

    async def _post(self, body: bytes) -> int:
        problem = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                response = await self._client.post(PATH, content=body, headers={"Content-Type": "application/json"})
            except httpx.HTTPError as error:
                problem = str(error) or type(error).__name__
            else:
                if response.status_code < 500:
                    return _counted(response)
                problem = f"status {response.status_code}: {response.text[:80]}"
            if attempt < ATTEMPTS:
                await self._clock.sleep(BACKOFF_S * attempt)
        raise BackendError(f"the ingest does not answer: {problem}")

    async def aclose(self) -> None:
        """Close the connection. May be called twice."""
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


def _counted(response: httpx.Response) -> int:
    """How many patches of an answer are new. Raises BackendError when the ingest did not take the body at all."""
    try:
        answer = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict) or "results" not in answer:
        raise BackendError(f"the ingest refused: status {response.status_code}: {response.text[:80]}")
    for result in answer["results"]:
        if "code" in result:
            log.warning("collect.patch.refused", code=result["code"], error=result.get("error"))
    return sum(1 for result in answer["results"] if result.get("duplicate") is False)
