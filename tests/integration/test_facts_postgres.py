"""The facts store: merge, sweep, void state, features, clearing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from ledger_tools import claim_one, fact, queue_on, row_of, wish
from planetwire.database.postgres import Pool
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.jobs.ledger.jobs_postgres import PostgresJobQueue
from planetwire.model import Batch, Fact, FetchState, JobStatus, Lease, TaskType, Written

T0 = datetime(2026, 5, 4, 3, 2, 1, 123456, UTC)


class Run:
    """One collect job of one source, as the handler would do it."""

    def __init__(self, pool: Pool, source: str = "alpha") -> None:
        self.pool = pool
        self.source = source
        self.queue: PostgresJobQueue = queue_on(pool)
        self.facts = PostgresFactStore(pool)
        self.lease: Lease | None = None

    async def start(self) -> Run:
        if self.lease is not None:
            await self.queue.finish(self.lease, JobStatus.COMPLETED)
        await self.queue.submit(wish(source=self.source))
        self.lease = await claim_one(self.queue)
        return self

    async def put(self, batch: Batch) -> Written:
        assert self.lease is not None
        async with self.queue.batch(self.lease) as tx:
            return await self.facts.upsert(tx, self.source, batch, self.lease.job.id)

    async def whole(self, facts: Sequence[Fact], state: FetchState | None = None) -> Written:
        keys = frozenset(item.external_key for item in facts)
        return await self.put(Batch(facts, complete=True, sweep_keys=keys, state=state))

    async def keys(self) -> list[str]:
        rows = await self.pool.fetch(
            "select external_key from collected_data where source = $1 order by external_key", self.source
        )
        return [row["external_key"] for row in rows]

    async def message(self) -> str | None:
        assert self.lease is not None
        return (await row_of(self.pool, self.lease.job.id))["message"]


async def test_facts_are_merged_by_key_and_say_which_job_brought_them(pg_pool: Pool) -> None:
    """S22, S40."""
    run = await Run(pg_pool).start()
    assert await run.put(Batch([fact("a"), fact("b")])) == Written(2, 0, 0)
    assert await run.put(Batch([fact("b", 2), fact("c")])) == Written(1, 1, 0)
    assert await run.put(Batch([])) == Written(0, 0, 0)
    rows = await pg_pool.fetch("select external_key, data, task_id from collected_data order by 1")
    assert run.lease is not None
    assert [(row[0], row[1]["value"], row[2]) for row in rows] == [
        ("a", 1, run.lease.job.id),
        ("b", 2, run.lease.job.id),
        ("c", 1, run.lease.job.id),
    ]


async def test_of_facts_with_one_key_in_a_batch_the_last_wins(pg_pool: Pool) -> None:
    run = await Run(pg_pool).start()
    assert await run.put(Batch([fact("a", 1), fact("b", 1), fact("a", 2)])) == Written(2, 0, 0)
    assert await pg_pool.fetchval("select data -> 'value' from collected_data where external_key = 'a'") == 2


async def test_a_batch_without_news_writes_no_row_and_no_change(pg_pool: Pool) -> None:
    """Q24: not even a row lock."""
    run = await Run(pg_pool).start()
    facts = [fact(str(n), lat=n / 7, lon=None, observed_at=T0, valid_until=T0) for n in range(200)]
    await run.put(Batch(facts))
    before = await pg_pool.fetch("select id, xmin, xmax, ctid, collected_at from collected_data order by id")
    changes = await pg_pool.fetchval("select count(*) from earth_data_change_events")
    assert await run.put(Batch(facts)) == Written(0, 0, 200)
    assert await pg_pool.fetch("select id, xmin, xmax, ctid, collected_at from collected_data order by id") == before
    assert await pg_pool.fetchval("select count(*) from earth_data_change_events") == changes


async def test_an_update_touches_only_the_rows_whose_values_changed(pg_pool: Pool) -> None:
    """Q24."""
    run = await Run(pg_pool).start()
    await run.put(Batch([fact("a"), fact("b"), fact("c", lat=1.5)]))
    seen = dict(await pg_pool.fetch("select external_key, collected_at from collected_data"))
    assert await run.put(Batch([fact("a"), fact("b", 2), fact("c")])) == Written(0, 2, 1)
    now = dict(await pg_pool.fetch("select external_key, collected_at from collected_data"))
    assert now["a"] == seen["a"] and now["b"] > seen["b"] and now["c"] > seen["c"]
    change = await pg_pool.fetchrow("select * from earth_data_change_events order by id desc limit 1")
    assert (change["operation"], change["records_processed"]) == ("UPDATE", 2)


async def test_twelve_thousand_facts_are_merged_in_batches_with_one_change_row_each(pg_pool: Pool) -> None:
    """S16, S22."""
    run = await Run(pg_pool).start()
    facts = [
        fact(str(n), {"name": f"OBJECT {n}", "mean_motion": 15.5 + n / 1e6}, observed_at=T0 + timedelta(seconds=n))
        for n in range(12_000)
    ]
    for start in range(0, len(facts), 2_000):
        assert await run.put(Batch(facts[start : start + 2_000])) == Written(2_000, 0, 0)
    features, total = await run.facts.features(["alpha"], None)
    assert len(features) == total == 12_000
    assert json.loads(features[0])["id"] == "alpha:11999"
    changes = await pg_pool.fetch("select operation, records_processed from earth_data_change_events")
    assert [tuple(row) for row in changes] == [("INSERT", 2_000)] * 6


async def test_text_that_postgresql_cannot_hold_does_not_cost_the_batch(pg_pool: Pool) -> None:
    run = await Run(pg_pool).start()
    strange = Fact("a\x00", "thing", "NUL\x00 'quote' \\u0000", {"t": "x\x00y", "l": ["\x00"], "k\x00": "\\u0000"})
    assert await run.put(Batch([strange, fact("b")])) == Written(2, 0, 0)
    row = await pg_pool.fetchrow("select * from collected_data where external_key = 'a'")
    assert row["title"] == "NUL 'quote' \\u0000"
    assert row["data"] == {"t": "xy", "l": [""], "k": "\\u0000"}


async def test_a_complete_body_sweeps_what_it_does_not_name_and_leaves_other_sources_alone(pg_pool: Pool) -> None:
    other = await Run(pg_pool, "beta").start()
    await other.put(Batch([fact("x")]))
    run = await Run(pg_pool).start()
    await run.whole([fact(key) for key in "abcd"])
    await run.start()
    await run.put(Batch([fact("a"), fact("e")]))
    assert await run.keys() == ["a", "b", "c", "d", "e"]
    await run.put(Batch([fact("b")], complete=True, sweep_keys=frozenset("abe")))
    assert await run.keys() == ["a", "b", "e"]
    assert await other.keys() == ["x"]


async def test_a_complete_body_without_sweep_keys_deletes_nothing(pg_pool: Pool) -> None:
    run = await Run(pg_pool).start()
    await run.put(Batch([fact("a"), fact("b")]))
    await run.put(Batch([fact("b")], complete=True))
    assert await run.keys() == ["a", "b"]


async def test_a_body_of_less_than_half_the_rows_deletes_nothing_and_says_so(pg_pool: Pool) -> None:
    run = await Run(pg_pool).start()
    await run.whole([fact(key) for key in "abcdefgh"])
    await run.start()
    await run.whole([fact(key) for key in "abc"])
    assert await run.keys() == list("abcdefgh")
    assert (await run.message() or "").startswith("suspicious_shrink: 3 rows, 8 before")
    await run.start()
    await run.whole([])
    assert await run.keys() == list("abcdefgh")
    await run.start()
    await run.whole([fact(key) for key in "abcd"])
    assert await run.keys() == list("abcd")
    assert await run.message() is None


async def test_a_body_of_as_many_but_all_other_keys_replaces_the_old_ones(pg_pool: Pool) -> None:
    run = await Run(pg_pool).start()
    await run.whole([fact(key) for key in "abcd"])
    await run.start()
    await run.put(Batch([fact(key) for key in "wx"]))
    await run.put(Batch([fact(key) for key in "yz"], complete=True, sweep_keys=frozenset("wxyz")))
    assert await run.keys() == list("wxyz")


async def test_tombstones_delete_their_keys_without_a_sweep(pg_pool: Pool) -> None:
    run = await Run(pg_pool).start()
    await run.put(Batch([fact(key) for key in "abc"], complete=True, state=FetchState(fetched_at=T0)))
    await run.put(Batch([fact("d")], tombstones=frozenset({"a", "nobody"})))
    assert await run.keys() == ["b", "c", "d"]
    state = await run.facts.fetch_state("alpha")
    assert state is not None and not state.void


async def test_the_state_of_a_complete_body_is_remembered_in_its_transaction(pg_pool: Pool) -> None:
    run = await Run(pg_pool).start()
    assert await run.facts.fetch_state("alpha") is None
    assert await run.facts.last_success(["alpha"]) == {}
    state = FetchState("etag-1", "Mon", "sha", T0, T0 + timedelta(hours=2))
    with pytest.raises(ValueError, match="crash"):
        assert run.lease is not None
        async with run.queue.batch(run.lease) as tx:
            await run.facts.upsert(tx, "alpha", Batch([fact("a")], complete=True, state=state), run.lease.job.id)
            raise ValueError("crash")
    assert await run.facts.fetch_state("alpha") is None
    await run.whole([fact("a")], state)
    assert await run.facts.fetch_state("alpha") == state
    first = (await run.facts.last_success(["alpha", "beta"]))["alpha"]
    await run.put(Batch([], state=FetchState("etag-1", "Mon", "sha", T0, None), message="cooldown until later"))
    assert (await run.facts.last_success(["alpha"]))["alpha"] == first
    await run.put(Batch([], state=FetchState("etag-1", "Mon", "sha", T0 + timedelta(hours=3), None)))
    assert (await run.facts.last_success(["alpha"]))["alpha"] > first


async def _void(pool: Pool) -> bool:
    state = await PostgresFactStore(pool).fetch_state("alpha")
    assert state is not None
    return state.void


@pytest.mark.parametrize(
    "repair",
    [
        "delete from collected_data where source = 'alpha'",
        "delete from collected_data where external_key = 'b'",
        "truncate collected_data cascade",
        "set session_replication_role = replica; delete from collected_data; reset session_replication_role",
        "with gone as (delete from collected_data returning *) select count(*) from gone",
    ],
)
async def test_facts_deleted_by_hand_make_the_remembered_body_void(repair: str, pg_pool: Pool) -> None:
    """S80."""
    run = await Run(pg_pool).start()
    await run.whole([fact("a"), fact("b")], FetchState("e", fetched_at=T0))
    assert not await _void(pg_pool)
    await pg_pool.execute(repair)
    assert await _void(pg_pool)
    await run.start()
    await run.whole([fact("a"), fact("b")], FetchState("e", fetched_at=T0))
    assert not await _void(pg_pool)


async def test_a_sweep_of_the_feed_itself_voids_nothing(pg_pool: Pool) -> None:
    run = await Run(pg_pool).start()
    await run.whole([fact(key) for key in "abc"], FetchState("e", fetched_at=T0))
    await run.start()
    await run.whole([fact(key) for key in "ab"], FetchState("f", fetched_at=T0))
    assert await run.keys() == ["a", "b"]
    assert not await _void(pg_pool)


async def test_a_delete_that_matched_nothing_and_one_of_another_source_void_nothing(pg_pool: Pool) -> None:
    run = await Run(pg_pool).start()
    other = await Run(pg_pool, "beta").start()
    await run.whole([fact("a")], FetchState("e", fetched_at=T0))
    await other.whole([fact("a")], FetchState("e", fetched_at=T0))
    await pg_pool.execute("delete from collected_data where source = 'alpha' and external_key = 'zzz'")
    await pg_pool.execute("delete from collected_data where source = 'beta'")
    assert not await _void(pg_pool)


async def test_facts_deleted_while_the_job_ran_keep_the_state_void_after_it(pg_pool: Pool) -> None:
    """The deleted rows may be those of the job's own first batches."""
    run = await Run(pg_pool).start()
    await run.whole([fact("a")], FetchState("e", fetched_at=T0))
    await run.start()
    await run.put(Batch([fact("a"), fact("b")]))
    await pg_pool.execute("delete from collected_data")
    await run.put(Batch([fact("c")], complete=True, sweep_keys=frozenset("abc"), state=FetchState("f", fetched_at=T0)))
    assert await run.keys() == ["c"]
    assert await _void(pg_pool)


async def test_features_have_the_agreed_shape_newest_first(pg_pool: Pool) -> None:
    """S66."""
    run = await Run(pg_pool).start()
    facts = [
        fact("old", observed_at=T0 - timedelta(days=1)),
        Fact('q"\\ü', "earthquake", 'M 5 "near" \\ 東京\n', {"mag": None, "ids": ["x"]}, 1.25, -179.5, T0),
        fact("timeless"),
    ]
    await run.put(Batch(facts))
    features, total = await run.facts.features(["alpha", "nobody"], None)
    assert total == 3
    first, second, third = (json.loads(feature) for feature in features)
    assert first == {
        "id": 'alpha:q"\\ü',
        "source": "alpha",
        "kind": "earthquake",
        "title": 'M 5 "near" \\ 東京\n',
        "lat": 1.25,
        "lon": -179.5,
        "observed_at": "2026-05-04T03:02:01.123456Z",
        "data": {"mag": None, "ids": ["x"]},
    }
    assert (second["id"], third["id"]) == ("alpha:old", "alpha:timeless")
    assert third["lat"] is third["lon"] is third["observed_at"] is None
    limited, total = await run.facts.features(["alpha"], 1)
    assert [json.loads(feature)["id"] for feature in limited] == [first["id"]] and total == 3
    assert await run.facts.features(["nobody"], None) == ([], 0)


async def test_a_chunk_clears_only_its_source_and_zero_means_done(pg_pool: Pool) -> None:
    """S41, S77."""
    run = await Run(pg_pool).start()
    other = await Run(pg_pool, "beta").start()
    for n in range(25):
        await run.put(Batch([fact(f"a{n}")]))
        await other.put(Batch([fact(f"b{n}")]))
    await run.queue.submit(wish(TaskType.CLEAR_DATA, "gamma"))
    lease = (await run.queue.claim("w1", ["clear_data"], 1))[0]
    gone = []
    while not gone or gone[-1]:
        async with run.queue.batch(lease) as tx:
            gone.append(await run.facts.clear_chunk(tx, "collected_data", "alpha", 10))
    assert gone == [10, 10, 5, 0]
    assert len(await other.keys()) == 25
