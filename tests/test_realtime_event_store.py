"""The replayable log of patch events: revisions, replay by city, retention, and what a cursor is worth."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import orjson
import pytest

from fix_observations import Observations, patch
from planetwire.errors import BackendError
from planetwire.model import ResyncReason

COLUMNS = [
    ("revision", "INTEGER", 0, 1),
    ("schema_type", "TEXT", 1, 0),
    ("schema_version", "INTEGER", 1, 0),
    ("city", "TEXT", 1, 0),
    ("source", "TEXT", 1, 0),
    ("obs_time", "TEXT", 0, 0),
    ("payload_json", "TEXT", 1, 0),
    ("created_at", "TEXT", 1, 0),
]
WINDOW = timedelta(hours=6)


# --- the table


async def test_the_table_has_the_named_columns_and_indexes(sqlite_observations: Observations) -> None:
    """S114–S124, Q39."""
    found = await sqlite_observations.rows(
        'select name, upper(type), "notnull", pk from pragma_table_info("observation_patch_events")'
    )
    assert found[:8] == COLUMNS
    assert [name for name, *_ in found[8:]] == ["prev_revision"]
    sql = dict(await sqlite_observations.rows("select name, lower(sql) from sqlite_master where sql is not null"))
    assert "autoincrement" in str(sql["observation_patch_events"])
    assert str(sql["idx_observation_patch_events_city_revision"]).endswith("(city, revision)")
    assert str(sql["idx_observation_patch_events_created_at"]).endswith("(created_at)")


async def test_the_database_has_the_same_columns_and_indexes(pg_observations: Observations) -> None:
    """S114–S124, Q39: what reads the one by name reads the other."""
    found = await pg_observations.rows(
        "select column_name::text, data_type::text, is_nullable::text from information_schema.columns"
        " where table_name = 'observation_patch_events' order by ordinal_position"
    )
    assert [name for name, *_ in found] == [*(name for name, *_ in COLUMNS), "prev_revision"]
    assert [name for name, _, nullable in found if nullable == "YES"] == ["obs_time"]
    indexes = dict(
        await pg_observations.rows(
            "select indexname::text, indexdef from pg_indexes where tablename = 'observation_patch_events'"
        )
    )
    assert indexes["idx_observation_patch_events_city_revision"].endswith("(city, revision)")
    assert indexes["idx_observation_patch_events_created_at"].endswith("(created_at)")


async def test_the_file_is_in_wal_mode_and_flushes_every_commit(sqlite_observations: Observations) -> None:
    """S210."""
    assert await sqlite_observations.rows("pragma journal_mode") == [("wal",)]


# --- append


async def test_append_gives_rising_revisions(observations: Observations) -> None:
    """S115, S132, S160, S198, S226."""
    appended = [await observations.put(city, 20.0) for city in ("taipei", "seoul", "london")]
    assert [a.revision for a in appended] == [1, 2, 3]
    assert [a.duplicate for a in appended] == [False] * 3
    assert await observations.log.head() == 3


async def test_a_stored_event_is_the_json_of_the_wire(observations: Observations) -> None:
    """S105, S131–S143, S148, Q1, Q39."""
    await observations.put("shanghai", 19.0)
    await observations.put("taipei", 20.0)
    observations.clock.advance(60)
    event = (await observations.put("shanghai", 21.0, max_so_far=23.5, station_code="zspd")).event
    assert event is not None
    assert (event.topic, event.revision, event.prev_revision) == ("city:shanghai", 3, 1)
    body = orjson.loads(event.body)
    assert {key: body[key] for key in body if key not in ("payload", "ts")} == {
        "type": "city_observation_patch.v1",
        "schema_type": "city_observation_patch",
        "schema_version": 1,
        "revision": 3,
        "prev_revision": 1,
        "epoch": observations.log.epoch,
        "city": "shanghai",
        "source": "metar",
        "obs_time": "2026-05-26T10:01:00Z",
        "observed_at_utc": "2026-05-26T10:01:00Z",
        "observed_at_local": "2026-05-26T18:01:00+08:00",
        "city_local_date": "2026-05-26",
        "city_timezone": "Asia/Shanghai",
        "city_utc_offset_seconds": 28800,
        "source_cadence_sec": 1800,
        "received_at_utc": "2026-05-26T10:01:00Z",
        "latency_sec": 0.0,
    }
    assert body["ts"] == int(observations.clock.now().timestamp() * 1000)
    assert body["payload"]["temp"] == 21.0
    assert body["payload"]["max_so_far"] == 23.5
    assert body["payload"]["station_code"] == "ZSPD"
    assert body["payload"]["is_latest"] is True
    stored = await observations.rows(
        "select payload_json, prev_revision, created_at from observation_patch_events where revision = 3"
    )
    assert stored == [(event.body.decode(), 1, "2026-05-26T10:01:00.000Z")]
    assert (await observations.log.page(["city:shanghai"], 1, 10))[0] == event


async def test_events_are_heard_in_revision_order_whoever_appended(observations: Observations) -> None:
    """S166, S167: log first, then the bus; concurrent requests do not overtake each other."""
    cities = ["taipei", "seoul", "london", "paris", "tokyo"]

    async def one(number: int) -> int:
        appended = await observations.put(cities[number % 5], 20 + number / 10, obs_time=None)
        assert appended.revision in [event.revision for event in observations.heard]
        return appended.revision

    revisions = await asyncio.gather(*(one(number) for number in range(100)))
    assert [event.revision for event in observations.heard] == list(range(1, 101))
    assert sorted(revisions) == list(range(1, 101))
    last: dict[str, int] = {}
    for event in observations.heard:
        assert event.prev_revision == last.get(event.topic, 0)
        last[event.topic] = event.revision


async def test_the_same_reading_again_is_a_duplicate(observations: Observations) -> None:
    """F21 of the field's faults: a sender that retries is told the old revision, and nothing is sent again."""
    first = await observations.put("seoul", 20.0)
    other = await observations.put("seoul", 20.5)
    observations.clock.advance(3600)
    again = await observations.put("seoul", 20.0, obs_time="2026-05-26T10:00:00Z")
    assert (first.revision, other.revision) == (1, 2)
    assert (again.revision, again.duplicate, again.event) == (1, True, None)
    assert len(observations.heard) == 2
    assert await observations.log.head() == 2


async def test_duplicates_within_one_call_are_known(observations: Observations) -> None:
    """Two equal patches of one array are one event."""
    twice = [patch(observations.clock, "seoul", 20.0)] * 2
    assert [(a.revision, a.duplicate) for a in await observations.store.append(twice)] == [(1, False), (1, True)]


async def test_without_a_time_only_a_prompt_repetition_is_a_duplicate(observations: Observations) -> None:
    """A steady reading without a time still makes a curve; a value that comes back is news."""

    async def put(temp: float) -> tuple[int, bool]:
        appended = await observations.put("seoul", temp, obs_time=None)
        return appended.revision, appended.duplicate

    assert await put(20.0) == (1, False)
    assert await put(20.0) == (1, True)
    assert await put(21.0) == (2, False)
    assert await put(20.0) == (3, False)
    observations.clock.advance(61)
    assert await put(20.0) == (4, False)


async def test_a_late_reading_joins_the_curve_but_is_not_the_latest(observations: Observations) -> None:
    """F22: an older observation that arrives late does not become the current one."""
    await observations.put("seoul", 20.0)
    late = await observations.put("seoul", 25.0, obs_time="2026-05-26T09:00:00Z")
    assert late.event is not None
    assert orjson.loads(late.event.body)["payload"]["is_latest"] is False
    latest = (await observations.store.latest(["seoul"]))["seoul"]
    assert [reading["temp"] for reading in latest] == [20.0]
    history = await observations.store.history("seoul", observations.clock.now() - timedelta(hours=2))
    assert [temp for *_, temp in history] == [25.0, 20.0]


async def test_a_correction_replaces_the_value_in_the_curve(observations: Observations) -> None:
    """S127: one value a series, source and time; both events are in the log."""
    await observations.put("seoul", 20.0)
    await observations.put("seoul", 20.4)
    history = await observations.store.history("seoul", observations.clock.now())
    assert [temp for *_, temp in history] == [20.4]
    assert [event.revision for event in await observations.log.page(["city:seoul"], 0, 10)] == [1, 2]


async def test_sources_and_runways_have_their_own_curves(observations: Observations) -> None:
    """F23, S144."""
    runways = [{"runway": "15R/33L", "temp": 22.0}, {"runway": "16/34", "temp": 23.0}]
    await observations.put("seoul", 20.0)
    await observations.put("seoul", 21.0, source="amos", runway_points=runways)
    history = await observations.store.history("seoul", observations.clock.now())
    assert sorted((series, source, temp) for series, source, _, temp in history) == [
        ("metar", "metar", 20.0),
        ("runway", "amos", 21.0),
        ("runway:15R/33L", "amos", 22.0),
        ("runway:16/34", "amos", 23.0),
    ]


# --- replay


async def test_replay_gives_only_the_asked_cities_after_the_cursor(observations: Observations) -> None:
    """S154, S161, S199, S226."""
    for temp, city in enumerate(["taipei", "seoul", "taipei", "london", "taipei"]):
        await observations.put(city, float(temp), obs_time=None)
    page = await observations.log.page(["city:taipei", "city:london"], 1, 10)
    assert [(event.topic, event.revision) for event in page] == [
        ("city:taipei", 3), ("city:london", 4), ("city:taipei", 5),
    ]  # fmt: skip
    assert [event.prev_revision for event in page] == [1, 0, 3]
    assert [event.revision for event in await observations.log.page(["city:taipei"], 0, 2)] == [1, 3]
    assert await observations.log.heads(["city:taipei", "city:seoul", "city:oslo"]) == {
        "city:taipei": 5, "city:seoul": 2, "city:oslo": 0,
    }  # fmt: skip


async def test_revisions_of_other_cities_are_no_gap_and_do_not_count(observations: Observations) -> None:
    """F1, F5, Q1, Q2: only events of the asked cities count towards the limit."""
    await observations.put("seoul", 20.0)
    for number in range(30):
        await observations.put("taipei", float(number), obs_time=None)
    await observations.put("seoul", 21.0)
    assert await observations.log.check(["city:seoul"], 1, 1) is None
    assert [e.prev_revision for e in await observations.log.page(["city:seoul"], 1, 5)] == [1]


async def test_more_events_than_the_limit_need_a_resync(observations: Observations) -> None:
    """S156, S202, F12."""
    for number in range(4):
        await observations.put("seoul", float(number), obs_time=None)
    assert await observations.log.check(["city:seoul"], 1, 3) is None
    assert await observations.log.check(["city:seoul"], 1, 2) is ResyncReason.REPLAY_WINDOW_EXCEEDED
    assert await observations.log.check(["city:seoul"], 4, 1) is None


async def test_a_cursor_ahead_of_the_log_is_told_so(observations: Observations) -> None:
    """F6, Q4."""
    await observations.put("seoul", 20.0)
    assert await observations.log.check(["city:seoul"], 2, 100) is ResyncReason.REVISION_AHEAD
    assert await observations.log.check(["city:seoul"], 1, 100) is None


# --- retention


async def test_cleanup_deletes_the_old_and_keeps_the_rest(observations: Observations) -> None:
    """S125, S126, S160, S200, S227, S226: at the window's edge an event stays, past it it goes."""
    await observations.put("taipei", 20.0)
    observations.clock.advance(60)
    await observations.put("taipei", 21.0)
    observations.clock.advance(WINDOW.total_seconds() - 60)
    assert await observations.store.prune() == 0
    assert await observations.log.check(["city:taipei"], 0, 100) is None
    observations.clock.advance(1)
    assert await observations.store.prune() == 1
    assert [event.revision for event in await observations.log.page(["city:taipei"], 1, 100)] == [2]
    assert await observations.log.check(["city:taipei"], 0, 100) is ResyncReason.REPLAY_WINDOW_EXCEEDED
    assert await observations.log.check(["city:taipei"], 1, 100) is None


async def test_a_city_whose_events_all_expired_needs_a_resync_only_if_it_missed_some(
    observations: Observations,
) -> None:
    """F2, F3, Q2, S129: the mark is per city, not the least revision that is left."""
    await observations.put("seoul", 20.0)
    await observations.put("seoul", 21.0)
    observations.clock.advance(WINDOW.total_seconds() + 1)
    await observations.put("taipei", 22.0)
    await observations.store.prune()
    check = observations.log.check
    assert await check(["city:seoul"], 1, 100) is ResyncReason.REPLAY_WINDOW_EXCEEDED
    assert await check(["city:seoul"], 2, 100) is None
    assert await check(["city:taipei"], 0, 100) is None
    assert await check(["city:taipei", "city:seoul"], 0, 100) is ResyncReason.REPLAY_WINDOW_EXCEEDED
    assert await observations.rows("select * from observation_patch_pruned") == [("seoul", 2)]


async def test_a_page_never_hides_what_was_pruned_meanwhile(observations: Observations) -> None:
    """Between the check and the page events may go; that is an error, not an empty page."""
    await observations.put("seoul", 20.0)
    assert await observations.log.check(["city:seoul"], 0, 100) is None
    observations.clock.advance(WINDOW.total_seconds() + 1)
    await observations.store.prune()
    with pytest.raises(BackendError) as caught:
        await observations.log.page(["city:seoul"], 0, 100)
    assert caught.value.code == "replay_window_exceeded"


async def test_the_head_never_falls_and_revisions_are_never_reused(observations: Observations) -> None:
    """F7: after everything expired, after a restart, and in the city's own chain."""
    for number in range(3):
        await observations.put("seoul", float(number), obs_time=None)
    observations.clock.advance(WINDOW.total_seconds() + 1)
    assert await observations.store.prune() == 3
    assert await observations.log.head() == 3
    assert await observations.log.heads(["city:seoul"]) == {"city:seoul": 3}
    await observations.store.aclose()
    again = await observations.reopen()
    try:
        assert await again.log.head() == 3
        assert again.log.epoch == observations.log.epoch
        event = (await again.put("seoul", 30.0)).event
        assert event is not None
        assert (event.revision, event.prev_revision) == (4, 3)
    finally:
        await again.store.aclose()
        await again.log.aclose()


async def test_writes_trigger_the_cleanup_at_low_frequency(observations: Observations) -> None:
    """S130, Q7: a write after a minute does it."""
    await observations.put("seoul", 20.0)
    observations.clock.advance(59)
    await observations.put("seoul", 21.0)
    observations.clock.advance(WINDOW.total_seconds() + 2)  # both are past the window, and 60 s have gone
    await observations.put("tokyo", 1.0)
    await observations.store.aclose()  # waits for the cleanup
    assert await observations.rows("select city from observation_patch_events") == [("tokyo",)]


async def test_within_a_minute_a_write_cleans_nothing_up(observations: Observations) -> None:
    """S130, F18."""
    await observations.put("seoul", 20.0)
    observations.clock._now += WINDOW * 2  # the calendar moves on, the minute does not
    await observations.put("tokyo", 1.0)
    await observations.store.aclose()  # would wait for a cleanup
    assert await observations.rows("select count(*) from observation_patch_events") == [(2,)]


async def test_five_hundred_writes_trigger_the_cleanup_at_once(observations: Observations) -> None:
    """S130, Q7: also when no minute has passed, and not before."""
    await observations.put("seoul", 20.0)
    observations.clock._now += WINDOW * 2  # the calendar moves on, the minute does not
    many = [patch(observations.clock, "taipei", n / 10, obs_time=None) for n in range(499)]
    await observations.store.append(many[:498])
    await observations.log.head()
    assert await observations.rows("select count(*) from observation_patch_events where city = 'seoul'") == [(1,)]
    await observations.store.append(many[498:])
    await observations.store.aclose()
    assert await observations.rows("select count(*) from observation_patch_events where city = 'seoul'") == [(0,)]


async def test_history_is_kept_for_fourteen_days_and_the_log_for_six_hours(observations: Observations) -> None:
    """S127, S128, S214."""
    await observations.put("seoul", 20.0)
    start = observations.clock.now()
    observations.clock.advance(timedelta(days=14).total_seconds())
    assert await observations.store.prune() == 1
    assert len(await observations.store.history("seoul", start)) == 1
    observations.clock.advance(1)
    await observations.store.prune()
    assert len(await observations.store.history("seoul", start)) == 0


async def test_six_hours_of_thirty_cities_stay_small(observations: Observations) -> None:
    """S207–S209: 10,800 events with three runways each, tens of megabytes."""
    runways = [{"runway": f"{n:02}", "temp": 20.0, "tdz_temp": 20.1, "end_temp": 20.2} for n in range(3)]
    one = patch(observations.clock, "seoul", 20.0, source="amos", runway_points=runways, obs_time=None)
    body = (await observations.store.append([one]))[0].event
    assert body is not None
    assert 1_000 <= len(body.body) <= 3_000
    for minute in range(24):
        observations.clock.advance(60)
        many = [
            patch(observations.clock, "seoul", minute + n / 100, source="amos", runway_points=runways, obs_time=None)
            for n in range(450)
        ]
        await observations.store.append(many)
    assert await observations.log.head() == 10_801
    assert await observations.size_bytes() < 60_000_000
