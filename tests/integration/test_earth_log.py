"""The log of layer events in PostgreSQL: replay, its limits, pruning, and who tails it."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

import asyncpg
import orjson
import pytest

from planetwire.database.postgres import Pool
from planetwire.errors import BackendError, InputError, LeaseLost
from planetwire.model import Action, LayerEvent, LogEvent, Operation, ResyncReason, Strategy
from planetwire.outbox.changelog_postgres import BROADCASTS_CHANNEL, PostgresChangeLog
from planetwire.outbox.upkeep.prune import prune_forever
from planetwire.outbox.upkeep.prune_postgres import PostgresPruner
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.relay.payload import payload
from planetwire.runtime.clock import SystemClock
from planetwire.stream import tail as tail_module
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.stream.tail import Tail

ALL = ["earth_updates"]
AT = datetime(2026, 1, 1, tzinfo=UTC)
OLD = "update earth_broadcasts set created_at = created_at - interval '6 hours 1 second' where revision <= $1"


def event(layer: str) -> LayerEvent:
    return LayerEvent(
        layer=layer,
        action=Action.DATABASE_CHANGED,
        source="s",
        table="t",
        operation=Operation.INSERT,
        strategy=Strategy.RELOAD,
        records_processed=1,
        occurred_at=AT,
        sources=("s",),
        tables=("t",),
        operations=("INSERT",),
        merged_count=1,
    )


class Log:
    """A led log that tests append to."""

    def __init__(self, pool: Pool) -> None:
        self.changelog = PostgresChangeLog(pool, payload)
        self.term = 0

    async def append(self, *layers: str) -> list[LogEvent]:
        if not self.term:
            self.term = await self.changelog.lead("test", 60) or 0
        events = [event(layer) for layer in layers]
        return list(await self.changelog.publish(self.term, events, consumed=[], hints=[], skipped={}))


async def test_pages_hold_the_bytes_of_the_event_in_revision_order(pg_pool: Pool) -> None:
    """Q22; contracts §5."""
    made = Log(pg_pool)
    appended = await made.append("a", "b", "a")
    log = await PostgresEventLog.open(pg_pool)
    assert re.fullmatch("[a-z0-9]{12}", log.epoch)
    page = await log.page(ALL, 0, 10)
    assert [(e.topic, e.revision, e.prev_revision) for e in page] == [
        ("earth_updates", 1, 0),
        ("earth_updates", 2, 0),
        ("earth_updates", 3, 1),
    ]
    assert [e.body for e in page] == [e.body for e in appended]
    assert orjson.loads(page[1].body)["broadcast_id"] == f"{log.epoch}-2"
    only_a = await log.page(["layer:a"], 0, 10)
    assert [(e.topic, e.revision) for e in only_a] == [("layer:a", 1), ("layer:a", 3)]
    assert [e.revision for e in await log.page(ALL, 1, 1)] == [2]


async def test_heads_are_per_topic_and_zero_for_what_never_spoke(pg_pool: Pool) -> None:
    """S154, Q3."""
    made = Log(pg_pool)
    log = await PostgresEventLog.open(pg_pool)
    assert (await log.head(), await log.heads(["layer:a", *ALL])) == (0, {"layer:a": 0, "earth_updates": 0})
    await made.append("a", "b")
    assert await log.heads(["layer:a", "layer:never", *ALL]) == {"layer:a": 1, "layer:never": 0, "earth_updates": 2}
    with pytest.raises(InputError):
        await log.heads(["city:shanghai"])


async def test_a_cursor_is_refused_only_for_a_reason(pg_pool: Pool) -> None:
    """S156, Q2, Q4: pruned, ahead, or more than the limit."""
    made = Log(pg_pool)
    await made.append("a", "b", "b", "a")
    log = await PostgresEventLog.open(pg_pool)
    assert await log.check(ALL, 0, 4) is None
    assert await log.check(ALL, 4, 1) is None
    assert await log.check(ALL, 0, 3) is ResyncReason.REPLAY_WINDOW_EXCEEDED
    assert await log.check(["layer:a"], 0, 2) is None
    assert await log.check(ALL, 5, 100) is ResyncReason.REVISION_AHEAD
    await pg_pool.execute(OLD, 3)
    assert await PostgresPruner(pg_pool).broadcasts() == 3
    assert await log.check(ALL, 2, 100) is ResyncReason.REPLAY_WINDOW_EXCEEDED
    assert await log.check(ALL, 3, 100) is None
    assert await log.check(["layer:a"], 1, 100) is None  # of this layer only revision 1 is gone
    assert await log.check(["layer:b"], 1, 100) is ResyncReason.REPLAY_WINDOW_EXCEEDED


async def test_the_head_and_prev_revision_survive_full_expiry(pg_pool: Pool) -> None:
    """Architecture §5: the latest revision never decreases."""
    made = Log(pg_pool)
    await made.append("a", "a")
    await pg_pool.execute(OLD, 2)
    await PostgresPruner(pg_pool).broadcasts()
    log = await PostgresEventLog.open(pg_pool)
    assert (await log.page(ALL, 0, 10), await log.head()) == ([], 2)
    (appended,) = await made.append("a")
    assert (appended.revision, appended.prev_revision) == (3, 2)


async def test_a_term_that_is_over_appends_nothing(pg_pool: Pool) -> None:
    """Q23: fenced."""
    changelog = PostgresChangeLog(pg_pool, payload)
    first = await changelog.lead("first", 60)
    assert first is not None
    assert await changelog.lead("second", 60) is None
    assert await changelog.lead("first", 60) == first
    await changelog.resign("first", first)
    second = await changelog.lead("second", 60)
    assert second == first + 1
    await pg_pool.execute("insert into collected_data (source, external_key, kind) values ('s', '1', 'k')")
    (change,), _ = await changelog.pending(10)
    with pytest.raises(LeaseLost):
        await changelog.publish(first, [event("a")], consumed=[change.id], hints=[], skipped={})
    assert [row.id for row in (await changelog.pending(10))[0]] == [change.id]
    assert await pg_pool.fetchval("select count(*) from earth_broadcasts") == 0


async def test_event_and_consumed_mark_are_one_commit(pg_pool: Pool) -> None:
    """S31, Q22: an event that is refused leaves its rows, and no hole in the revisions."""
    made = Log(pg_pool)
    await pg_pool.execute("insert into collected_data (source, external_key, kind) values ('s', '1', 'k')")
    (change,), _ = await made.changelog.pending(10)
    await made.append("a")
    await pg_pool.execute("alter table earth_broadcasts add constraint never check (layer <> 'bad')")
    with pytest.raises(asyncpg.CheckViolationError):
        await made.changelog.publish(made.term, [event("a"), event("bad")], consumed=[change.id], hints=[], skipped={})
    assert [row.id for row in (await made.changelog.pending(10))[0]] == [change.id]
    (appended,) = await made.append("a")
    assert (appended.revision, appended.prev_revision) == (2, 1)


async def test_held_rows_are_not_read_again_but_later_ones_are(pg_pool: Pool) -> None:
    """S12."""
    changelog = PostgresChangeLog(pg_pool, payload)
    for key in "123":
        await pg_pool.execute("insert into collected_data (source, external_key, kind) values ('s', $1, 'k')", key)
    rows, _ = await changelog.pending(10, singly=True)
    ids = [row.id for row in rows]
    assert [row.id for row in (await changelog.pending(10, held=ids[:2], singly=True))[0]] == ids[2:]
    assert [row.id for row in (await changelog.pending(2, singly=True))[0]] == ids[:2]


async def test_consumed_rows_go_after_a_day_and_unconsumed_never(pg_pool: Pool) -> None:
    """S8: bounded."""
    await pg_pool.execute(
        "insert into earth_data_change_events (table_name, operation, occurred_at, consumed_at) values"
        " ('t', 'INSERT', now() - interval '3 days', now() - interval '25 hours'),"
        " ('t', 'INSERT', now() - interval '3 days', now() - interval '1 hour'),"
        " ('t', 'INSERT', now() - interval '3 days', null)"
    )
    await pg_pool.execute(
        "insert into earth_refresh_hints (action, consumed_at) values ('manual_refresh', now() - interval '25 hours')"
    )
    pruner = PostgresPruner(pg_pool)
    assert (await pruner.changes(), await pruner.hints(), await pruner.changes()) == (1, 1, 0)
    assert await pg_pool.fetchval("select count(*) from earth_data_change_events") == 2


async def test_the_pruning_loop_goes_on_until_nothing_is_left() -> None:
    left = {"a": 3, "b": 1}
    done = asyncio.Event()

    async def step(name: str) -> int:
        left[name] -= 1
        if left == {"a": -1, "b": -1}:
            done.set()
        return int(left[name] >= 0)

    task = asyncio.create_task(prune_forever([lambda: step("a"), lambda: step("b")], SystemClock()))
    async with asyncio.timeout(60):
        await done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


async def test_the_tail_of_another_process_is_rung_by_the_commit(
    pg_pool: Pool, pg_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q23: NOTIFY after the commit; the tail reads the log. By itself it would look in an hour."""
    monkeypatch.setattr(tail_module, "POLL_S", 3_600.0)
    doorbell = PostgresWakeup(pg_dsn, [BROADCASTS_CHANNEL])
    doorbell.start()
    came = asyncio.Event()
    got: list[LogEvent] = []

    def publish(events: object) -> None:
        got.extend(events)  # type: ignore[arg-type]
        came.set()

    log = await PostgresEventLog.open(pg_pool)
    tail = Tail(log, ALL, doorbell.bell(BROADCASTS_CHANNEL), publish, SystemClock())
    await tail.step()
    task = asyncio.create_task(tail.run())
    try:
        async with asyncio.timeout(60):
            while not doorbell.connected:
                await asyncio.sleep(0.01)
        appended = await Log(pg_pool).append("a", "b")
        async with asyncio.timeout(60):
            await came.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await doorbell.aclose()
    assert [(e.topic, e.body) for e in got] == [("earth_updates", e.body) for e in appended]


async def test_lag_says_what_waits_and_who_leads(pg_pool: Pool) -> None:
    """S88, Q19."""
    made = Log(pg_pool)
    await made.append("a")
    await pg_pool.execute("insert into collected_data (source, external_key, kind) values ('s', '1', 'k')")
    lag = await made.changelog.lag()
    assert (lag["pending"], lag["quarantined"], lag["unmapped"]) == (1, 0, [])
    assert lag["oldest_age_s"] >= 0
    assert (lag["leader"]["holder"], lag["leader"]["held"], lag["leader"]["revision"]) == ("test", True, 1)


class Busy:
    """A pool all of whose connections are taken; it does not let the test wait as long as it was asked to."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.asked: list[float] = []

    def acquire(self, *, timeout: float) -> object:
        self.asked.append(timeout)
        return self.pool.acquire(timeout=0.01)


async def test_where_no_connection_is_free_it_is_given_up_within_the_leaders_term(pg_pool: Pool) -> None:
    """S32: a failure like any other, so that another process can lead before its readers notice."""
    busy = Busy(pg_pool)
    taken = [await pg_pool.acquire() for _ in range(pg_pool.get_max_size())]
    try:
        with pytest.raises(BackendError):
            await PostgresChangeLog(busy, payload).lag()  # type: ignore[arg-type]
    finally:
        for connection in taken:
            await pg_pool.release(connection)
    assert busy.asked == [5.0]
