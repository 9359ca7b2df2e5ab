"""A backlog is added up by the database: the same events, the same marks, and a bad row is still found alone."""

from __future__ import annotations

from planetwire.database.postgres import Pool
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Operation
from planetwire.outbox.changelog_postgres import PostgresChangeLog
from planetwire.relay.intake import READ_ROWS
from planetwire.relay.payload import payload
from planetwire.relay.throttle import HELD_MAX
from relay_tools import Seen, add, eventually, make, running, unconsumed

SHIPPED = EarthLayerAdapterRegistry()
FILL = """insert into earth_data_change_events (table_name, operation, source, records_processed)
select 'collected_data', case when n % 4 = 0 then 'DELETE' else 'UPDATE' end,
    case when n % 2 = 0 then 'celestrak_gp' else 'usgs_quakes' end, 2 from generate_series(1, $1) n"""
THING = """insert into earth_data_change_events (table_name, operation, source, records_processed, row_ids)
values ('earth_interactables', $1, 'usgs_quakes', 1, $2)"""
ATTEMPTS = "select array_agg(attempts order by id) from earth_data_change_events"


async def test_rows_that_differ_in_numbers_only_come_as_one(pg_pool: Pool) -> None:
    await pg_pool.execute(FILL, 40)
    await pg_pool.execute(
        "update earth_data_change_events set attempts = 1 where id = (select min(id) from earth_data_change_events)"
    )
    log = PostgresChangeLog(pg_pool, payload)
    found, _ = await log.pending(100)
    assert [(c.operation, c.source, len(c.ids), c.records_processed) for c in found] == [
        (Operation.UPDATE, "usgs_quakes", 1, 2),  # it failed before
        (Operation.UPDATE, "celestrak_gp", 10, 20),
        (Operation.UPDATE, "usgs_quakes", 19, 38),
        (Operation.DELETE, "celestrak_gp", 10, 20),
    ]
    assert [change.id for change in found] == [min(change.ids) for change in found]
    held = [number for change in found for number in change.ids]
    assert len(set(held)) == 40
    assert await log.pending(100, held=held) == ([], [])
    singly, _ = await log.pending(100, singly=True)
    assert [change.ids for change in singly] == [[number] for number in sorted(held)]
    rest, _ = await log.pending(100, singly=True, after=sorted(held)[29])
    assert [change.id for change in rest] == sorted(held)[30:]


async def test_a_row_that_was_committed_late_is_found_while_later_ones_are_held(pg_pool: Pool) -> None:
    """S31: a read goes on where its last page ended, and the next read begins at the beginning."""
    async with pg_pool.acquire() as slow:
        late = slow.transaction()
        await late.start()
        await slow.execute(FILL, 1)
        await pg_pool.execute(FILL, READ_ROWS + 10)
        seen = Seen()
        async with running(make(pg_pool, seen, registry=SHIPPED, merge_window_ms=0)):
            await seen.until(lambda: total(seen) == READ_ROWS + 10)
            await pg_pool.execute(FILL, READ_ROWS + 10)
            await late.commit()
            await seen.until(lambda: total(seen) == 2 * READ_ROWS + 21)
    assert await unconsumed(pg_pool) == 0


def total(seen: Seen) -> int:
    return sum(int(str(body["merged_count"])) for body in seen.bodies())


async def test_ids_of_objects_are_told_as_long_as_they_are_few(pg_pool: Pool) -> None:
    """Q21."""
    for n in range(3):
        await pg_pool.execute(THING, "UPDATE", [f"a{n}", f"b{n}"])
    log = PostgresChangeLog(pg_pool, payload)
    few, _ = await log.pending(100)
    assert [change.row_ids for change in few] == [[f"a{n}", f"b{n}"] for n in range(3)]
    await pg_pool.execute(THING, "UPDATE", [f"c{n}" for n in range(495)])
    many, _ = await log.pending(100)
    assert [(change.row_ids, len(change.ids), change.records_processed) for change in many] == [(None, 4, 4)]


async def test_a_backlog_larger_than_what_may_be_held_is_cleared_with_the_right_counts(pg_pool: Pool) -> None:
    """S28, S31."""
    rows = HELD_MAX + 5_000
    await pg_pool.execute(FILL, rows)
    seen = Seen()
    async with running(make(pg_pool, seen, registry=SHIPPED, merge_window_ms=0)):

        async def done() -> bool:
            return await unconsumed(pg_pool) == 0

        await eventually(done)
    bodies = seen.bodies()
    assert sum(int(str(body["merged_count"])) for body in bodies) == rows
    assert {str(body["layers"]): body["refresh_strategy"] for body in bodies} == {
        "['satellites']": "clear_then_reload",
        "['earthquakes']": "reload",
    }


async def test_a_bad_row_among_many_that_were_added_up_is_put_off_alone(pg_pool: Pool) -> None:
    """Q19: the others go out, read one by one."""
    await pg_pool.execute(
        "alter table earth_broadcasts add constraint no_poison check (message->>'occurred_at' not like '2999%')"
    )
    await pg_pool.execute(FILL, 20)
    await pg_pool.execute(
        "update earth_data_change_events set occurred_at = '2999-01-01Z'"
        " where id = (select min(id) + 4 from earth_data_change_events)"
    )
    seen = Seen()
    async with running(make(pg_pool, seen, registry=SHIPPED, merge_window_ms=0)):

        async def one_left() -> bool:
            return await unconsumed(pg_pool) == 1

        await eventually(one_left)
        await add(pg_pool, "celestrak_gp", "later")

        async def later_too() -> bool:
            return sum(int(str(body["merged_count"])) for body in seen.bodies()) == 20

        await eventually(later_too)
    attempts = await pg_pool.fetchval(ATTEMPTS)
    assert attempts[4] >= 1
    assert [tried for n, tried in enumerate(attempts) if n != 4] == [0] * 20
