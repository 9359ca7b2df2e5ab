"""A disk budget on real files and tables: what it deletes, in which order, what it never touches, and the way back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from planetwire.database.postgres import Pool
from planetwire.facts.sqlite.observations_sqlite import SqliteObservationStore
from planetwire.facts.sqlite.room_sqlite import free_bytes
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings, load_settings
from planetwire.wiring.budget import STEPS
from planetwire.wiring.keeping import DiskKeeper, DiskStep, disk_steps, folder_bytes

OLD = """
insert into collected_data (source, external_key, kind, title)
    select 'usgs_quakes', n::text, 'earthquake', repeat('x', 200) from generate_series(1, 2000) n;
insert into job_log_lines (task_id, at, event, line)
    select 1, clock_timestamp() - interval '2 hours', 'e', md5(n::text) || repeat('x', 400)
    from generate_series(1, 8000) n;
insert into job_log_lines (task_id, at, event, line) values (1, clock_timestamp(), 'e', 'new');
insert into collection_tasks (task_type, source, status, payload, created_at, started_at, finished_at)
    select 'collect', 'usgs_quakes', 'completed', jsonb_build_object('of', repeat(md5(n::text), 12)),
        clock_timestamp() - interval '3 days', clock_timestamp() - interval '3 days',
        clock_timestamp() - interval '2 days'
    from generate_series(1, 8000) n;
insert into collection_tasks (task_type, source) values ('collect', 'usgs_quakes');
insert into earth_broadcasts (revision, prev_revision, epoch, layer, message, created_at)
    select n, n - 1, 'aaaaaaaaaaaa', 'earthquakes', jsonb_build_object('of', repeat(md5(n::text), 12)),
        clock_timestamp() - interval '2 hours'
    from generate_series(1, 8000) n;
update earth_data_change_events set consumed_at = clock_timestamp() - interval '2 hours';
insert into earth_data_change_events (table_name, operation, source) values ('collected_data', 'UPDATE', 'usgs_quakes');
insert into audit_log (who, role, address, what) select 'admin', 'admin', 'local', 'job.submitted'
    from generate_series(1, 100);
"""
COUNTS = """select jsonb_build_object(
    'facts', (select count(*) from collected_data), 'audit', (select count(*) from audit_log),
    'waiting', (select count(*) from earth_data_change_events where consumed_at is null),
    'queued', (select count(*) from collection_tasks where status = 'queued'),
    'lines', (select count(*) from job_log_lines),
    'done', (select count(*) from collection_tasks where status = 'completed'),
    'events', (select count(*) from earth_broadcasts),
    'changes', (select count(*) from earth_data_change_events where consumed_at is not null))"""
SIZES = """select sum(pg_total_relation_size(c.oid))::bigint from pg_class c
    where relnamespace = 'public'::regnamespace and relkind = 'r'"""


def fill_readings(file: Path, hours: float, n: int) -> None:
    """Events and readings of so long ago, past the writer."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            """insert into observation_patch_events
                (city, source, payload_json, obs_time, created_at, schema_type, schema_version, prev_revision)
            with recursive n (n) as (select 1 union all select n + 1 from n where n < ?)
            select 'taipei', 'test', hex(randomblob(200)), null,
                strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?), 'city_observation_patch', 1, 0 from n""",
            (n, f"-{hours} hours"),
        )


def fill_history(file: Path) -> None:
    """A reading of five days ago, and one of yesterday."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for days in (5, 1):
            connection.execute(
                """insert into observation_history (city, series_key, source, obs_time_ms, temp_c, revision)
                values ('taipei', 'airport', 'test', (unixepoch() - ? * 86400) * 1000, 20, 1)""",
                (days,),
            )
        connection.execute(
            """insert into observation_latest (city, series_key, source, obs_time_ms, temp_c, revision)
            values ('taipei', 'airport', 'test', unixepoch() * 1000, 20, 1)"""
        )


def readings_in(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("select count(*) from observation_history").fetchone()[0])


def events_in(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("select count(*) from observation_patch_events").fetchone()[0])


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PLANETWIRE_DATA_DIR", str(tmp_path))
    return load_settings()[0]


async def test_what_is_kept_gets_less_in_the_stated_order_and_comes_back(
    pg_pool: Pool, tmp_path: Path, settings: Settings
) -> None:
    file = tmp_path / "observations.db"
    store = SqliteObservationStore(file, SystemClock())
    await store.start()
    (tmp_path / "bodies").mkdir()
    (tmp_path / "bodies" / "usgs_quakes.body").write_bytes(b"x" * 2_000_000)
    await pg_pool.execute(OLD)
    fill_readings(file, 2, 8_000)
    fill_history(file)
    sizes: list[tuple[str, int]] = []

    async def measure() -> int:
        return int(await pg_pool.fetchval(SIZES)) + folder_bytes(tmp_path) - free_bytes(file)

    def noting(step: DiskStep) -> DiskStep:
        async def tighten() -> None:
            await step.tighten()
            sizes.append((step.name, await measure()))

        return DiskStep(step.name, tighten, step.ease)

    before = await measure()
    steps = [noting(step) for step in disk_steps(settings, pg_pool, store)]
    kept = DiskKeeper(before // 4, measure, steps, SystemClock())
    await kept.look()
    assert [name for name, _ in sizes] == ["bodies", "job_logs", "jobs", "events", "readings"]
    for (name, size), larger in zip(sizes[:-1], [before, *(size for _, size in sizes)], strict=False):
        assert size < larger - 500_000, f"{name} gave nothing back"
    counts = await pg_pool.fetchval(COUNTS)
    untouched = {"facts": 2_000, "audit": 100, "waiting": 1, "queued": 1}
    assert counts == untouched | {"lines": 1, "done": 0, "events": 0, "changes": 0}
    assert (events_in(file), readings_in(file)) == (0, 1), "the day of a chart stays"
    marks = await pg_pool.fetchval("select pruned_through from earth_layer_heads where layer = 'earthquakes'")
    assert marks in (None, 8_000), "a page with an older cursor is told to load anew"

    kept.state = type(kept.state)(before * 10, 0, kept.state.level)
    for _ in STEPS:
        await kept.look()
    assert kept.state.level == 0
    fill_readings(file, 2, 100)
    await pg_pool.execute(
        "insert into job_log_lines (task_id, at, event, line) values (1, now() - interval '2 hours', 'e', 'x')"
    )
    await kept.look()
    await store.prune()
    assert events_in(file) == 100 and (await pg_pool.fetchval(COUNTS))["lines"] == 2, "kept as usual again"
    await store.aclose()
