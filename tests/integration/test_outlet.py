"""The outlet for other services, over a real log and to a real HTTP server: everything, in order, at least once."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator
from structlog.testing import capture_logs

from ledger_tools import until
from planetwire.database.postgres import Pool
from planetwire.errors import LeaseLost
from planetwire.model import Action, Cursor, LayerEvent, LogEvent, Operation, Strategy
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.outbox.upkeep.prune_postgres import PostgresPruner
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.relay.bus_webhook import WebhookBus
from planetwire.relay.outlet import Outlet
from planetwire.relay.outlet_postgres import PostgresOutletBook, examine_outlets
from planetwire.relay.payload import payload
from planetwire.runtime.clock import SystemClock
from planetwire.runtime.ending import end_all
from planetwire.stream.log_postgres import PostgresEventLog
from webhook_receiver import SECRET, Receiver, signed

SPEC = Path(__file__).resolve().parents[2] / "spec" / "changes" / "change_message.v1.schema.json"
MESSAGE = Draft202012Validator(json.loads(SPEC.read_text(encoding="utf-8")))
LAYERS = ["a", "b", "c"]
AT = datetime(2026, 1, 1, tzinfo=UTC)
OLD = "update earth_broadcasts set created_at = created_at - interval '7 hours' where revision <= $1"
DUE = "update change_outlet_cursors set next_attempt_at = clock_timestamp() where next_attempt_at is not null"
CHILD = """
import asyncio, sys
from planetwire.runtime import failpoint
from planetwire.runtime.clock import SystemClock
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.database.postgres import open_pool
from planetwire.relay.bus_webhook import WebhookBus
from planetwire.relay.outlet import Outlet
from planetwire.relay.outlet_postgres import PostgresOutletBook
from planetwire.stream.log_postgres import PostgresEventLog

async def main(dsn, url, point):
    failpoint.arm(point or None)
    pool = await open_pool(dsn, application="outlet")
    clock = SystemClock()
    await Outlet(WebhookBus(url, "secret-of-the-test", clock), PostgresOutletBook(pool, "webhook"),
                 await PostgresEventLog.open(pool), ["a", "b", "c"], MemoryWakeup(), clock, ttl_s=2).run()

asyncio.run(main(*sys.argv[1:]))
"""


class House:
    """A log that tests append to, a receiver, and the outlets between them."""

    def __init__(self, pool: Pool, log: PostgresEventLog, receiver: Receiver) -> None:
        self.pool, self.log, self.receiver = pool, log, receiver
        self.changelog = PostgresChangeLog(pool, payload)
        self.bell = MemoryWakeup()
        self.term = 0

    async def append(self, *layers: str) -> list[LogEvent]:
        if not self.term:
            self.term = await self.changelog.lead("test", 600) or 0
        events = [
            LayerEvent(
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
            for layer in layers
        ]
        appended = list(await self.changelog.publish(self.term, events, consumed=[], hints=[], skipped={}))
        self.bell.ring()
        return appended

    def outlet(self, *, ttl_s: float = 10.0, bell: MemoryWakeup | None = None) -> Outlet:
        clock = SystemClock()
        bus = WebhookBus(self.receiver.url, SECRET, clock)
        book = PostgresOutletBook(self.pool, "webhook")
        return Outlet(bus, book, self.log, LAYERS, bell or self.bell, clock, ttl_s=ttl_s)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Outlet]:
        outlet = self.outlet()
        task = asyncio.ensure_future(outlet.run())
        try:

            async def leads() -> bool:
                assert not task.done(), task.exception()
                return outlet.term is not None

            await until(leads)
            yield outlet
        finally:
            await end_all([task])

    async def row(self, layer: str) -> Any:
        return await self.pool.fetchrow("select * from change_outlet_cursors where layer = $1", layer)

    async def reaches(self, layer: str, field: str, wanted: Callable[[Any], bool]) -> None:
        async def so() -> bool:
            row = await self.row(layer)
            return row is not None and wanted(row[field])

        await until(so)


@pytest_asyncio.fixture
async def house(pg_pool: Pool) -> AsyncIterator[House]:
    receiver = Receiver()
    await receiver.start()
    yield House(pg_pool, await PostgresEventLog.open(pg_pool), receiver)
    await receiver.stop()
    for taken in receiver.taken:
        MESSAGE.validate(taken.body)  # whatever was sent is what spec/ says


def child(dsn: str, url: str, point: str = "") -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CHILD, dsn, url, point], stdout=subprocess.DEVNULL)


async def test_what_comes_after_it_was_switched_on_is_sent_signed_and_whole(house: House) -> None:
    """S3, S92, S91: one request an event, keyed by layer, the event as browsers get it."""
    await house.append("a", "b")  # before
    async with house.running():
        appended = await house.append("a", "c", "a")
        await house.receiver.has(3)
    taken = {one.body["revision"]: one for one in house.receiver.taken}
    assert sorted(taken) == [event.revision for event in appended]
    last = taken[appended[-1].revision]
    assert signed(last)
    assert last.id == last.body["id"] == f"{house.log.epoch}-5"
    assert {key: last.body[key] for key in ("type", "key", "epoch", "revision", "prev_revision")} == {
        "type": "earth.layer.changed",
        "key": "a",
        "epoch": house.log.epoch,
        "revision": 5,
        "prev_revision": 3,
    }
    assert last.body["data"]["broadcast_id"] == last.id
    assert last.body["data"]["layers"] == ["a"]


async def test_a_layer_of_the_diagnostic_is_nobodys_business(house: House) -> None:
    async with house.running():
        await house.append("canary", "a")
        await house.receiver.has(1)
    assert house.receiver.by_key() == {"a": [2]}


async def test_a_receiver_that_was_away_is_caught_up_in_order(house: House) -> None:
    async with house.running() as outlet:
        await house.append("a")
        await house.receiver.has(1)
        await house.receiver.stop()
        for _ in range(20):
            await house.append("a", "b")
        await house.reaches("a", "attempts", lambda attempts: attempts >= 2)
        await house.receiver.start()
        await house.pool.execute(DUE)
        house.bell.ring()
        await house.receiver.has(41)
        assert outlet.failed >= 2
    assert house.receiver.by_key() == {"a": [1, *range(2, 42, 2)], "b": list(range(3, 42, 2))}
    row = await house.row("a")
    assert (row["attempts"], row["next_attempt_at"], row["last_error"], row["paused_at"]) == (0, None, None, None)


async def test_a_refused_event_holds_its_layer_alone_and_is_never_skipped(house: House) -> None:
    """A poison event pauses its key, is shown, and goes out once it is taken."""

    async def refuse_a(body: dict[str, Any]) -> tuple[int, str]:
        return (422, "") if body["revision"] == 1 else (204, "")

    house.receiver.answer = refuse_a
    with capture_logs() as lines:
        async with house.running() as outlet:
            await house.append("a", "b", "a", "b")
            for attempts in range(1, 6):
                await house.reaches("a", "attempts", lambda got, wanted=attempts: got >= wanted)
                await house.pool.execute(DUE)
                house.bell.ring()
            await house.reaches("a", "paused_at", bool)
            await house.receiver.has(2)
            async with house.pool.acquire() as connection:
                (shown,) = await examine_outlets(connection)
            assert [finding["code"] for finding in shown["findings"]] == ["outlet_paused"]
            assert "a: the webhook answered 422" in shown["findings"][0]["detail"]
            assert house.receiver.by_key() == {"b": [2, 4]}

            async def told() -> bool:
                house.bell.ring()
                return outlet.paused == {"a"} and outlet.behind == {"a": 3}

            await until(told)
            house.receiver.answer = None

            async def all_through() -> bool:
                # Again and again: an attempt that was under way may yet write when the next one is due.
                await house.pool.execute(DUE)
                house.bell.ring()
                return len({taken.id for taken in house.receiver.taken}) >= 4

            await until(all_through)
    assert house.receiver.by_key() == {"b": [2, 4], "a": [1, 3]}
    assert [line["event"] for line in lines].count("earth.outlet.paused") == 1


async def test_what_the_log_no_longer_has_is_told_as_a_resync(house: House) -> None:
    """Retention: no gap without a word."""
    async with house.running():
        await house.append("a", "b")
        await house.reaches("a", "revision", lambda revision: revision == 1)
        await house.reaches("b", "revision", lambda revision: revision == 2)
    for _ in range(4):
        await house.append("a")
    await house.pool.execute(OLD, 5)
    while await PostgresPruner(house.pool).broadcasts():
        pass
    async with house.running():
        await house.append("a")
        await house.receiver.has(5)
    resync, *after = house.receiver.taken[2:]
    assert (resync.id, resync.body["type"]) == (f"{house.log.epoch}-5-resync", "earth.resync_required")
    assert resync.body["data"]["reason"] == "replay_window_exceeded"
    assert resync.body["data"]["after"] == f"{house.log.epoch}-1"
    assert [(one.body["revision"], one.body["prev_revision"]) for one in after] == [(6, 5), (7, 6)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("update change_outlet_cursors set epoch = 'zzzzzzzzzzzz'", "epoch_changed"),
        ("update change_outlet_cursors set revision = 1000", "revision_ahead"),
    ],
)
async def test_another_life_of_the_log_is_told_as_a_resync(change: str, reason: str, house: House) -> None:
    """After a restore from a backup."""
    async with house.running():
        await house.append("a")
        await house.reaches("a", "revision", lambda revision: revision == 1)
    await house.pool.execute(change)
    async with house.running():
        await house.receiver.has(2)
        assert house.receiver.taken[1].body["data"]["reason"] == reason
        await house.append("a")
        await house.receiver.has(3)
    assert house.receiver.taken[2].body["prev_revision"] == 1


async def test_of_two_processes_one_sends_and_the_other_takes_over(house: House) -> None:
    """A lease with a term: not everything twice."""
    one, other = house.outlet(ttl_s=2, bell=MemoryWakeup()), house.outlet(ttl_s=2, bell=MemoryWakeup())
    tasks = [asyncio.ensure_future(outlet.run()) for outlet in (one, other)]
    try:

        async def led() -> bool:
            return (one.term is None) is not (other.term is None)

        await until(led)
        for _ in range(30):
            await house.append("a", "b")
        await house.receiver.has(60)
        first, second = (one, other) if one.term else (other, one)

        async def noted() -> bool:
            return first.sent == 60

        await until(noted)
        assert (len(house.receiver.asked), second.sent) == (60, 0)
        await end_all([tasks[0 if first is one else 1]])
        await house.append("c")
        await house.receiver.has(61)
        assert house.receiver.by_key()["c"] == [61]
    finally:
        await end_all(tasks)


async def test_who_lost_the_term_moves_no_cursor(house: House) -> None:
    book = PostgresOutletBook(house.pool, "webhook")
    assert (await book.lead("one", 60), await book.lead("other", 60)) == (1, None)
    await house.append("a")
    await house.pool.execute("update change_outlets set expires_at = clock_timestamp()")
    assert await book.lead("other", 60) == 2
    cursor = Cursor(house.log.epoch, 1)
    with pytest.raises(LeaseLost):
        await book.advance(1, "a", cursor)
    (place,) = await book.places(LAYERS)
    with pytest.raises(LeaseLost):
        await book.defer(1, place, "late", wait_s=1, paused=False)
    await book.advance(2, "a", cursor)
    await book.resign("one", 1)  # says nothing about another's term
    assert await book.lead("third", 60) is None


async def test_who_lost_the_term_sends_what_is_under_way_and_then_nothing(house: House) -> None:
    """It learns of the loss by the cursor that it may not move, and stands by at once."""
    async with house.running() as outlet:
        await house.pool.execute(
            "update change_outlets set holder = 'other', term = term + 1,"
            " expires_at = clock_timestamp() + interval '1 hour'"
        )
        await house.append("a")

        async def stands_by() -> bool:
            return outlet.term is None

        await until(stands_by)
        await house.append("a", "b")
    assert len(house.receiver.asked) == 1


async def test_killed_between_send_and_cursor_it_repeats_with_the_same_id_and_loses_nothing(
    house: House, pg_dsn: str
) -> None:
    """At least once: SIGKILL right after the receiver took the event."""
    await PostgresOutletBook(house.pool, "webhook").lead("nobody", 0.001)
    appended = []
    for round_ in range(3):
        appended += await house.append("a", "b", "a")
        killed = child(pg_dsn, house.receiver.url, f"outlet.after_send:{round_ + 1}")
        async with asyncio.timeout(60):
            assert await asyncio.to_thread(killed.wait) == -signal.SIGKILL
    last = child(pg_dsn, house.receiver.url)
    try:
        await house.receiver.has(len(appended))
    finally:
        last.kill()
        last.wait()
    ids = [one.id for one in house.receiver.taken]
    assert set(ids) == {f"{house.log.epoch}-{event.revision}" for event in appended}
    assert len(ids) > len(set(ids))  # the kill fell after the send
    for revisions in house.receiver.by_key().values():
        assert revisions == sorted(revisions)
    bodies: dict[str, set[bytes]] = {}
    for one in house.receiver.taken:
        bodies.setdefault(one.id, set()).add(one.raw)
    assert all(len(same) == 1 for same in bodies.values())


async def test_a_receiver_that_never_answers_is_given_up_after_a_while(house: House) -> None:
    """Every wait has a bound; the layers that are answered go on."""
    hold = asyncio.Event()

    async def silent(body: dict[str, Any]) -> tuple[int, str]:
        if body["key"] == "a":
            await hold.wait()
        return 204, ""

    house.receiver.answer = silent
    outlet = house.outlet(ttl_s=2)
    await outlet.turn()
    task = asyncio.ensure_future(outlet.run())
    try:
        await house.append("a", "b")
        await house.reaches("a", "attempts", lambda attempts: attempts >= 1)
        assert "no answer within 0.8 s" in (await house.row("a"))["last_error"]
        await house.receiver.has(1)
        assert house.receiver.by_key() == {"b": [2]}
    finally:
        hold.set()
        await end_all([task])
