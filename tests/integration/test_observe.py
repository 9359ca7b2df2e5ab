"""Observation feeds from the feed server to a sink: what is delivered, once, and what happens when something fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import socket
from typing import Any

import orjson
import pytest
import pytest_asyncio

from planetwire.collect.feedstate_file import FeedStates
from planetwire.collect.http.client import PoliteClient
from planetwire.collect.observe import MAX_REQUESTS_PER_TURN, ObservationFeeds
from planetwire.datasets.registry import observation_feeds
from planetwire.demo.script import Step
from planetwire.demo.server import FeedServer
from planetwire.errors import BackendError
from planetwire.model import Json
from planetwire.runtime.clock import ManualClock
from planetwire.settings import Settings

NOW = datetime(2026, 3, 20, 12, 0, 30, tzinfo=UTC)
PATH = "/api/data/metar"
SOURCE = "awc_metar"


@dataclass
class Sink:
    """Keeps what it is given; fails while told to."""

    patches: list[Json] = field(default_factory=list)
    failing: bool = False
    delivered: asyncio.Event = field(default_factory=asyncio.Event)

    async def deliver(self, patches: Sequence[Json]) -> int:
        if self.failing:
            raise BackendError("the ingest does not answer")
        self.patches += patches
        self.delivered.set()
        return len(patches)


class Bench:
    """Feeds on a clock that tests move together with the server's."""

    def __init__(self, server: FeedServer, folder: Path, client: PoliteClient, clock: ManualClock) -> None:
        self.server, self.folder, self.client, self.clock = server, folder, client, clock
        self.sink = Sink()
        self.feeds = self.restarted()

    def restarted(self, **feed: Any) -> ObservationFeeds:
        settings = Settings(data_dir=self.folder, feeds={SOURCE: {"url": f"{self.server.url}{PATH}", **feed}})
        self.states = FeedStates(self.folder / "feeds", self.clock.now)
        self.feeds = ObservationFeeds(
            observation_feeds(), self.client, self.sink, self.states, self.clock, settings
        )  # fmt: skip
        return self.feeds

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.server.advance(seconds)

    def answer(self, *reports: tuple[str, datetime, float], corrected: bool = False) -> None:
        mark = "COR " if corrected else ""
        rows = [
            {"icaoId": station, "obsTime": int(at.timestamp()), "temp": temp,
             "rawOb": f"METAR {station} {at:%d%H%M}Z {mark}00000KT 10SM {round(temp):02d}/01 A2992"}
            for station, at, temp in reports
        ]  # fmt: skip
        self.server.set_body(PATH, orjson.dumps(rows))

    @property
    def record(self) -> Json:
        return self.states.read(SOURCE)

    def taken(self) -> list[tuple[str, str, float]]:
        got = [(p["payload"]["station_code"], p["obs_time"][11:16], p["payload"]["temp"]) for p in self.sink.patches]
        self.sink.patches.clear()
        return got


@pytest_asyncio.fixture
async def bench(feed_server: FeedServer, tmp_path: Path) -> AsyncIterator[Bench]:
    clock = ManualClock(NOW)
    async with PoliteClient(clock) as client:
        yield Bench(feed_server, tmp_path, client, clock)


async def test_the_first_run_delivers_a_day_of_every_city_in_time_order(bench: Bench) -> None:
    """S183: curves start full."""
    assert await bench.feeds.turn(SOURCE)
    stations = {p["payload"]["station_code"] for p in bench.sink.patches}
    assert stations == set(observation_feeds()[SOURCE].chunks(2)[0])
    one = [p["obs_time"] for p in bench.sink.patches if p["payload"]["station_code"] == "KLGA"]
    assert one == sorted(set(one))
    assert bench.server.counts[PATH].requests <= MAX_REQUESTS_PER_TURN
    assert bench.record["last_error"] is None
    assert bench.record["cursor"]["KLGA"] == one[-1]


async def test_later_runs_deliver_only_what_is_new(bench: Bench) -> None:
    """S183."""
    await bench.feeds.turn(SOURCE)
    first = {orjson.dumps(patch) for patch in bench.sink.patches}
    bench.sink.patches.clear()
    await bench.feeds.turn(SOURCE)
    assert bench.sink.patches == []
    bench.advance(3_600)
    await bench.feeds.turn(SOURCE)
    new = [orjson.dumps(patch) for patch in bench.sink.patches]
    assert len(new) > len(first) / 24
    assert not set(new) & first
    assert len(set(new)) == len(new)


async def test_a_failed_delivery_marks_nothing_and_is_repeated(bench: Bench) -> None:
    """S190."""
    bench.answer(("KLGA", NOW - timedelta(minutes=9), 8.0))
    bench.sink.failing = True
    assert not await bench.feeds.turn(SOURCE)
    assert bench.record["last_error_code"] == "backend_unavailable"
    assert "last_success_at" not in bench.record
    bench.sink.failing = False
    assert await bench.feeds.turn(SOURCE)
    assert bench.taken() == [("KLGA", "11:51", 8.0)]
    assert bench.record["last_error"] is None


async def test_a_corrected_temperature_is_delivered_again(bench: Bench) -> None:
    """Report 25."""
    at = NOW - timedelta(minutes=9)
    bench.answer(("KLGA", at, 8.0))
    await bench.feeds.turn(SOURCE)
    bench.answer(("KLGA", at, 9.0), corrected=True)
    await bench.feeds.turn(SOURCE)
    await bench.feeds.turn(SOURCE)
    assert bench.taken() == [("KLGA", "11:51", 8.0), ("KLGA", "11:51", 9.0)]


async def test_a_late_report_is_delivered(bench: Bench) -> None:
    bench.answer(("KLGA", NOW - timedelta(minutes=9), 8.0))
    await bench.feeds.turn(SOURCE)
    bench.answer(("KLGA", NOW - timedelta(minutes=9), 8.0), ("KLGA", NOW - timedelta(minutes=69), 7.0))
    await bench.feeds.turn(SOURCE)
    assert bench.taken() == [("KLGA", "11:51", 8.0), ("KLGA", "10:51", 7.0)]


async def test_a_report_of_the_future_waits_until_its_time(bench: Bench) -> None:
    """Report 72: it holds no later packet back."""
    ahead = NOW + timedelta(minutes=20)
    bench.answer(("KLGA", ahead, 8.0), ("EGLC", NOW - timedelta(minutes=9), 6.0))
    await bench.feeds.turn(SOURCE)
    assert bench.taken() == [("EGLC", "11:51", 6.0)]
    bench.advance(1_200)
    bench.answer(("KLGA", ahead, 8.0))
    bench.server.script(PATH, [Step(validators=False)])
    await bench.feeds.turn(SOURCE)
    assert bench.taken() == [("KLGA", "12:20", 8.0)]


async def test_a_restart_delivers_no_more_than_a_little_again(bench: Bench) -> None:
    bench.answer(("KLGA", NOW - timedelta(minutes=9), 8.0), ("KLGA", NOW - timedelta(minutes=69), 7.0))
    await bench.feeds.turn(SOURCE)
    bench.taken()
    bench.advance(60)
    bench.restarted()
    await bench.feeds.turn(SOURCE)
    assert bench.taken() == [("KLGA", "11:51", 8.0)]


async def test_an_unchanged_answer_costs_a_304(bench: Bench) -> None:
    bench.answer(("KLGA", NOW - timedelta(minutes=9), 8.0))
    await bench.feeds.turn(SOURCE)
    await bench.feeds.turn(SOURCE)
    await bench.feeds.turn(SOURCE)
    assert bench.server.counts[PATH].not_modified >= 1


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (Step(status=200, body=b"<html>busy</html>", content_type="text/html"), "bad_body"),
        (Step(status=200, body=b"Invalid station", content_type="text/plain"), "bad_body"),
        (Step(status=503, headers={"Retry-After": "300"}), "transient"),
        (Step(status=403, body=b"no"), "auth_refused"),
        (Step(cut_at_byte=30), "truncated"),
    ],
)
async def test_a_failing_provider_is_noted_and_backed_off(bench: Bench, step: Step, code: str) -> None:
    """Report 77."""
    bench.answer(("KLGA", NOW - timedelta(minutes=9), 8.0))
    bench.server.script(PATH, [step])
    assert not await bench.feeds.turn(SOURCE)
    record = bench.record
    assert (record["last_error_code"], record["failures"]) == (code, 1)
    wait = datetime.fromisoformat(record["next_run_at"]) - NOW
    assert wait >= timedelta(seconds=300 if step.status == 503 else 60)
    assert bench.taken() == []
    assert await bench.feeds.turn(SOURCE)
    assert bench.record["failures"] == 0


async def test_an_answer_without_content_is_no_error(bench: Bench) -> None:
    bench.server.script(PATH, [Step(status=204, times=60)])
    assert await bench.feeds.turn(SOURCE)
    assert bench.taken() == []


async def test_a_full_answer_is_asked_for_again_in_halves(bench: Bench) -> None:
    full = [("KLGA", NOW - timedelta(minutes=minute), 8.0) for minute in range(10, 410)]
    bench.answer(*full)
    assert await bench.feeds.turn(SOURCE)
    chunks = observation_feeds()[SOURCE].chunks(24)
    assert len(chunks) < bench.server.counts[PATH].requests <= MAX_REQUESTS_PER_TURN + max(map(len, chunks))
    assert len(bench.taken()) == 400


async def test_the_loop_runs_at_its_interval_and_stops_when_cancelled(bench: Bench) -> None:
    bench.answer(("KLGA", NOW - timedelta(minutes=9), 8.0))
    loop = asyncio.create_task(bench.feeds.run())
    async with asyncio.timeout(60):
        await bench.sink.delivered.wait()
        bench.sink.delivered.clear()
        bench.answer(("KLGA", NOW + timedelta(minutes=1), 9.0))
        while not bench.sink.delivered.is_set():
            bench.clock.advance(5)
            await asyncio.sleep(0.01)
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loop
    assert bench.taken() == [("KLGA", "11:51", 8.0), ("KLGA", "12:01", 9.0)]


async def test_a_switched_off_feed_asks_nothing(bench: Bench) -> None:
    feeds = bench.restarted(enabled=False)
    loop = asyncio.create_task(feeds.run())
    for _ in range(20):
        bench.clock.advance(60)
        await asyncio.sleep(0)
    loop.cancel()
    await asyncio.wait({loop}, timeout=60)
    assert bench.server.counts[PATH].requests == 0


async def test_runs_are_listed_before_and_after_the_first(bench: Bench) -> None:
    bench.feeds.announce()
    assert bench.states.runs([SOURCE])[0] | {"x": 0} == {
        "source": SOURCE, "enabled": True, "interval_s": 60.0, "floor_s": 60.0, "next_run_at": None,
        "last_run_at": None, "last_success_at": None, "last_error_code": None, "last_error": None, "rejects": None,
        "rejects_last_run": None, "rows_last_run": None, "cooldown_until": None, "reject_codes": None, "sample": None,
        "requests_hour": 0, "rows_hour": 0, "x": 0,
    }  # fmt: skip
    await bench.feeds.turn(SOURCE)
    after = bench.states.runs([SOURCE])[0]
    assert after["requests_hour"] == bench.server.counts[PATH].requests > 0
    assert after["rows_hour"] == after["rows_last_run"] > 0
    assert (after["last_success_at"], after["next_run_at"]) == ("2026-03-20T12:00:30Z", "2026-03-20T12:01:30Z")


async def test_what_was_refused_is_listed_with_its_codes_and_the_first_sample(bench: Bench) -> None:
    good = {"icaoId": "KLGA", "obsTime": int(NOW.timestamp()) - 300, "temp": 12.0, "rawOb": "METAR KLGA 201155Z 12/01"}
    bench.server.set_body(PATH, orjson.dumps([good, "no record at all", 7]))
    assert await bench.feeds.turn(SOURCE)
    run = bench.states.runs([SOURCE])[0]
    assert (run["rejects_last_run"], sum(run["reject_codes"].values())) == (run["rejects"], run["rejects"])
    assert run["reject_codes"].keys() == {"no_report"} and "no record at all" in run["sample"]
    assert run["rows_hour"] == run["rows_last_run"] > 0


async def test_an_unreadable_state_file_starts_anew(bench: Bench) -> None:
    bench.feeds.announce()
    (bench.folder / "feeds" / f"{SOURCE}.json").write_bytes(b"{half")
    assert bench.record == {}
    assert await bench.feeds.turn(SOURCE)


async def test_a_provider_that_cannot_be_reached_is_asked_after_1_2_5_and_then_every_15_minutes(
    bench: Bench, tmp_path: Path
) -> None:
    """Its floor counts from its last answer: a connection that failed asked nobody."""
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        shut = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        for pause_s in (60, 120, 300, 900, 900):
            feeds = bench.restarted(url=shut, floor_s=0 if pause_s == 60 else 50)
            assert not await feeds.turn(SOURCE)
            assert bench.record["answered_at"] is None
            assert _wait_s(bench) == pause_s
            bench.advance(pause_s)
    feeds = bench.restarted(floor_s=7200)
    bench.answer(("KLGA", NOW - timedelta(minutes=9), 8.0))
    assert await feeds.turn(SOURCE)
    assert (bench.record["failures"], _wait_s(bench)) == (0, 7200)
    bench.advance(600)
    assert not await bench.restarted(floor_s=7200, url=shut).turn(SOURCE)
    assert _wait_s(bench) == 6600, "the floor goes on from the last answer"


def _wait_s(bench: Bench) -> float:
    return (datetime.fromisoformat(bench.record["next_run_at"]) - bench.clock.now()).total_seconds()


SURROGATE = b"\\ud800"  # an escape that no text in Unicode has


async def test_a_report_with_an_escape_that_is_no_text_is_delivered_and_ends_nothing(bench: Bench) -> None:
    """One such escape in a remark once ended the whole work process, with every job in it."""
    rows = [
        {"icaoId": "KLGA", "obsTime": int((NOW - timedelta(minutes=5)).timestamp()), "temp": 12, "@": "@",
         "rawOb": f"KLGA {NOW - timedelta(minutes=5):%d%H%M}Z 00000KT 10SM 12/01 A2992 RMK @"},
        {"icaoId": "KORD", "obsTime": int((NOW - timedelta(minutes=6)).timestamp()), "rawOb": None, "temp": 3},
    ]  # fmt: skip
    bench.server.set_body(PATH, orjson.dumps(rows).replace(b"@", SURROGATE))
    assert await bench.feeds.turn(SOURCE)
    assert {patch["payload"]["station_code"] for patch in bench.sink.patches} == {"KLGA", "KORD"}


async def test_a_feed_that_raises_what_nobody_thought_of_fails_its_turn_and_is_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any fault of a reader is the feed's alone: the others go on, and so does the process."""
    feed = bench.feeds._feeds[SOURCE]

    def broken(body: bytes, at: datetime) -> Any:
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")

    bench.answer(("KLGA", NOW - timedelta(minutes=5), 12.0))
    with monkeypatch.context() as patched:
        patched.setattr(feed, "parse", broken)
        assert not await bench.feeds.turn(SOURCE)
    assert (bench.record["failures"], bench.record["last_error_code"]) == (1, "internal")
    assert "UnicodeEncodeError" in bench.record["last_error"] and "surrogates" not in bench.record["last_error"]
    assert await bench.feeds.turn(SOURCE)
    assert (bench.record["failures"], len(bench.sink.patches)) == (0, 1)


async def test_a_loop_that_breaks_begins_again_and_leaves_the_others_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0
    again = asyncio.Event()

    async def turn(source: str) -> bool:
        nonlocal turns
        turns += 1
        if turns > 2:
            again.set()
            await asyncio.Event().wait()
        raise OSError("no space left on device")

    monkeypatch.setattr(bench.feeds, "turn", turn)
    running = asyncio.ensure_future(bench.feeds.run())
    while not again.is_set():
        bench.advance(60)
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert turns == 3


async def test_a_record_of_runs_that_somebody_edited_is_read_as_far_as_it_makes_sense(bench: Bench) -> None:
    bench.states.update(SOURCE, {"failures": "many", "rejects": [], "cursor": [1, 2], "last_run_at": 5})
    bench.answer(("KLGA", NOW - timedelta(minutes=5), 12.0))
    assert await bench.restarted().turn(SOURCE)
    assert (bench.record["failures"], bench.record["rejects"]) == (0, 0)


RUNWAYS = "/runways/readings.json"


def reading(runway: str, temp: float | None, minute: int = 1) -> Json:
    return {
        "airport": "ZSPD",
        "runway": runway,
        "time": f"{NOW - timedelta(minutes=minute):%FT%TZ}",
        "tdz_temp_c": temp,
    }


def runway_feeds(bench: Bench, **own: Any) -> ObservationFeeds:
    settings = Settings(data_dir=bench.folder, feeds={"runway_obs": own})
    return ObservationFeeds(observation_feeds(), bench.client, bench.sink, bench.states, bench.clock, settings)


async def test_a_feed_whose_address_nobody_knows_is_listed_and_off_until_one_is_set(bench: Bench) -> None:
    """S183: no public service has the shape of the runway readings."""
    runway_feeds(bench).announce()
    assert bench.states.runs(["runway_obs"])[0]["enabled"] is False
    feeds = runway_feeds(bench)
    loop = asyncio.create_task(feeds._loop("runway_obs"))
    for _ in range(20):
        bench.clock.advance(60)
        await asyncio.sleep(0)
    loop.cancel()
    await asyncio.wait({loop}, timeout=60)
    assert "last_run_at" not in bench.states.read("runway_obs")
    assert bench.server.counts[RUNWAYS].requests == 0
    runway_feeds(bench, url=f"{bench.server.url}{RUNWAYS}").announce()
    assert bench.states.runs(["runway_obs"])[0]["enabled"] is True
    runway_feeds(bench, url=f"{bench.server.url}{RUNWAYS}", enabled=False).announce()
    assert bench.states.runs(["runway_obs"])[0]["enabled"] is False


async def test_a_runway_that_comes_late_is_delivered_with_the_others_of_its_minute_and_nothing_twice(
    bench: Bench,
) -> None:
    """S183: a bad record is counted, and costs nobody else anything."""
    feeds = runway_feeds(bench, url=f"{bench.server.url}{RUNWAYS}")

    async def taken(*readings: object) -> list[tuple[float | None, list[str]]]:
        bench.server.set_body(RUNWAYS, orjson.dumps({"readings": readings}))
        assert await feeds.turn("runway_obs")
        got = [
            (p["payload"].get("temp"), [q["runway"] for q in p["payload"]["runway_points"]]) for p in bench.sink.patches
        ]
        bench.sink.patches.clear()
        return got

    first, bad = reading("16R/34L", 20.0), {"airport": "ZSPD", "runway": "17L/35R", "time": "never", "tdz_temp_c": 1}
    assert await taken(first, bad) == [(None, ["16R/34L"])]
    assert (bench.states.read("runway_obs")["rejects"], bench.states.read("runway_obs")["rejects_last_run"]) == (1, 1)
    both = [first, reading("17L/35R", 21.0)]
    assert await taken(*both) == [(21.0, ["17L/35R", "16R/34L"])]
    assert await taken(*both) == []
    assert await taken(both[1], reading("16R/34L", 20.2)) == [(21.0, ["17L/35R", "16R/34L"])]
    assert await taken(*both, reading("17L/35R", 21.5, minute=0)) == [
        (21.0, ["17L/35R", "16R/34L"]), (21.5, ["17L/35R"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (Step(status=200, body=b"<html>sign in</html>", content_type="text/html"), "bad_body"),
        (Step(status=200, body=b'{"readings": [{"airport": 1}]}'), "bad_body"),
        (Step(status=200, body=b"[" + b" " * (9 * 1024 * 1024) + b"]"), "bad_body"),
        (Step(status=401, body=b"no"), "auth_refused"),
        (Step(status=503, headers={"Retry-After": "300"}), "transient"),
        (Step(cut_at_byte=30), "truncated"),
    ],
)
async def test_a_failing_service_of_runway_readings_is_noted_and_asked_again_later(
    bench: Bench, step: Step, code: str
) -> None:
    """S183."""
    feeds = runway_feeds(bench, url=f"{bench.server.url}{RUNWAYS}")
    bench.server.script(RUNWAYS, [step])
    assert not await feeds.turn("runway_obs")
    record = bench.states.read("runway_obs")
    assert (record["last_error_code"], record["failures"], bench.sink.patches) == (code, 1, [])
    assert await feeds.turn("runway_obs")
    assert bench.states.read("runway_obs")["failures"] == 0
    assert {patch["city"] for patch in bench.sink.patches} == {
        "seoul", "busan", "beijing", "shanghai", "guangzhou", "chengdu", "chongqing", "wuhan", "qingdao",
    }  # fmt: skip


async def test_a_feed_that_is_declared_while_others_run_begins_and_ends_with_its_declaration(bench: Bench) -> None:
    feeds = dict(observation_feeds())
    feed = feeds.pop(SOURCE)
    settings = Settings(data_dir=bench.folder, feeds={SOURCE: {"url": f"{bench.server.url}{PATH}"}})  # type: ignore[dict-item]
    run = ObservationFeeds(feeds, bench.client, bench.sink, bench.states, bench.clock, settings)
    running = asyncio.ensure_future(run.run())
    feeds[SOURCE] = feed
    await run.renew()
    async with asyncio.timeout(60):
        await bench.sink.delivered.wait()
        while bench.record.get("last_success_at") is None:
            await asyncio.sleep(0.01)
    del feeds[SOURCE]
    await run.renew()
    asked = bench.server.counts[PATH].requests
    for _ in range(5):
        bench.advance(3_600)
        await asyncio.sleep(0)
    feeds[SOURCE] = feed
    await run.renew()
    async with asyncio.timeout(60):
        while bench.server.counts[PATH].requests == asked:
            bench.advance(60)
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
