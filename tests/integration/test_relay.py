"""The relay over a real outbox: what is committed becomes one event per layer, whatever fails on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import asyncpg

from planetwire.database.postgres import Pool
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Cursor
from planetwire.outbox.changelog_postgres import BROADCASTS_CHANNEL, CHANGES_CHANNEL, PostgresChangeLog
from planetwire.outbox.wakeup_memory import MemoryWakeup
from planetwire.outbox.wakeup_postgres import PostgresWakeup
from planetwire.relay.payload import payload
from planetwire.stream.log_postgres import PostgresEventLog
from planetwire.web.stores.cache_memory import MemoryCache
from relay_tools import REGISTRY, Seen, add, eventually, layer, make, running, unconsumed


async def test_a_committed_change_becomes_one_event_with_the_nine_keys(pg_pool: Pool) -> None:
    """S19, S20, S24–S30, S52–S61."""
    seen = Seen()
    async with running(make(pg_pool, seen)):
        await add(pg_pool, "celestrak_gp", "1", "2", "3")
        await seen.until(lambda: len(seen.events) == 1)
        assert await unconsumed(pg_pool) == 0
        await pg_pool.execute("delete from collected_data")
        await seen.until(lambda: len(seen.events) == 2)
    added, deleted = seen.bodies()
    epoch = await pg_pool.fetchval("select epoch from earth_log_head")
    assert added == {
        "event": "earth.layer.changed",
        "action": "database_changed",
        "source": "celestrak_gp",
        "table": "collected_data",
        "operation": "INSERT",
        "layers": ["satellites"],
        "refresh_strategy": "reload",
        "records_processed": 3,
        "occurred_at": added["occurred_at"],
        "broadcast_id": f"{epoch}-1",
        "sources": ["celestrak_gp"],
        "tables": ["collected_data"],
        "operations": ["INSERT"],
        "merged_count": 1,
        "delta": {"upsert": [], "remove": []},
    }
    assert str(added["occurred_at"]).endswith("Z")
    assert (deleted["operation"], deleted["refresh_strategy"]) == ("DELETE", "clear_then_reload")
    assert [(event.revision, event.prev_revision) for event in seen.events] == [(1, 0), (2, 1)]


async def test_the_cache_is_emptied_before_the_event_is_published(pg_pool: Pool) -> None:
    """S21, S29: and before anybody can read of it in the log; a process that tails it has its own cache to empty."""

    class Looking(Seen):
        async def invalidate(self, patterns: Sequence[str]) -> None:
            await super().invalidate(patterns)
            logged = await pg_pool.fetchval("select count(*) from earth_broadcasts")
            self.steps.append(f"{logged} in the log, {await unconsumed(pg_pool)} unconsumed")

    seen = Looking()
    async with running(make(pg_pool, seen)):
        await add(pg_pool, "usgs_quakes", "1")
        await seen.until(lambda: len(seen.events) == 1)
    assert seen.steps == [
        "invalidate earth:layer:earthquakes:*",
        "0 in the log, 1 unconsumed",
        "publish layer:earthquakes",
    ]


async def test_an_event_of_a_layer_drops_what_its_patterns_name_and_nothing_else(pg_pool: Pool) -> None:
    """S27, S74: whatever the declaration names, of other layers and of the dashboard too."""
    patterns = ("earth:layer:moons:*", "dash:terminal:scan", "earth:layer:moons:*")
    moons = replace(layer("moons", "celestrak_gp"), cache_patterns=patterns)
    cache = MemoryCache()
    meant = ["earth:layer:moons:live|gzip|", "earth:layer:moons:stale|gzip|", "dash:terminal:scan"]
    others = ["earth:layer:earthquakes:live|gzip|", "dash:terminal:detail shanghai", "earth:layer:moonshine:live|gzip|"]
    for name in (*meant, *others):
        assert await cache.put(name, cache.generation(name), Cursor("abcdef012345", 0), b"x")

    class Caching(Seen):
        async def invalidate(self, patterns: Sequence[str]) -> None:
            await cache.invalidate(patterns)

    seen = Caching()
    registry = EarthLayerAdapterRegistry([moons, layer("earthquakes", "usgs_quakes")])
    async with running(make(pg_pool, seen, registry=registry)):
        await add(pg_pool, "celestrak_gp", "1")
        await seen.until(lambda: len(seen.events) == 1)
    assert [await cache.get(name) for name in meant] == [None] * 3
    assert [await cache.get(name) for name in others] == [b"x"] * 3


async def test_prev_revision_is_the_layers_own(pg_pool: Pool) -> None:
    """S28, Q1."""
    seen = Seen()
    async with running(make(pg_pool, seen, merge_window_ms=0)):
        for n, source in enumerate(["celestrak_gp", "usgs_quakes", "celestrak_gp", "usgs_quakes"], 1):
            await add(pg_pool, source, str(n))
            await seen.until(lambda n=n: len(seen.events) == n)  # type: ignore[misc]
    assert [(event.revision, event.prev_revision) for event in seen.events] == [(1, 0), (2, 0), (3, 1), (4, 2)]


async def test_changes_of_one_window_become_one_event(pg_pool: Pool) -> None:
    """S28, Q20."""
    async with pg_pool.acquire() as connection, connection.transaction():
        await add(connection, "celestrak_gp", "1", "2")
        await add(connection, "celestrak_gp", "3")
        await connection.execute("delete from collected_data where external_key = '1'")
        await connection.execute("update collected_data set title = 'x'")
    seen = Seen()
    async with running(make(pg_pool, seen)):
        await seen.until(lambda: len(seen.events) == 1)
    (body,) = seen.bodies()
    assert (body["refresh_strategy"], body["operation"], body["records_processed"]) == (
        "clear_then_reload",
        "DELETE",
        1,
    )
    assert (body["merged_count"], body["operations"]) == (4, ["INSERT", "DELETE", "UPDATE"])


async def test_an_unmapped_change_is_consumed_with_a_reason_and_listed(pg_pool: Pool) -> None:
    """Q19."""
    seen = Seen()
    await add(pg_pool, "nobody", "1")
    await add(pg_pool, "nobody", "2")
    async with running(make(pg_pool, seen)):
        await eventually(lambda: _none_left(pg_pool))
    reasons = await pg_pool.fetch("select distinct skipped_reason from earth_data_change_events")
    assert [row[0] for row in reasons] == ["no_adapter"]
    lag = await PostgresChangeLog(pg_pool, payload).lag()
    assert lag["unmapped"] == [{"table": "collected_data", "source": "nobody", "changes": 2}]
    assert seen.events == []


async def test_an_unmapped_change_is_marked_and_counted_once(pg_pool: Pool) -> None:
    """Q19: what was marked with one turn is not marked again with the next, nor does it take room for ever."""
    relay = make(pg_pool, Seen())
    await add(pg_pool, "nobody", "1", "2")
    await relay.turn()
    await add(pg_pool, "nobody", "3")
    await relay.turn()
    await relay.turn()
    assert await unconsumed(pg_pool) == 0
    assert relay.counts["skipped"] == 2, "one change row a statement"


async def _none_left(pool: Pool) -> bool:
    return await unconsumed(pool) == 0


async def test_a_refused_row_backs_off_alone_and_the_others_go_out(pg_pool: Pool) -> None:
    """S32."""
    await pg_pool.execute(
        "alter table earth_broadcasts add constraint no_poison check (message->>'source' is distinct from 'poison')"
    )
    await add(pg_pool, "celestrak_gp", "1")
    await add(pg_pool, "poison", "1")
    await add(pg_pool, "usgs_quakes", "1")
    seen = Seen()
    async with running(make(pg_pool, seen)):
        await seen.until(lambda: len(seen.events) == 2)
        await eventually(lambda: _deferred(pg_pool))
    assert {event.topic for event in seen.events} == {"layer:satellites", "layer:earthquakes"}
    row = await pg_pool.fetchrow("select * from earth_data_change_events where consumed_at is null")
    assert row is not None
    assert (row["source"], row["attempts"] >= 1) == ("poison", True)
    assert "no_poison" in row["last_error"]


async def _deferred(pool: Pool) -> bool:
    return bool(await pool.fetchval("select count(*) from earth_data_change_events where attempts > 0"))


async def test_one_refused_row_does_not_hold_the_good_rows_of_its_own_layer(pg_pool: Pool) -> None:
    """S32: found by halves; records of the good rows reach the map."""
    await pg_pool.execute(
        "alter table earth_broadcasts add constraint no_poison check ((message->>'records_processed')::int < 100)"
    )
    for n in range(9):
        await add(pg_pool, "celestrak_gp", f"a{n}")
    await add(pg_pool, "celestrak_gp", *(f"b{n}" for n in range(100)))
    seen = Seen()
    async with running(make(pg_pool, seen)):
        await eventually(lambda: _deferred(pg_pool))
        await eventually(lambda: _only_one_left(pg_pool))
    assert sum(int(str(body["records_processed"])) for body in seen.bodies()) == 9


async def _only_one_left(pool: Pool) -> bool:
    return await unconsumed(pool) == 1


class Puzzled(EarthLayerAdapterRegistry):
    """A registry that fails on one source."""

    def layers_of(self, table: str, source: str | None) -> Sequence[str]:
        if source == "poison":
            raise RuntimeError("cannot map this")
        return super().layers_of(table, source)


async def test_a_row_that_cannot_be_mapped_backs_off_alone(pg_pool: Pool) -> None:
    """S32."""
    await add(pg_pool, "poison", "1")
    await add(pg_pool, "celestrak_gp", "1")
    seen = Seen()
    async with running(make(pg_pool, seen, registry=Puzzled(REGISTRY.all()))):
        await seen.until(lambda: len(seen.events) == 1)
        await eventually(lambda: _deferred(pg_pool))
    error = await pg_pool.fetchval("select last_error from earth_data_change_events where consumed_at is null")
    assert "cannot map this" in error


async def test_after_five_attempts_a_row_waits_until_it_is_retried_by_hand(pg_pool: Pool) -> None:
    """S32: contracts §5."""
    changelog = PostgresChangeLog(pg_pool, payload)
    await add(pg_pool, "celestrak_gp", "1")
    (change,), _ = await changelog.pending(10)
    waits = []
    for _ in range(5):
        await changelog.defer([change.id], "broken")
        waits.append(
            await pg_pool.fetchval(
                "select case when next_attempt_at = 'infinity' then null else"
                " round(extract(epoch from next_attempt_at - clock_timestamp()))::int end from earth_data_change_events"
            )
        )
    assert waits == [1, 2, 4, 8, None]
    assert (await changelog.pending(10))[0] == []
    assert (await changelog.lag())["quarantined"] == 1
    assert await changelog.retry() == 1
    assert [row.id for row in (await changelog.pending(10))[0]] == [change.id]


async def test_a_late_commit_with_a_lower_id_is_not_lost(pg_pool: Pool) -> None:
    """S12: ids are not commit order."""
    seen = Seen()
    async with pg_pool.acquire() as late, running(make(pg_pool, seen)):
        transaction = late.transaction()
        await transaction.start()
        await add(late, "celestrak_gp", "late")
        await add(pg_pool, "usgs_quakes", "early")
        await seen.until(lambda: len(seen.events) == 1)
        await transaction.commit()
        await seen.until(lambda: len(seen.events) == 2)
    ids = await pg_pool.fetch("select source from earth_data_change_events order by id")
    assert [row[0] for row in ids] == ["celestrak_gp", "usgs_quakes"]
    assert [event.topic for event in seen.events] == ["layer:earthquakes", "layer:satellites"]


async def test_without_any_notify_everything_still_arrives(pg_pool: Pool) -> None:
    """S11, S12, S24: the bell of this relay is never rung."""
    seen = Seen()
    async with running(make(pg_pool, seen, MemoryWakeup())):
        await eventually(lambda: _led(pg_pool))
        await add(pg_pool, "celestrak_gp", "1")
        await seen.until(lambda: len(seen.events) == 1)


async def _led(pool: Pool) -> bool:
    return bool(await pool.fetchval("select leader_holder is not null from earth_log_head"))


async def test_a_ring_wakes_the_relay_before_its_poll(pg_pool: Pool, pg_dsn: str) -> None:
    """S18, S24: the poll alone would take an hour."""
    doorbell = PostgresWakeup(pg_dsn, [CHANGES_CHANNEL])
    doorbell.start()
    seen = Seen()
    try:
        async with running(make(pg_pool, seen, doorbell.bell(CHANGES_CHANNEL), poll_s=3600, leader_ttl_s=60)):
            await eventually(lambda: _gate_open(pg_pool))
            await eventually(lambda: _true(doorbell.connected))
            await add(pg_pool, "celestrak_gp", "1")
            await seen.until(lambda: len(seen.events) == 1)
    finally:
        await doorbell.aclose()
        await doorbell.aclose()


async def _true(value: bool) -> bool:
    return value


async def _gate_open(pool: Pool) -> bool:
    return bool(
        await pool.fetchval(
            "select count(*) from wakeup_gates where channel = $1 and open_until > now()", CHANGES_CHANNEL
        )
    )


async def test_only_one_relay_leads_and_another_takes_over(pg_pool: Pool) -> None:
    """Q23: a leader that stops resigns, so the standby need not wait for the term to end."""
    first_seen, second_seen = Seen(), Seen()
    first = make(pg_pool, first_seen, leader_ttl_s=3)
    second = make(pg_pool, second_seen, leader_ttl_s=3)
    await first.turn()
    async with running(second):
        async with running(first):
            await add(pg_pool, "celestrak_gp", "1")
            await first_seen.until(lambda: len(first_seen.events) == 1)
            assert (first.is_leader, second.is_leader) == (True, False)
        await add(pg_pool, "celestrak_gp", "2")
        await second_seen.until(lambda: len(second_seen.events) == 1)
        assert (first.is_leader, second.is_leader) == (False, True)
    assert [event.revision for event in first_seen.events + second_seen.events] == [1, 2]
    assert await unconsumed(pg_pool) == 0


async def test_a_silent_leader_is_replaced_and_its_late_publish_is_refused(pg_pool: Pool) -> None:
    """Q23: the fence is the term."""
    old_seen, new_seen = Seen(), Seen()
    old, new = make(pg_pool, old_seen, leader_ttl_s=2), make(pg_pool, new_seen, leader_ttl_s=2)
    await old.turn()
    assert old.is_leader
    async with running(new):
        await eventually(lambda: _true(new.is_leader))
        assert new.term == (old.term or 0) + 1
        old._renew_at = float("inf")  # it does not know yet
        await add(pg_pool, "celestrak_gp", "1")
        await new_seen.until(lambda: len(new_seen.events) == 1)
        await pg_pool.execute("update earth_log_head set leader_holder = 'paused'")
        await add(pg_pool, "celestrak_gp", "2")
        await old.turn()
        assert not old.is_leader
        assert old_seen.events == []
        await pg_pool.execute("update earth_log_head set leader_holder = $1", new.holder)
        await new_seen.until(lambda: len(new_seen.events) == 2)


async def test_hints_reach_the_layers_they_name(pg_pool: Pool) -> None:
    """S7, S35, S42, S43, Q27: each drops what the patterns of its layers name before it is told."""
    await pg_pool.execute(
        "insert into earth_refresh_hints (layer, source, action) values"
        " (null, 'usgs_quakes', 'cache_cleared'), ('satellites', null, 'manual_refresh'),"
        " ('no_such', null, 'manual_refresh')"
    )
    seen = Seen()
    async with running(make(pg_pool, seen)):
        await seen.until(lambda: len(seen.events) == 2)
        await eventually(lambda: _hints_done(pg_pool))
    bodies = {str(body["layers"]): body for body in seen.bodies()}
    quakes, satellites = bodies["['earthquakes']"], bodies["['satellites']"]
    assert (quakes["action"], quakes["source"], quakes["table"], quakes["operation"], quakes["refresh_strategy"]) == (
        "cache_cleared",
        "usgs_quakes",
        None,
        None,
        "reload",
    )
    assert satellites["action"] == "manual_refresh"
    wanted = {"invalidate earth:layer:earthquakes:*", "invalidate earth:layer:satellites:*"}
    assert {step for step in seen.steps if step.startswith("invalidate")} == wanted
    for name in ("earthquakes", "satellites"):
        dropped, told = f"invalidate earth:layer:{name}:*", f"publish layer:{name}"
        assert seen.steps.count(dropped) == 1
        assert seen.steps.index(dropped) < seen.steps.index(told)


async def _hints_done(pool: Pool) -> bool:
    return not await pool.fetchval("select count(*) from earth_refresh_hints where consumed_at is null")


async def test_the_relay_survives_losing_every_connection(pg_pool: Pool, pg_dsn: str) -> None:
    """S32: the database kills all sessions; nothing is lost and nobody restarts the relay."""
    doorbell = PostgresWakeup(pg_dsn, [CHANGES_CHANNEL, BROADCASTS_CHANNEL])
    doorbell.start()
    seen = Seen()
    try:
        async with running(make(pg_pool, seen, doorbell.bell(CHANGES_CHANNEL))):
            await add(pg_pool, "celestrak_gp", "1")
            await seen.until(lambda: len(seen.events) == 1)
            admin = await asyncpg.connect(pg_dsn)
            await admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
            await add(admin, "celestrak_gp", "2")
            await admin.close()
            await seen.until(lambda: len(seen.events) == 2)
    finally:
        await doorbell.aclose()
    log = await PostgresEventLog.open(pg_pool)
    assert await log.head() == 2


async def test_twelve_writers_with_open_transactions_lose_no_change(pg_pool: Pool) -> None:
    """S10, S12: every row is consumed exactly when an event that covers it was logged."""
    seen = Seen()

    async def write(n: int) -> None:
        for key in range(15):
            async with pg_pool.acquire() as connection, connection.transaction():
                await add(connection, "celestrak_gp", f"{n}-{key}")
                await connection.execute("select pg_sleep(random() * 0.01)")

    async with running(make(pg_pool, seen, merge_window_ms=20)):
        await asyncio.gather(*(write(n) for n in range(8)))
        await eventually(lambda: _none_left(pg_pool))
        await seen.until(lambda: sum(int(str(body["merged_count"])) for body in seen.bodies()) >= 8 * 15)
    assert sum(int(str(body["records_processed"])) for body in seen.bodies()) == 8 * 15
    assert sum(int(str(body["merged_count"])) for body in seen.bodies()) == 8 * 15
