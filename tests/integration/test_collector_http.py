"""The collector against a real HTTP server: every outcome a provider can give, and what becomes of the state."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from planetwire import __version__
from planetwire.collect.bodies_file import FileBodyStore
from planetwire.collect.collector import FeedCollector
from planetwire.collect.http.client import FetchRules, Outcome, PoliteClient
from planetwire.datasets.registry import fact_feeds
from planetwire.demo.script import Step
from planetwire.demo.server import FeedServer
from planetwire.errors import FeedError, NotFound
from planetwire.model import Batch, FetchState
from planetwire.runtime.clock import ManualClock
from planetwire.settings import Settings

NOW = datetime(2026, 3, 20, 12, 0, 30, tzinfo=UTC)
PATH = "/NORAD/elements/gp.php"
QUAKES = "/earthquakes/feed/v1.0/summary/all_day.geojson"
FLOOR_S = 7_200.0
RECORD: dict[str, Any] = {
    "OBJECT_NAME": "ONE", "OBJECT_ID": "1998-067A", "EPOCH": "2026-03-20T04:10:11.123456", "MEAN_MOTION": 15.49,
    "ECCENTRICITY": 0.0004, "INCLINATION": 51.63, "RA_OF_ASC_NODE": 12.5, "ARG_OF_PERICENTER": 90.0,
    "MEAN_ANOMALY": 270.0, "NORAD_CAT_ID": 1,
}  # fmt: skip


def body_of(*numbers: int) -> bytes:
    return orjson.dumps([RECORD | {"NORAD_CAT_ID": number} for number in numbers])


@dataclass
class Bench:
    """A collector on a clock that tests move, and the server it asks."""

    server: FeedServer
    clock: ManualClock
    client: PoliteClient
    bodies: FileBodyStore
    collector: FeedCollector

    async def run(self, state: FetchState | None = None, *, manual: bool = True) -> list[Batch]:
        return [batch async for batch in self.collector.batches("celestrak_gp", state, manual=manual)]

    async def fails(self, state: FetchState | None = None) -> tuple[FeedError, list[Batch]]:
        """The error, and the batches that came before it."""
        got: list[Batch] = []
        with pytest.raises(FeedError) as caught:
            async for batch in self.collector.batches("celestrak_gp", state, manual=True):
                got.append(batch)
        return caught.value, got

    @property
    def requests(self) -> int:
        return self.server.counts[PATH].requests


@pytest_asyncio.fixture
async def make_bench(feed_server: FeedServer, tmp_path: Path) -> AsyncIterator[Callable[..., Bench]]:
    clock = ManualClock(NOW)
    client = PoliteClient(clock)

    def make(*, batch_rows: int = 2_000, **feed: Any) -> Bench:
        urls = {"celestrak_gp": {"url": f"{feed_server.url}{PATH}", **feed},
                "usgs_quakes": {"url": f"{feed_server.url}{QUAKES}"}}  # fmt: skip
        settings = Settings(data_dir=tmp_path, feeds=urls, jobs={"batch_rows": batch_rows})
        bodies = FileBodyStore(tmp_path / "bodies")
        return Bench(feed_server, clock, client, bodies, FeedCollector(fact_feeds(), client, bodies, clock, settings))

    yield make
    await client.aclose()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    bench = make_bench()
    bench.server.set_body(PATH, body_of(1, 2, 3))
    return bench


def state_of(batches: list[Batch]) -> FetchState:
    assert batches[-1].state is not None
    return batches[-1].state


async def test_a_whole_body_gives_batches_and_the_state_with_the_last(make_bench: Callable[..., Bench]) -> None:
    """S40."""
    bench = make_bench(batch_rows=2)
    bench.server.set_body(PATH, body_of(1, 2, 3, 4, 5))
    batches = await bench.run()
    assert [len(batch.facts) for batch in batches] == [2, 2, 1]
    assert [batch.complete for batch in batches] == [False, False, True]
    assert [batch.state is None for batch in batches] == [True, True, False]
    assert {batch.total_hint for batch in batches} == {5}
    assert batches[-1].sweep_keys == {"1", "2", "3", "4", "5"}
    state = state_of(batches)
    assert state.etag and state.last_modified and state.body_sha256
    assert state.fetched_at == NOW
    assert bench.bodies.load("celestrak_gp") == body_of(1, 2, 3, 4, 5)


async def test_an_exact_multiple_of_a_batch_has_no_empty_batch(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(batch_rows=2)
    bench.server.set_body(PATH, body_of(1, 2, 3, 4))
    assert [len(batch.facts) for batch in await bench.run()] == [2, 2]


async def test_the_second_run_is_conditional_and_brings_nothing(bench: Bench) -> None:
    state = state_of(await bench.run())
    bench.clock.advance(FLOOR_S)
    batches = await bench.run(state)
    assert bench.server.counts[PATH].not_modified == 1
    assert [(batch.facts, batch.complete, batch.message) for batch in batches] == [((), False, "not modified")]
    again = state_of(batches)
    assert (again.etag, again.fetched_at) == (state.etag, NOW + timedelta(seconds=FLOOR_S))


async def test_the_same_bytes_without_validators_are_not_modified(bench: Bench) -> None:
    state = state_of(await bench.run())
    bench.clock.advance(FLOOR_S)
    bench.server.script(PATH, [Step(validators=False)])
    batches = await bench.run(state)
    assert (batches[-1].message, batches[-1].complete) == ("not modified", False)


async def test_a_changed_body_is_taken_whole(bench: Bench) -> None:
    state = state_of(await bench.run())
    bench.clock.advance(FLOOR_S)
    bench.server.set_body(PATH, body_of(2, 3, 4))
    batches = await bench.run(state)
    assert batches[-1].complete
    assert batches[-1].sweep_keys == {"2", "3", "4"}
    assert state_of(batches).etag != state.etag


async def test_the_same_etag_with_a_newer_date_is_a_change(bench: Bench) -> None:
    """Report 67: both validators are refreshed."""
    old = FetchState(etag='"a"', last_modified="Fri, 20 Mar 2026 10:00:00 GMT", body_sha256="0" * 64)
    newer = "Fri, 20 Mar 2026 11:00:00 GMT"
    bench.server.script(
        PATH,
        [
            Step(status=304, headers={"ETag": '"a"', "Last-Modified": newer}, validators=False),
            Step(status=200, body=body_of(9), headers={"ETag": '"a"', "Last-Modified": newer}, validators=False),
        ],
    )
    batches = await bench.run(old)
    assert [fact.external_key for fact in batches[-1].facts] == ["9"]
    assert (state_of(batches).etag, state_of(batches).last_modified) == ('"a"', newer)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_shorter_than_announced_is_refused_and_nothing_remembered(bench: Bench, chunked: bool) -> None:
    """Report 75."""
    bench.server.script(PATH, [Step(cut_at_byte=100, chunked=chunked)])
    error, batches = await bench.fails()
    assert (error.code, batches) == ("truncated", [])
    assert bench.bodies.load("celestrak_gp") is None


async def test_a_gzip_stream_that_ends_early_is_truncated(bench: Bench) -> None:
    packed = gzip.compress(body_of(*range(1, 500)))
    step = Step(status=200, body=packed[:-20], content_type="application/json", headers={"Content-Encoding": "gzip"})
    bench.server.script(PATH, [replace(step, gzip=False)])
    error, _ = await bench.fails()
    assert error.code == "truncated"


async def test_gzip_is_known_by_its_magic_bytes_too(bench: Bench) -> None:
    bench.server.script(PATH, [Step(status=200, body=gzip.compress(body_of(5)), gzip=False)])
    assert [fact.external_key for fact in (await bench.run())[-1].facts] == ["5"]


async def test_a_compressed_answer_is_unpacked(bench: Bench) -> None:
    bench.server.script(PATH, [Step(gzip=True)])
    assert len((await bench.run())[-1].facts) == 3


@pytest.mark.parametrize(
    "step",
    [
        Step(status=200, body=b"<!DOCTYPE html><html><body>busy</body></html>", content_type="text/html"),
        Step(status=200, body=b"<html>busy</html>", content_type="application/json"),
        Step(status=200, body=b"", content_type="application/json"),
        Step(status=200, body=b"Invalid query", content_type="text/plain"),
        Step(status=400, body=b"bad group"),
        Step(status=200, body=b'[{"NORAD_CAT_ID": 1}]'),
    ],
)
async def test_an_answer_that_is_no_data_is_an_error_and_keeps_everything(bench: Bench, step: Step) -> None:
    """Report 77: S68 begins here, nothing is deleted."""
    state = state_of(await bench.run())
    bench.clock.advance(FLOOR_S)
    bench.server.script(PATH, [step])
    error, batches = await bench.fails(state)
    assert (error.code, batches) == ("bad_body", [])
    assert bench.bodies.load("celestrak_gp") == body_of(1, 2, 3)


async def test_the_error_says_status_and_the_first_characters(bench: Bench) -> None:
    """Report 77."""
    bench.server.script(PATH, [Step(status=200, body=b"<html>" + b"x" * 500, content_type="text/html")])
    error, _ = await bench.fails()
    assert "HTML" in error.message
    assert "status 200" in error.message
    assert "<html>" + "x" * 74 in error.message
    assert "x" * 75 not in error.message


async def test_a_403_means_come_back_later_and_is_never_repeated(bench: Bench) -> None:
    """Report 16."""
    state = state_of(await bench.run())
    bench.clock.advance(FLOOR_S)
    bench.server.script(PATH, [Step(status=403, body=b"GP data has not updated since your last successful download")])
    batches = await bench.run(state)
    assert bench.requests == 2
    assert [(batch.facts, batch.complete) for batch in batches] == [((), False)]
    assert batches[-1].message is not None
    assert "not modified" in batches[-1].message
    after = state_of(batches)
    assert after.cooldown_until == NOW + timedelta(seconds=2 * FLOOR_S)
    assert (after.etag, after.fetched_at) == (state.etag, state.fetched_at)
    bench.clock.advance(FLOOR_S - 1)
    assert (await bench.run(after))[-1].message == "cooldown until 2026-03-20T16:00:30Z"
    assert bench.requests == 2
    bench.clock.advance(1)
    await bench.run(after)
    assert bench.requests == 3


async def test_a_403_elsewhere_is_refused_credentials(bench: Bench) -> None:
    state = FetchState()
    bench.server.script(QUAKES, [Step(status=403, body=b"key?"), Step(status=401, body=b"key?")])
    for _ in range(2):
        with pytest.raises(FeedError) as caught:
            async for _batch in bench.collector.batches("usgs_quakes", state, manual=True):
                pass
        assert caught.value.code == "auth_refused"


async def test_no_data_in_this_format_deletes_nothing(bench: Bench) -> None:
    bench.server.script(PATH, [Step(status=404, body=b"No GP data found")])
    batches = await bench.run()
    assert [(batch.facts, batch.complete, batch.sweep_keys) for batch in batches] == [((), False, None)]
    assert batches[-1].message is not None
    assert "no data in this format" in batches[-1].message


async def test_another_404_is_an_error(bench: Bench) -> None:
    bench.server.script(PATH, [Step(status=404, body=b"nothing here")])
    assert (await bench.fails())[0].code == "not_found"


@pytest.mark.parametrize(
    ("status", "headers", "wait_s"),
    [
        (429, {"Retry-After": "120"}, 120.0),
        (503, {"Retry-After": "Fri, 20 Mar 2026 12:10:30 GMT"}, 600.0),
        (429, {"X-Rate-Limit-Retry-After-Seconds": "30"}, 30.0),
        (503, {"Retry-After": "99999999"}, 86_400.0),
        (500, {}, None),
        (429, {"Retry-After": "soon"}, None),
    ],
)
async def test_a_busy_provider_says_when_to_come_back(
    bench: Bench, status: int, headers: dict[str, str], wait_s: float | None
) -> None:
    bench.server.script(PATH, [Step(status=status, headers=headers, body=b"busy")])
    error, batches = await bench.fails()
    assert (error.code, error.retry_after_s) == ("transient", wait_s)
    if wait_s is None:
        assert batches == []
        return
    until = NOW + timedelta(seconds=wait_s)
    assert state_of(batches).cooldown_until == until
    assert (await bench.run(state_of(batches)))[-1].message == f"cooldown until {until:%Y-%m-%dT%H:%M:%SZ}"
    assert bench.requests == 1


async def test_a_run_inside_the_floor_asks_nothing(bench: Bench) -> None:
    state = state_of(await bench.run())
    bench.clock.advance(FLOOR_S - 1)
    batches = await bench.run(state)
    assert [(batch.facts, batch.complete, batch.state) for batch in batches] == [((), False, None)]
    assert batches[0].message == "cooldown until 2026-03-20T14:00:30Z"
    assert bench.requests == 1


async def test_a_scheduled_run_may_come_a_little_early(bench: Bench) -> None:
    state = state_of(await bench.run())
    bench.clock.advance(FLOOR_S * 0.95)
    await bench.run(state, manual=False)
    assert bench.requests == 2


async def test_a_floor_of_zero_asks_every_time_and_shortens_refusals(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(floor_s=0)
    bench.server.set_body(PATH, body_of(1))
    state = state_of(await bench.run())
    bench.server.script(PATH, [Step(status=403, body=b"not updated")])
    state = state_of(await bench.run(state))
    await bench.run(state)
    assert bench.requests == 3


async def test_deleted_facts_come_back_inside_the_floor_without_a_request(bench: Bench) -> None:
    """Facts decide: the kept body is applied again."""
    state = state_of(await bench.run())
    batches = await bench.run(replace(state, void=True))
    assert bench.requests == 1
    assert [fact.external_key for fact in batches[-1].facts] == ["1", "2", "3"]
    assert (batches[-1].complete, batches[-1].sweep_keys) == (True, {"1", "2", "3"})
    assert (state_of(batches).etag, state_of(batches).fetched_at) == (state.etag, state.fetched_at)
    assert "kept data applied again" in (batches[-1].message or "")


async def test_deleted_facts_make_the_next_request_unconditional(bench: Bench) -> None:
    state = state_of(await bench.run())
    bench.clock.advance(FLOOR_S)
    batches = await bench.run(replace(state, void=True))
    assert bench.server.counts[PATH].ok == 2
    assert len(batches[-1].facts) == 3


async def test_deleted_facts_come_back_from_disk_when_the_provider_refuses(bench: Bench) -> None:
    state = state_of(await bench.run())
    bench.clock.advance(FLOOR_S)
    bench.server.script(PATH, [Step(status=403, body=b"not updated")])
    batches = await bench.run(replace(state, void=True))
    assert len(batches[-1].facts) == 3
    assert state_of(batches).cooldown_until == NOW + timedelta(seconds=2 * FLOOR_S)


async def test_a_body_with_broken_records_keeps_their_facts_from_the_sweep(bench: Bench) -> None:
    records = [RECORD | {"NORAD_CAT_ID": 1}, RECORD | {"NORAD_CAT_ID": 2, "EPOCH": "never"}]
    bench.server.set_body(PATH, orjson.dumps(records))
    batches = await bench.run()
    assert [fact.external_key for fact in batches[-1].facts] == ["1"]
    assert batches[-1].sweep_keys == {"1", "2"}
    assert len(batches[-1].rejects) == 1


async def test_a_list_that_was_cut_gives_its_whole_records_but_no_sweep(bench: Bench) -> None:
    bench.server.set_body(PATH, body_of(1, 2, 3)[:-5])
    batches = await bench.run()
    assert [fact.external_key for fact in batches[-1].facts] == ["1", "2"]
    assert (batches[-1].complete, batches[-1].sweep_keys, batches[-1].state) == (False, None, None)
    assert bench.bodies.load("celestrak_gp") is None


async def test_an_object_seen_twice_comes_with_the_last_batch_and_is_counted(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(batch_rows=2)
    older = RECORD | {"NORAD_CAT_ID": 1, "EPOCH": "2026-03-19T00:00:00"}
    records = [older, *orjson.loads(body_of(2, 3, 1, 4))]
    bench.server.set_body(PATH, orjson.dumps(records))
    batches = await bench.run()
    assert [[fact.external_key for fact in batch.facts] for batch in batches] == [["2", "3"], ["4", "1"]]
    assert batches[-1].facts[-1].data["EPOCH"] == RECORD["EPOCH"]
    assert (batches[-1].message, batches[-1].total_hint) == ("4 records, 1 duplicates", 4)
    assert batches[-1].sweep_keys == {"1", "2", "3", "4"}


async def test_refused_records_in_any_batch_are_told_with_the_last(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(batch_rows=2)
    records = orjson.loads(body_of(1, 2, 3, 4, 5))
    records[0]["EPOCH"] = records[4]["EPOCH"] = "never"
    bench.server.set_body(PATH, orjson.dumps(records))
    batches = await bench.run()
    assert [len(batch.facts) for batch in batches] == [2, 1]
    assert [[one.offset for one in batch.rejects] for batch in batches] == [[], [0, 4]]
    assert batches[-1].sweep_keys == {"1", "2", "3", "4", "5"}
    assert (batches[-1].total_hint, batches[-1].message) == (3, "3 records, 2 rejected (bad_time 2)")


async def test_a_body_of_refused_records_gives_no_batch_at_all(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(batch_rows=2)
    bench.server.set_body(PATH, body_of(1, 2, 3, 4, 5).replace(RECORD["EPOCH"].encode(), b"never"))
    error, batches = await bench.fails()
    assert (error.code, batches) == ("bad_body", [])
    assert "all 5 records refused" in error.message
    assert bench.bodies.load("celestrak_gp") is None


async def test_a_list_that_was_cut_gives_many_batches_and_no_state(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(batch_rows=2)
    bench.server.set_body(PATH, body_of(1, 2, 3, 4)[:-5])
    batches = await bench.run()
    assert [len(batch.facts) for batch in batches] == [2, 1]
    assert [(batch.complete, batch.sweep_keys, batch.state) for batch in batches] == [(False, None, None)] * 2
    assert "the body was not whole" in (batches[-1].message or "")
    assert bench.bodies.load("celestrak_gp") is None


async def test_a_collector_closed_between_two_batches_leaves_nothing_running(make_bench: Callable[..., Bench]) -> None:
    """S48."""
    bench = make_bench(batch_rows=2)
    bench.server.set_body(PATH, body_of(*range(1, 2_000)))
    before = asyncio.all_tasks()
    batches = bench.collector.batches("celestrak_gp", None, manual=True)
    assert not (await anext(batches)).complete
    await batches.aclose()
    assert asyncio.all_tasks() == before
    assert bench.bodies.load("celestrak_gp") == body_of(*range(1, 2_000))


async def test_an_empty_list_is_whole_and_leaves_the_sweep_to_its_guard(bench: Bench) -> None:
    bench.server.set_body(PATH, b"[]")
    batches = await bench.run()
    assert [(batch.facts, batch.complete, batch.sweep_keys) for batch in batches] == [([], True, frozenset())]


async def test_quakes_are_a_window_and_never_swept(bench: Bench) -> None:
    batches = [batch async for batch in bench.collector.batches("usgs_quakes", None, manual=True)]
    assert batches[-1].complete
    assert batches[-1].sweep_keys is None
    assert batches[-1].facts


async def test_an_unknown_source_names_the_nearest(bench: Bench) -> None:
    with pytest.raises(NotFound, match="did you mean celestrak_gp"):
        async for _ in bench.collector.batches("celestrak", None, manual=True):
            pass


async def test_the_client_names_itself_and_bounds_a_body(bench: Bench) -> None:
    assert bench.client._headers["User-Agent"] == f"planetwire/{__version__}"
    url = f"{bench.server.url}{PATH}"
    for step in (Step(), Step(gzip=True), Step(chunked=True)):
        bench.server.script(PATH, [step])
        fetched = await bench.client.fetch(url, FetchState(), FetchRules(limit_bytes=50))
        assert (fetched.outcome, fetched.body) == (Outcome.BAD_BODY, None)


async def test_a_dead_server_is_a_passing_fault(bench: Bench) -> None:
    fetched = await bench.client.fetch("http://127.0.0.1:9/x", FetchState(), FetchRules())
    assert fetched.outcome is Outcome.TRANSIENT


async def test_one_host_is_asked_one_thing_at_a_time(bench: Bench) -> None:
    bench.server.script(PATH, [Step(delay_s=0.2)])
    url = f"{bench.server.url}{PATH}"
    slow = asyncio.create_task(bench.client.fetch(url, FetchState(), FetchRules()))
    async with asyncio.timeout(60):
        while not bench.requests:
            await asyncio.sleep(0)
    quick = asyncio.create_task(bench.client.fetch(url, FetchState(), FetchRules()))
    done, _ = await asyncio.wait({slow, quick}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
    assert slow in done
    assert (await quick).outcome is Outcome.FRESH
