"""The audit log in the web process: recording and showing acts.

Acts in the ledger's database are recorded there, in their own transaction. `Notes` is for all others: signing in and
out, and refused requests, which are counted so that guessing credentials cannot fill the log.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Protocol

import orjson
from fastapi import APIRouter, Depends, Query, Response
from pydantic import AwareDatetime

from planetwire.errors import BackendError, InputError
from planetwire.log import get_logger
from planetwire.model import Actor, Json, Role
from planetwire.model.acts import Act, AuditEntry, AuditQuery
from planetwire.ports import AuditLog, Clock
from planetwire.web.access.auth import Guard

log = get_logger()

BIGINT_MAX = 2**63 - 1
LIMIT_MAX = 200
REFUSED = "session.refused"
WINDOW_S = 60.0  # refusals of one address within it become one row and a count
ADDRESSES_MAX = 100  # counted separately; further addresses share one count
OTHERS = "others"
CARRY_S = 30.0


class Spare(Protocol):
    """Stores acts while the audit log's own store is unreachable."""

    async def note(self, act: Act) -> None:
        """Keep it. Raises BackendError."""

    async def take(self) -> list[tuple[datetime, str, Act]]:
        """All stored acts, oldest first, each with a unique key. They stay until `drop`."""

    async def drop(self, keys: Sequence[str]) -> None:
        """Forget these."""


Carry = Callable[[datetime, str, Act], Awaitable[None]]


class Notes:
    """Records acts without a transaction of their own; in `spare` while the log's store is unreachable."""

    def __init__(self, audit: AuditLog, clock: Clock, spare: Spare | None = None, carry: Carry | None = None) -> None:
        """`carry` moves an entry of the spare to the log's store, idempotently."""
        self._audit = audit
        self._clock = clock
        self._spare = spare
        self._carry = carry
        self._refused: OrderedDict[str, tuple[float, int]] = OrderedDict()  # address → start, count not recorded yet

    async def note(self, by: Actor, what: str, *, source: str | None = None, **details: Any) -> None:
        """Record the act. Raises BackendError if no store works: then the act must not be done."""
        act = Act(by, what, source=source, details=details)
        try:
            await self._audit.note(act)
        except BackendError:
            if self._spare is None:
                raise
            await self._spare.note(act)

    async def refused(self, address: str, code: str) -> None:
        """A request was refused. The first of an address is recorded at once, those of the next minute in one row."""
        now = self._clock.monotonic()
        place = address if address in self._refused or len(self._refused) < ADDRESSES_MAX else OTHERS
        if place in self._refused:
            since, count = self._refused[place]
            self._refused[place] = (since, count + 1)
            return
        self._refused[place] = (now, 0)
        await self._note_refusals(place, {"code": code, "times": 1})

    async def run(self) -> None:
        """Record counted refusals and move the spare's entries, until cancelled."""
        while True:
            await self._clock.sleep(CARRY_S)
            try:
                await self.step()
            except Exception as error:  # of any kind: auditing must not end the web process
                log.warning("web.audit.postponed", error=repr(error))

    async def step(self) -> None:
        """One round. Raises BackendError."""
        await self._settle()
        if self._spare is not None and self._carry is not None:
            carried = [key for at, key, act in await self._spare.take() if await self._carried(at, key, act)]
            if carried:
                await self._spare.drop(carried)
                log.info("web.audit.carried", entries=len(carried))

    async def _carried(self, at: datetime, key: str, act: Act) -> bool:
        """Whether the entry was moved. One that the store refuses stays in the spare. Raises BackendError."""
        assert self._carry is not None
        try:
            await self._carry(at, key, act)
        except BackendError:
            raise
        except Exception as error:
            log.warning("web.audit.refused", key=key, error=repr(error))
            return False
        return True

    async def _settle(self) -> None:
        now = self._clock.monotonic()
        over = [place for place, (since, _) in self._refused.items() if now - since >= WINDOW_S]
        for place in over:
            _, count = self._refused.pop(place)
            if count:
                await self._note_refusals(place, {"times": count, "merged": True})

    async def _note_refusals(self, place: str, details: Json) -> None:
        """A refusal without its row is acceptable: no act was done. So errors are only logged."""
        try:
            await self.note(Actor("unknown", Role.VIEWER, place), REFUSED, **details)
        except BackendError as error:
            log.warning("web.audit.failed", what=REFUSED, error=error.message)


def entry_record(entry: AuditEntry) -> Json:
    """As JSON; the time is ISO UTC with Z."""
    act = entry.act
    return {
        "id": entry.id,
        "at": entry.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "who": act.by.who,
        "role": act.by.role.value,
        "address": act.by.address,
        "what": act.what,
        "task_id": act.task_id,
        "source": act.source,
        "rows_deleted": act.rows_deleted,
        "details": dict(act.details),
    }


def _utc(at: datetime | None) -> datetime | None:
    try:
        return at.astimezone(UTC) if at is not None else None
    except OverflowError as error:
        raise InputError(f"since: {at} is out of range") from error


Text = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]+$")]


def router(audit: AuditLog, guard: Guard) -> APIRouter:
    """The route of the whole log."""
    routes = APIRouter(prefix="/api/v1/audit", tags=["audit"])

    @routes.get("", dependencies=[Depends(guard.admin)])
    async def page(
        since: AwareDatetime | None = None,
        who: Text = None,
        source: Text = None,
        what: Text = None,
        job: Annotated[int | None, Query(ge=1, le=BIGINT_MAX)] = None,
        cursor: Annotated[int | None, Query(ge=1, le=BIGINT_MAX)] = None,
        limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = 50,
    ) -> Response:
        """What people did, newest first; give `next_cursor` back as `cursor` for the next page."""
        asked = AuditQuery(_utc(since), who, source, job, what)
        entries, following = await audit.page(asked, cursor, limit)
        return Response(
            orjson.dumps({"items": [entry_record(entry) for entry in entries], "next_cursor": following}),
            media_type="application/json",
        )

    return routes
