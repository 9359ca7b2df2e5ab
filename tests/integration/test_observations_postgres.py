"""The observation store on PostgreSQL: several processes append, a server goes away, and groups change nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from cable import Cable
from fix_observations import START, Observations, patch, postgres_observations
from planetwire.cities import CITIES as REGISTRY
from planetwire.database.postgres import Pool
from planetwire.errors import LogWriteFailed
from planetwire.facts.observations.observations_postgres import HEADLINE, Q
from planetwire.model import Appended, ObservationPatch
from planetwire.runtime.clock import ManualClock
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

CITIES = ("seoul", "taipei", "london")
TOPICS = [f"city:{city}" for city in CITIES]


@pytest_asyncio.fixture
async def three(pg_dsn: str) -> AsyncIterator[list[Observations]]:
    """Three stores on one database, each with a pool of its own."""
    clock = ManualClock(START)
    async with (
        postgres_observations(pg_dsn, clock) as first,
        postgres_observations(pg_dsn, clock) as second,
        postgres_observations(pg_dsn, clock) as third,
    ):
        yield [first, second, third]


async def test_revisions_of_three_processes_are_one_row_in_commit_order(three: list[Observations]) -> None:
    """S169, Q12: no revision twice, none skipped, and each city's chain is whole."""
    seen: list[int] = []

    async def follow() -> None:
        while len(seen) < 300:
            page = await three[0].log.page(TOPICS, seen[-1] if seen else 0, 500)
            seen.extend(event.revision for event in page)

    async def send(store: Observations, number: int) -> list[int]:
        made = [await store.put(CITIES[n % 3], number + n / 100, obs_time=None) for n in range(100)]
        return [appended.revision for appended in made]

    following = asyncio.create_task(follow())
    revisions = await asyncio.gather(*(send(store, 10 * number) for number, store in enumerate(three)))
    await following
    assert sorted(number for own in revisions for number in own) == list(range(1, 301))
    assert seen == list(range(1, 301)), "who follows by the last revision misses none"
    last: dict[str, int] = {}
    for event in await three[1].log.page(TOPICS, 0, 500):
        assert event.prev_revision == last.get(event.topic, 0)
        last[event.topic] = event.revision
    for store, own in zip(three, revisions, strict=True):
        assert [event.revision for event in store.heard] == own, "a store announces its own"


async def test_the_same_reading_sent_to_two_processes_at_once_is_one_event(three: list[Observations]) -> None:
    """F21: a sender that tries again may meet another process."""
    both = await asyncio.gather(*(store.put("seoul", 20.0) for store in three))
    assert {appended.revision for appended in both} == {1}
    assert sorted(appended.duplicate for appended in both) == [False, True, True]


async def test_a_server_that_goes_away_refuses_the_write_and_takes_the_next(
    pg_cluster: EmbeddedPostgres, pg_dsn: str
) -> None:
    """S190: 500 and no broadcast; when it is back the store goes on by itself."""
    with Cable(f"unix:{pg_cluster.socket_dir}/.s.PGSQL.5432") as cable:
        dsn = f"postgresql://planetwire@127.0.0.1:{cable.port}{urlsplit(pg_dsn).path}"
        async with postgres_observations(dsn, ManualClock(START)) as observations:
            await observations.put("seoul", 20.0)
            cable.unplug()
            with pytest.raises(LogWriteFailed) as caught:
                await observations.put("seoul", 21.0)
            assert (caught.value.status, caught.value.code) == (500, "log_write_failed")
            assert [event.revision for event in observations.heard] == [1]
            cable.plug_in()
            assert (await observations.put("seoul", 22.0)).revision == 2


async def test_one_bad_unit_of_a_group_costs_the_others_nothing(pg_observations: Observations, pg_pool: Pool) -> None:
    """Each call is all or nothing for itself."""
    await pg_pool.execute("alter table observations add constraint cold check (temp_c < 50)")
    temps = zip(CITIES, [20.0, 55.0, 21.0], strict=True)
    done = await asyncio.gather(*(pg_observations.put(city, temp) for city, temp in temps), return_exceptions=True)
    assert isinstance(done[1], LogWriteFailed)
    assert [appended.revision for appended in done if isinstance(appended, Appended)] == [1, 2]
    assert [event.revision for event in pg_observations.heard] == [1, 2]


async def test_highs_of_all_cities_are_read_from_the_index_alone(pg_observations: Observations, pg_pool: Pool) -> None:
    """S182: a day of minutes of fifty cities is not looked up in the table, nor read once for each city."""
    await pg_pool.execute(
        """insert into observations (city, series_key, source, obs_time_ms, temp_c, revision)
        select ($1::text[])[1 + n % $2], 'metar', 'metar', n / $2 * 60000, 20, n from generate_series(1, 100000) n""",
        [city.key for city in REGISTRY],
        len(REGISTRY),
    )
    await pg_pool.execute("vacuum (analyze) observations")
    async with pg_pool.acquire() as connection:
        await connection.execute("set plan_cache_mode = force_generic_plan")
        values = ([city.key for city in REGISTRY], [60_000_000] * len(REGISTRY), HEADLINE)
        plan = "\n".join(row[0] for row in await connection.fetch(f"explain {Q.highs}", *values))
    assert "Index Only Scan using observations_pkey" in plan


async def test_a_database_made_by_an_older_version_gets_its_tables_at_the_start(pg_dsn: str, pg_pool: Pool) -> None:
    """As a file does: one setting moves the half to PostgreSQL (Q14)."""
    tables = await pg_pool.fetchval(
        "select string_agg(relname, ', ') from pg_class where relkind = 'r' and relname like 'observation%'"
    )
    await pg_pool.execute(f"drop table {tables}; delete from planetwire_migrations where name like '%\\_observation%'")
    async with postgres_observations(pg_dsn, ManualClock(START)) as observations:
        assert (await observations.put("seoul", 20.0)).revision == 1


def some_patches(dice: random.Random, clock: ManualClock) -> list[list[ObservationPatch]]:
    """Calls of a few patches each: repeated, late, untimed, corrected, with runways."""
    return [
        [
            patch(
                clock,
                dice.choice(CITIES),
                dice.choice([20.0, 21.5, 22.0]),
                source=dice.choice(["metar", "amos"]),
                obs_time=dice.choice([None, f"2026-05-26T09:{dice.randint(10, 20)}:00Z"]),
                runway_points=dice.choice([None, [{"runway": "15R/33L", "temp": 22.0}]]),
                max_so_far=dice.choice([None, 23.0]),
            )
            for _ in range(dice.randint(1, 4))
        ]
        for _ in range(80)
    ]


@pytest.mark.parametrize("seed", range(4))
async def test_grouped_appends_end_where_one_after_the_other_ends(
    seed: int, sqlite_observations: Observations, pg_observations: Observations
) -> None:
    """S198, F21, F22: the file takes patch after patch, the database all at once; what is stored is the same."""
    calls = some_patches(random.Random(seed), pg_observations.clock)
    singly = [await sqlite_observations.store.append(call) for call in calls]
    grouped = await asyncio.gather(*(pg_observations.store.append(call) for call in calls))
    for one, other in zip(singly, grouped, strict=True):
        assert [(a.revision, a.duplicate) for a in one] == [(a.revision, a.duplicate) for a in other]
    for city in CITIES:
        assert await pg_observations.store.latest([city]) == await sqlite_observations.store.latest([city])
        since = START.replace(hour=0)
        mine, theirs = [
            sorted(await each.store.history(city, since)) for each in (pg_observations, sqlite_observations)
        ]
        assert mine == theirs
        highs = [await each.store.highs({city: since}) for each in (pg_observations, sqlite_observations)]
        assert highs[0] == highs[1]
    bodies = [await each.log.page(TOPICS, 0, 500) for each in (pg_observations, sqlite_observations)]
    assert [event.body.replace(pg_observations.log.epoch.encode(), b"") for event in bodies[0]] == [
        event.body.replace(sqlite_observations.log.epoch.encode(), b"") for event in bodies[1]
    ]
