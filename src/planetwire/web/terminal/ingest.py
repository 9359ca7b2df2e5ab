"""The route through which observations are pushed: one patch, or an array of them.

One patch: 200 `{revision, duplicate}`, or a problem with the patch's code (400, 413). An array: 200 with one result
a patch, refused ones among them, and 400 only when every patch was refused; the results are in that body too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from planetwire.errors import InputError, TooLarge
from planetwire.model import Json
from planetwire.model.wire import PATCH_MAX_BYTES, PUSH_MAX_BYTES, PUSH_PATH
from planetwire.web.access.auth import Guard
from planetwire.web.http import problems
from planetwire.web.http.answers import answers

PATCHES_MAX = 500

_BODY = {"application/json": {"schema": {"type": ["object", "array"], "maxItems": PATCHES_MAX}}}
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Accept = Callable[[Sequence[object]], Awaitable[Sequence[Json]]]


class IngestEndpoint:
    """Accepts pushed patches from the route here or the protocol class (`push_protocol`)."""

    def __init__(self, accept: Accept, guard: Guard) -> None:
        """`accept` gives one result a patch, `{revision, duplicate}` or `{code, error}`."""
        self._accept = accept
        self._guard = guard

    async def admit(self, authorization: str | None, address: str) -> None:
        """Before a body is read. Raises Unauthorised, Forbidden, TooManyFailures."""
        await self._guard.check_ingest(authorization, address)

    async def take(self, body: bytes) -> Response:
        """The answer, once stored. Raises InputError, BackendError."""
        patch = _parse(body)
        if isinstance(patch, list):
            return _many(await self._accept(_checked(patch)))
        if len(body) > PATCH_MAX_BYTES:
            raise TooLarge(f"a patch has at most {PATCH_MAX_BYTES} bytes, this one {len(body)}")
        return _one((await self._accept([patch]))[0])


class Direct(APIRoute):
    """Calls its endpoint with the request: FastAPI's resolution of parameters costs more than storing the patch."""

    def get_route_handler(self) -> Handler:
        """The endpoint as it is."""
        handler: Handler = self.endpoint
        return handler


def router(endpoint: IngestEndpoint) -> APIRouter:
    """The ingest route."""
    routes = APIRouter(route_class=Direct, tags=["terminal"])

    @routes.post(
        PUSH_PATH,
        responses=answers(413),
        openapi_extra={"security": [{"bearer": []}], "requestBody": {"required": True, "content": _BODY}},
    )
    async def collector_patch(request: Request) -> Response:
        """Take one observation patch or an array of up to 500."""
        await endpoint.admit(request.headers.get("authorization"), request.client.host if request.client else "")
        return await endpoint.take(await read_body(request, PUSH_MAX_BYTES))

    return routes


async def read_body(request: Request, limit_bytes: int) -> bytes:
    """The body, read no further than the limit. Raises TooLarge."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit_bytes:
        raise TooLarge(f"the body has at most {limit_bytes} bytes")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit_bytes:
            raise TooLarge(f"the body has at most {limit_bytes} bytes")
    return bytes(body)


def _parse(body: bytes) -> object:
    try:
        return orjson.loads(body)  # too deep nesting is refused per patch, later
    except orjson.JSONDecodeError as error:
        raise InputError(f"not JSON: {error}", code="bad_json") from error


def _checked(patches: list[object]) -> list[object]:
    if not patches:
        raise InputError("an empty array", code="no_patches")
    if len(patches) > PATCHES_MAX:
        raise TooLarge(f"at most {PATCHES_MAX} patches at once")
    return patches


def _one(result: Json) -> Response:
    code = result.get("code")
    if code == TooLarge.code:
        raise TooLarge(result["error"])
    if code is not None:
        raise InputError(result["error"], code=code)
    return _json(200, result)


def _many(results: Sequence[Json]) -> Response:
    rejected = sum("code" in result for result in results)
    content = {
        "results": results,
        "accepted": len(results) - rejected,
        "duplicates": sum(result.get("duplicate") is True for result in results),
        "rejected": rejected,
    }
    if rejected < len(results):
        return _json(200, content)
    code = Counter(result["code"] for result in results).most_common(1)[0][0]
    problem = {"type": "about:blank", "status": 400, "code": code, "title": "every patch was refused"}
    return _json(400, problem | {"detail": results[0]["error"]} | content, problems.MEDIA_TYPE)


def _json(status: int, content: Json, media_type: str = "application/json") -> Response:
    return Response(orjson.dumps(content), status, media_type=media_type)
