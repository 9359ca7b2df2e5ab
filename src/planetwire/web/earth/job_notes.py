"""Details of a job: who started, stopped and repeated it, and the last lines of its log."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Path, Response

from planetwire.model import JobLine, Json
from planetwire.model.acts import AuditQuery
from planetwire.ports import AuditLog, JobBoard, JobLog
from planetwire.web.access.audit import entry_record
from planetwire.web.access.auth import Guard

BIGINT_MAX = 2**63 - 1
ACTS_SHOWN = 20

TaskId = Annotated[int, Path(ge=1, le=BIGINT_MAX)]


def router(board: JobBoard, audit: AuditLog, lines: JobLog, guard: Guard) -> APIRouter:
    """Routes below one job."""
    routes = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

    @routes.get("/{task_id}/acts", dependencies=[Depends(guard.operator)])
    async def acts(task_id: TaskId) -> Response:
        """Who started, stopped and repeated the job, and what a clear deleted; newest first, without addresses."""
        entries, _ = await audit.page(AuditQuery(task_id=task_id), None, ACTS_SHOWN)
        shown = [{key: value for key, value in entry_record(entry).items() if key != "address"} for entry in entries]
        return _json({"items": shown, "next_cursor": None})

    @routes.get("/{task_id}/log", dependencies=[Depends(guard.operator)])
    async def log(task_id: TaskId) -> Response:
        """The last lines that its worker wrote, oldest first: at most 200, and none once they are too old."""
        await board.get(task_id)
        return _json({"items": [line_record(line) for line in await lines.read(task_id)], "next_cursor": None})

    return routes


def line_record(line: JobLine) -> Json:
    """As JSON; the time is ISO UTC with Z."""
    at = line.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"at": at, "event": line.event, "text": line.text}


def _json(body: Json) -> Response:
    return Response(orjson.dumps(body), media_type="application/json")
