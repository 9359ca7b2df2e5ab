"""Routes of the layers: what there is, and the features of one, from the cache when nothing changed."""

from __future__ import annotations

from collections.abc import Callable

import orjson
from fastapi import APIRouter, Depends, Request, Response

from planetwire.errors import InputError
from planetwire.web.access.auth import Guard
from planetwire.web.earth.layer_snapshots import LayerSnapshots
from planetwire.web.snapshots.snapshot_http import MEDIA_TYPE, RESPONSES, answer, asked_encoding

LIMIT_MAX = 10_000_000
DIGITS_MAX = 12
_LIMIT_DOC = {
    "name": "limit",
    "in": "query",
    "required": False,
    "description": "At most so many features, the newest; without it, all.",
    "schema": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX},
}


def router(snapshots: LayerSnapshots, guard: Guard, revision: Callable[[], int] = lambda: 0) -> APIRouter:
    """Both routes read; `limit` is parsed by hand, since this is the hottest route of the Earth half.

    `revision`: that of the declarations, by which a page knows whether the list is as new as what it was told.
    """
    routes = APIRouter(dependencies=[Depends(guard.reader)], tags=["layers"])

    @routes.get("/api/v1/layers", summary="Every layer with its state, also before any feed succeeded")
    async def layers() -> Response:
        declared = revision()
        body = {"items": await snapshots.layers(), "next_cursor": None, "declared_revision": declared}
        return Response(orjson.dumps(body), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-cache"})

    @routes.get(
        "/api/v1/visualization/{layer}",
        summary="All features of a layer and the cursor they correspond to",
        responses=RESPONSES,
        openapi_extra={"parameters": [_LIMIT_DOC]},
    )
    async def visualization(layer: str, request: Request) -> Response:
        limit = _limit(request.query_params.get("limit"))
        encoding = asked_encoding(request)
        return answer(request, await snapshots.get(layer, encoding, limit), encoding)

    return routes


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not (len(text) <= DIGITS_MAX and text.isascii() and text.isdigit() and 0 < int(text) <= LIMIT_MAX):
        raise InputError(f"limit is a whole number from 1 to {LIMIT_MAX}, not {text[:40]!r}", code="bad_limit")
    return int(text)
