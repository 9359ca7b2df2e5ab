"""What an operator sets per source, and when that makes it run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planetwire.collect.feeds import source_defaults
from planetwire.database.postgres import Pool
from planetwire.errors import InputError, NotFound
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.model import SourceDefaults
from planetwire.settings import Settings
from planetwire.wiring.commands import source_records

KNOWN = [
    SourceDefaults("alpha", 600, 60),
    SourceDefaults("beta", 7200, 7200),
    SourceDefaults("gamma", 60, 0, enabled=False),
]


@pytest.fixture
async def store(pg_pool: Pool) -> PostgresSourceStore:
    made = PostgresSourceStore(pg_pool, KNOWN)
    await made.ensure()
    await made.ensure()
    return made


async def row_of(pool: Pool, source: str) -> Mapping[str, Any]:
    return await pool.fetchrow("select *, clock_timestamp() as now from datasources where source = $1", source)


async def test_sources_are_listed_with_what_is_effective_before_any_run(store: PostgresSourceStore) -> None:
    records = await store.list()
    assert [record["source"] for record in records] == ["alpha", "beta", "gamma"]
    assert [(r["enabled"], r["interval_s"], r["floor_s"]) for r in records] == [
        (True, 600, 60),
        (True, 7200, 7200),
        (False, 60, 0),
    ]
    assert all(record["last_run_at"] is None and record["rejects"] == 0 for record in records)
    calendar = [(r["cron"], r["time_zone"], r["misfire"], r["upcoming"]) for r in records]
    assert calendar == [(None, "UTC", "once", [])] * 3


async def test_what_is_left_out_stays_and_null_goes_back_to_the_default(store: PostgresSourceStore) -> None:
    whole = {"enabled": True, "interval_s": 90, "cron": "5 4 * * *", "time_zone": "Asia/Tokyo", "misfire": "skip"}
    record = await store.change("gamma", whole)
    assert {key: record[key] for key in whole} == whole
    record = await store.change("gamma", {"misfire": "once"})
    assert {key: record[key] for key in whole} == {**whole, "misfire": "once"}
    record = await store.change("gamma", {})
    assert {key: record[key] for key in whole} == {**whole, "misfire": "once"}
    record = await store.change("gamma", dict.fromkeys(whole))
    assert {key: record[key] for key in whole} == {
        "enabled": False, "interval_s": 60, "cron": None, "time_zone": "UTC", "misfire": "once",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "wish", "code"),
    [
        ("beta", {"interval_s": 7199}, "below_floor"),
        ("alpha", {"interval_s": 1}, "below_floor"),
        ("gamma", {"interval_s": 0.5}, "bad_interval"),
        ("gamma", {"interval_s": 1e9}, "bad_interval"),
        ("beta", {"cron": "0 * * * *"}, "below_floor"),
        ("beta", {"cron": "0 23,0 * * *"}, "below_floor"),
        ("gamma", {"cron": "0 0 30 2 *"}, "bad_cron"),
        ("gamma", {"cron": ""}, "bad_cron"),
        ("gamma", {"cron": "0 0 * * * *"}, "bad_cron"),
        ("gamma", {"time_zone": "Mars/Base"}, "bad_time_zone"),
        ("gamma", {"time_zone": "Mars/Base", "cron": "0 0 * * *"}, "bad_time_zone"),
    ],
)
async def test_what_the_provider_or_the_calendar_does_not_allow_is_refused_whole(
    source: str, wish: dict[str, Any], code: str, store: PostgresSourceStore
) -> None:
    before = await store.list()
    with pytest.raises(InputError) as refused:
        await store.change(source, {"enabled": True, **wish})
    assert refused.value.code == code
    assert await store.list() == before


async def test_an_unknown_source_is_not_found(store: PostgresSourceStore) -> None:
    with pytest.raises(NotFound):
        await store.change("delta", {"enabled": True})


async def test_a_shorter_interval_counts_from_the_last_run(store: PostgresSourceStore, pg_pool: Pool) -> None:
    await pg_pool.execute(
        """update datasources set last_run_at = clock_timestamp() - interval '30 s',
            next_run_at = clock_timestamp() + interval '600 s'"""
    )
    await store.change("alpha", {"interval_s": 90})
    row = await row_of(pg_pool, "alpha")
    assert row["next_run_at"] == row["last_run_at"] + timedelta(seconds=90)
    await store.change("alpha", {"interval_s": 900})
    assert (await row_of(pg_pool, "alpha"))["next_run_at"] == row["next_run_at"]
    await store.change("alpha", {"misfire": "skip", "enabled": True})
    assert (await row_of(pg_pool, "alpha"))["next_run_at"] == row["next_run_at"]


async def test_a_calendar_is_effective_at_once_and_shows_its_next_three_ticks(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    await pg_pool.execute("update datasources set next_run_at = clock_timestamp() - interval '1 day'")
    record = await store.change("beta", {"cron": "30 4 * * *", "time_zone": "Asia/Kathmandu"})
    ticks = [datetime.fromisoformat(text) for text in record["upcoming"]]
    row = await row_of(pg_pool, "beta")
    assert [tick.strftime("%H:%M") for tick in ticks] == ["22:45"] * 3
    assert row["tick_at"] == ticks[0] and row["now"] < ticks[0] < row["now"] + timedelta(days=1, minutes=1)
    assert ticks[0] <= row["next_run_at"] <= ticks[0] + timedelta(seconds=30)
    await store.change("beta", {"time_zone": None})
    moved = await row_of(pg_pool, "beta")
    assert moved["tick_at"].strftime("%H:%M") == "04:30"
    record = await store.change("beta", {"cron": None})
    row = await row_of(pg_pool, "beta")
    assert record["upcoming"] == [] and row["tick_at"] is None
    assert timedelta(0) < row["now"] + timedelta(seconds=7200) - row["next_run_at"] < timedelta(seconds=60)


async def test_switching_a_calendar_source_on_owes_nothing_for_the_time_it_was_off(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    record = await store.change("alpha", {"cron": "0 0 * * *", "enabled": False})
    assert record["upcoming"] == []
    await pg_pool.execute("update datasources set next_run_at = clock_timestamp() - interval '9 days'")
    await store.change("alpha", {"enabled": True})
    row = await row_of(pg_pool, "alpha")
    assert row["next_run_at"] > row["now"]


async def test_the_next_run_shown_is_never_before_the_floor_has_passed(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    await pg_pool.execute(
        "update datasources set answered_at = clock_timestamp(), next_run_at = clock_timestamp() - interval '1 s'"
    )
    row = await row_of(pg_pool, "beta")
    shown = (await store.list())[1]
    assert datetime.fromisoformat(shown["next_run_at"]) == row["answered_at"] + timedelta(seconds=7200)


async def test_a_calendar_written_past_the_check_does_not_break_the_list(
    store: PostgresSourceStore, pg_pool: Pool
) -> None:
    await pg_pool.execute("update datasources set cron = 'whenever' where source = 'alpha'")
    await pg_pool.execute("update datasources set cron = '0 0 * * *', time_zone = 'Mars/Base' where source = 'beta'")
    assert [(record["cron"], record["upcoming"]) for record in await store.list()][:2] == [
        ("whenever", []),
        ("0 0 * * *", []),
    ]


async def test_a_run_is_reported_and_a_good_one_clears_the_error(store: PostgresSourceStore) -> None:
    await store.report("alpha", rejects=3, error=("bad_body", "HTML"))
    await store.report("alpha", rejects=2, error=("bad_body", "HTML"))
    failed = (await store.list())[0]
    assert (failed["rejects"], failed["rejects_last_run"]) == (5, 2)
    assert (failed["last_error_code"], failed["last_error"]) == ("bad_body", "HTML")
    await store.report("alpha", rejects=0, error=None)
    good = (await store.list())[0]
    assert (good["rejects"], good["rejects_last_run"], good["last_error_code"], good["last_error"]) == (
        5,
        0,
        None,
        None,
    )


async def test_a_shell_lists_the_sources_of_both_halves(pg_dsn: str, pg_pool: Pool, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    await PostgresSourceStore(pg_pool, source_defaults(settings)).ensure()
    records = await source_records(settings, pg_dsn)
    assert [record["source"] for record in records] == ["awc_metar", "celestrak_gp", "runway_obs", "usgs_quakes"]
    alone = await source_records(settings.model_copy(update={"halves": "terminal"}), None)
    assert [record["source"] for record in alone] == ["awc_metar", "runway_obs"]
