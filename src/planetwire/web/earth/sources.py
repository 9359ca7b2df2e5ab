"""Routes of the sources: what runs when, how the last run ended, and the operator's switches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import orjson
from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from planetwire.errors import InputError, NotFound
from planetwire.model import Actor, Json
from planetwire.model.facts import RowsOf, rows_record
from planetwire.ports import LayerRegistry, SourceStore
from planetwire.web.access.auth import Guard
from planetwire.web.earth.job_record import for_strangers

TEXT_MAX = 1_000  # longer texts are refused unparsed

Pause: TypeAlias = Callable[[Actor, str, bool], Awaitable[None]]


class SourceChange(BaseModel):
    """Body of a change; what is left out stays, null goes back to the default."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool | None = None
    interval_s: float | None = Field(None, gt=0, allow_inf_nan=False)
    cron: str | None = Field(None, max_length=TEXT_MAX)
    time_zone: str | None = Field(None, max_length=TEXT_MAX)
    misfire: Literal["once", "skip"] | None = None
    paused: bool | None = None


def undescribed(source: str) -> Json:
    """Nothing is known of a source but what its record says."""
    return {}


def described_by(registry: LayerRegistry) -> Callable[[str], Json]:
    """The layers that a source feeds, and the first one's provenance and age at which it is stale; None without any."""

    def describe(source: str) -> Json:
        fed = [registry.adapter(layer) for layer in registry.layers_of_source(source)]
        return {
            "layers": [{"id": one.id, "title": one.title, "title_zh": one.title_zh} for one in fed],
            "provenance": fed[0].provenance if fed else None,
            "stale_after_s": fed[0].stale_after_s if fed else None,
        }

    return describe


def no_runs() -> Sequence[Json]:
    """No feed runs outside the ledger."""
    return ()


def router(
    sources: SourceStore | None,
    guard: Guard,
    *,
    pause: Pause | None = None,
    rows_of: RowsOf | None = None,
    runs: Callable[[], Sequence[Json]] = no_runs,
    canonical: Callable[[str], str] = str,
    describe: Callable[[str], Json] = undescribed,
) -> APIRouter:
    """`sources`, `pause`: None without the Earth half. `runs`: records of feeds that run outside the ledger.

    `pause` pauses or resumes the write jobs of a source. `rows_of` counts what clearing it would delete. `describe`
    gives what a record of the list has besides what its store says.
    """
    routes = APIRouter(prefix="/api/v1/sources", tags=["sources"])
    asked: Any = Depends(guard.operator)

    @routes.get("", dependencies=[Depends(guard.reader)])
    async def listing(request: Request) -> Response:
        """Every source in name order."""
        known = await sources.list() if sources is not None else ()
        records = sorted([*known, *runs()], key=lambda record: str(record.get("source")))
        items = [record | describe(str(record.get("source"))) for record in records]
        if not await guard.sees_errors(guard.caller(request)):
            items = [for_strangers(record) for record in items]
        return _json({"items": items, "next_cursor": None})

    @routes.get("/{source}/rows", dependencies=[Depends(guard.operator)])
    async def rows(source: Annotated[str, Path(max_length=100, pattern=r"^[^\x00]+$")]) -> Response:
        """How many rows `clear_data` of exactly this name would delete: facts, and what was made from them."""
        if rows_of is None:
            raise NotFound(f"{source} has no rows in the ledger's database")
        return _json(rows_record(source, await rows_of(source)))

    @routes.patch("/{source}")
    async def change(
        source: Annotated[str, Path(max_length=100)],
        wish: SourceChange,
        by: Actor = asked,
    ) -> Response:
        """Switch a source on or off, pause it, or set when it runs. 400 below the provider's floor."""
        if sources is None or pause is None or any(record.get("source") == source for record in runs()):
            raise InputError(f"{source} is set by PLANETWIRE_FEEDS__{source.upper()}__…", code="not_changeable")
        name, wanted = canonical(source), wish.model_dump(exclude_unset=True)
        paused = wanted.pop("paused", None)
        record = await sources.change(name, wanted, by)
        if paused is not None:
            await pause(by, name, paused)
            record["paused"] = paused
        return _json(record)

    return routes


def _json(body: Json) -> Response:
    return Response(orjson.dumps(body), media_type="application/json")
