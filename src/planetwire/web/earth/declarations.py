"""Routes of declared sources: read one, store it, take it away."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Header, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from planetwire.errors import InputError, NotFound, Unconditional
from planetwire.model import Actor, Json
from planetwire.model.facts import Declaration
from planetwire.ports import SourceDesk
from planetwire.web.access.auth import Guard
from planetwire.web.http.answers import answers

NAME_MAX = 63
_TAG = re.compile(r'"(\d{1,18})"')

Name = Annotated[str, Path(max_length=NAME_MAX, pattern=r"^[a-z][a-z0-9_]*$")]
IfMatch = Annotated[str | None, Header(max_length=40, description="The ETag of the declaration that is replaced.")]


class DeclarationWish(BaseModel):
    """Body of a declaration. Switched off it is kept, and neither asked for nor shown."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, description="YAML, at most 32 KiB.")
    enabled: bool = True


def router(desk: SourceDesk, guard: Guard, look: Callable[[], Awaitable[object]]) -> APIRouter:
    """`look` brings what this process knows up to date, so that an answer is never older than its own write."""
    routes = APIRouter()
    asked: Any = Depends(guard.admin)

    @routes.get("/{name}/declaration", dependencies=[Depends(guard.operator)], responses=answers(404))
    async def show(name: Name) -> Response:
        """Its text and revision; `fault` says why it cannot be used, null if it can."""
        await look()
        return _answer(await desk.get(name), desk)

    @routes.put("/{name}/declaration", responses=answers(409, 412, 428))
    async def put(
        name: Name, wish: DeclarationWish, if_match: IfMatch = None, confirm: bool = False, by: Actor = asked
    ) -> Response:
        """Store a new source, or with `If-Match` replace one; live in all processes within 2 s. 400 `bad_declaration`
        with all `faults`; 409 `confirm_needed`, with the number of rows, where another key or layer replaces them.
        """
        await look()
        expected = _revision(if_match)
        if expected is None and await _exists(desk, name):
            raise Unconditional(f"{name} is declared already: send If-Match with the ETag of what is to be replaced")
        stored = await desk.put(by, name, wish.text, expected=expected, enabled=wish.enabled, confirm=confirm)
        await look()
        return _answer(stored, desk, 201 if expected is None else 200)

    @routes.delete("/{name}/declaration", status_code=204, responses=answers(404, 409, 412, 428))
    async def remove(
        name: Name, data: Literal["keep", "clear"], if_match: IfMatch = None, by: Actor = asked
    ) -> Response:
        """Take a source away. `data`: whether its facts stay in the database, or a job deletes them."""
        expected = _revision(if_match)
        if expected is None:
            await desk.get(name)
            raise Unconditional("send If-Match with the ETag of the declaration that is to be removed")
        await desk.remove(by, name, expected=expected, clear=data == "clear")
        await look()
        return Response(status_code=204)

    return routes


async def _exists(desk: SourceDesk, name: str) -> bool:
    try:
        await desk.get(name)
    except NotFound:
        return False
    return True


def _revision(if_match: str | None) -> int | None:
    if if_match is None:
        return None
    found = _TAG.fullmatch(if_match.strip())
    if found is None:
        raise InputError('If-Match is one ETag of a declaration, such as "17"', code="bad_etag")
    return int(found[1])


def record(one: Declaration) -> Json:
    """As JSON."""
    at = one.changed_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "name": one.name,
        "text": one.text,
        "enabled": one.enabled,
        "origin": one.origin.partition(":")[0],
        "revision": one.revision,
        "changed_at": at,
        "changed_by": one.changed_by,
        "sha256": one.sha256,
    }


def _answer(one: Declaration, desk: SourceDesk, status: int = 200) -> Response:
    fault = desk.fault(one.name)
    body = record(one) | {"fault": None if fault is None else fault.message}
    headers = {"ETag": f'"{one.revision}"', "Cache-Control": "no-cache"}
    return Response(orjson.dumps(body), status, headers, "application/json")
