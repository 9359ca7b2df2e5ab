"""Routes of single things: search for them, open one, fetch those that an event names."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import WithJsonSchema

from planetwire.errors import InputError, NotFound
from planetwire.model import Json
from planetwire.ports import LayerRegistry, ObjectStore
from planetwire.web.access.auth import Guard
from planetwire.web.http.answers import answers

LIMIT = 20
LIMIT_MAX = 50
QUESTION_MAX = 200
IDS_MAX = 100
ID_MAX = 500

# Parsed by hand: a larger number is capped, and an invalid one has its own code.
Limit = Annotated[str, WithJsonSchema({"type": "integer", "minimum": 1, "default": LIMIT})]


def router(objects: ObjectStore, registry: LayerRegistry, guard: Guard) -> APIRouter:
    """All of them read."""
    routes = APIRouter(prefix="/api/v1", dependencies=[Depends(guard.reader)], tags=["objects"])

    @routes.get(
        "/search", responses=answers(404), summary="Objects whose words begin with those of the question, best first"
    )
    async def search(q: str = "", layer: str | None = None, limit: Limit = str(LIMIT)) -> Response:
        """At most 50. 400 `bad_query` without a letter or digit to look for, or with more than 200 characters."""
        if len(q) > QUESTION_MAX or not any(character.isalnum() for character in q):
            raise InputError(f"q is what to look for, 1 to {QUESTION_MAX} characters", code="bad_query")
        if layer is not None:
            registry.adapter(layer)
        found = await objects.search(_storable(q), layer, _limit(limit))
        return _json({"items": found, "next_cursor": None})

    @routes.get("/objects", summary="The objects with these ids, those that exist, in the shape of features")
    async def some(ids: Annotated[list[str], Query()]) -> Response:
        """At most 100 ids, each its own parameter. What is missing in the answer is gone."""
        if len(ids) > IDS_MAX or any(len(one) > ID_MAX for one in ids):
            raise InputError(f"at most {IDS_MAX} ids", code="too_many_ids")
        features, _ = await objects.features([_storable(one) for one in ids], None)
        return _response(b'{"items":[' + b",".join(features) + b'],"next_cursor":null}')

    @routes.get("/objects/{object_id:path}", summary="One object: its values, their age, and who publishes them")
    async def card(object_id: Annotated[str, Path(max_length=ID_MAX)]) -> Response:
        """`<layer>:<source>:<key>`. 404 once its fact is gone."""
        found = await objects.card(_storable(object_id))
        if found is None or found["layer"] not in {adapter.id for adapter in registry.all()}:
            raise NotFound(f"there is no object {object_id[:100]!r}", code="unknown_object")
        about = registry.adapter(found["layer"])
        names = {"layer_title": about.title, "layer_title_zh": about.title_zh}
        return _json({**found, **names, "provenance": asdict(about.provenance)})

    return routes


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise InputError(f"limit is a whole number from 1 to {LIMIT_MAX}", code="bad_limit")
    return min(int(text[:9]), LIMIT_MAX)


def _storable(text: str) -> str:
    """PostgreSQL has no NUL in text, so no name contains one."""
    return text.replace("\x00", "")


def _json(body: Json) -> Response:
    return _response(orjson.dumps(body, option=orjson.OPT_UTC_Z))


def _response(body: bytes) -> Response:
    return Response(body, media_type="application/json", headers={"Cache-Control": "no-cache"})
