"""Routes of the ledger. Handlers only write or read rows; workers do the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from planetwire.errors import InputError
from planetwire.model import Actor, Job, JobRequest, Json, Lane, TaskType
from planetwire.model.facts import RowsOf
from planetwire.ports import JobBoard, JobDesk
from planetwire.text.json_input import check_depth
from planetwire.web.access.auth import Guard
from planetwire.web.earth.clearing import confirm_clear
from planetwire.web.earth.job_record import for_strangers, job_record
from planetwire.web.http.answers import answers

BIGINT_MAX = 2**63 - 1
PAYLOAD_MAX_BYTES = 16_384
LIMIT_MAX = 200

# The ledger's states, and `dead`: failed and not retried.
Shown = Literal["queued", "running", "cancelling", "completed", "failed", "cancelled", "dead"]

TaskId = Annotated[int, Path(ge=1, le=BIGINT_MAX)]


class JobWish(BaseModel):
    """Body of a submission."""

    model_config = ConfigDict(extra="forbid")

    task_type: TaskType
    source: str | None = Field(None, min_length=1, max_length=100, pattern=r"^[^\x00]+$")
    payload: Json = Field(default_factory=dict)
    priority: int = Field(100, ge=-1_000_000, le=1_000_000)
    idempotency_key: str | None = Field(None, min_length=1, max_length=200, pattern=r"^[^\x00]+$")


class RetryWish(BaseModel):
    """Body of a retry; it may be left out."""

    model_config = ConfigDict(extra="forbid")

    confirm: bool = False  # that the rows shall be deleted


def admit_all(request: JobRequest) -> JobRequest:
    """Admits every request."""
    return request


def router(
    desk: JobDesk,
    board: JobBoard,
    guard: Guard,
    rows_of: RowsOf,
    canonical: Callable[[str], str] = str,
    *,
    admit: Callable[[JobRequest], JobRequest] = admit_all,
) -> APIRouter:
    """`canonical` turns a source's alias into its name and leaves every other text alone.

    `admit` returns the request or raises, so that one without a handler is refused at once.
    `rows_of` counts what clearing a source would delete.
    """
    routes = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

    asked: Any = Depends(guard.operator)

    @routes.post("", status_code=202, responses=answers(404))
    async def submit(wish: JobWish, by: Actor = asked) -> Response:
        """Write a job into the ledger; a queued job of the same kind and source is given instead of a second."""
        job, created = await desk.submit(by, admit(_request(wish, canonical)))
        return _accepted(job, created)

    @routes.get("", dependencies=[Depends(guard.reader)])
    async def page(
        request: Request,
        status: Shown | None = None,
        source: Annotated[str | None, Query(max_length=100)] = None,
        cursor: Annotated[int | None, Query(ge=1, le=BIGINT_MAX)] = None,
        limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = 50,
    ) -> Response:
        """Newest first; give `next_cursor` back as `cursor` for the next page. `dead`: failed, and not tried again."""
        named = canonical(source) if source else None
        if status == "dead":
            jobs, following = await board.dead(source=named, cursor=cursor, limit=limit)
        else:
            jobs, following = await board.page(status=status, source=named, cursor=cursor, limit=limit)
        shown = await _shown(guard, request)
        return _json({"items": [shown(job_record(job)) for job in jobs], "next_cursor": following})

    @routes.get("/counts", dependencies=[Depends(guard.reader)])
    async def counts() -> Response:
        """How many are `running`, `queued` and `dead`: counted up to 10,000, and up to 2 s old."""
        return _json(dict(await board.counts()))

    @routes.get("/{task_id}", dependencies=[Depends(guard.reader)])
    async def show(request: Request, task_id: TaskId) -> Response:
        """One ledger row."""
        shown = await _shown(guard, request)
        return _json(shown(job_record(await board.get(task_id))))

    @routes.post("/{task_id}/cancel", status_code=202, responses=answers(409))
    async def cancel(task_id: TaskId, by: Actor = asked) -> Response:
        """Ask the job to stop; batches that are committed stay. 409 when it has ended already."""
        return _accepted(await desk.cancel(by, task_id), None)

    @routes.post("/{task_id}/retry", status_code=202, responses=answers(409))
    async def retry(task_id: TaskId, wish: RetryWish | None = None, by: Actor = asked) -> Response:
        """Submit the same work again. 409 while the job is active, and `confirm_needed`, with the number of rows, for
        a clear without `{"confirm": true}`.
        """
        job = await board.get(task_id)
        if wish is None or not wish.confirm:
            await confirm_clear(job, rows_of)
        return _accepted(*await desk.retry(by, [job]))

    return routes


async def _shown(guard: Guard, request: Request) -> Callable[[Json], Json]:
    """The row as the caller may see it."""
    return dict if await guard.sees_errors(guard.caller(request)) else for_strangers


def _request(wish: JobWish, canonical: Callable[[str], str]) -> JobRequest:
    if wish.source is None and wish.task_type.is_write:
        raise InputError(f"{wish.task_type} needs a source", code="source_missing")
    payload = {key: value for key, value in wish.payload.items() if key != "scheduled"}  # set by the schedule only
    _check_payload(payload)
    source = wish.source
    if source is not None and wish.task_type.lane is not Lane.CLEAR:  # a clear deletes exactly the named source
        source = canonical(source)
    return JobRequest(wish.task_type, source, payload, wish.priority, wish.idempotency_key)


def _check_payload(payload: Json) -> None:
    check_depth(payload)
    try:
        text = orjson.dumps(payload)
    except TypeError as error:  # a lone surrogate, a number beyond 64 bits
        raise InputError(f"the payload cannot be stored: {error}", code="bad_payload") from error
    if b"\\u0000" in text:
        raise InputError("the payload cannot be stored: it has a NUL character", code="bad_payload")
    if len(text) > PAYLOAD_MAX_BYTES:
        raise InputError(f"the payload may have {PAYLOAD_MAX_BYTES} bytes at most", code="payload_too_large")


def _accepted(job: Job, created: bool | None) -> Response:
    body: Json = {"task_id": job.id, "status": job.status}
    return _json(body if created is None else {**body, "created": created}, status=202)


def _json(body: Json, status: int = 200) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json")
