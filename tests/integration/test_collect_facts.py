"""From the feed server to committed facts: the collector under a real job, on a real ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio

from ledger_tools import claim_one, queue_on, wish
from planetwire.collect.bodies_file import FileBodyStore
from planetwire.collect.collector import FeedCollector
from planetwire.collect.feeds import source_defaults
from planetwire.collect.http.client import PoliteClient
from planetwire.database.postgres import Pool
from planetwire.datasets.registry import fact_feeds
from planetwire.demo.script import Step
from planetwire.demo.server import FeedServer
from planetwire.errors import FeedError
from planetwire.facts.facts_postgres import PostgresFactStore
from planetwire.facts.sources_postgres import PostgresSourceStore
from planetwire.jobs.tasks.collect import CollectTask
from planetwire.model import JobStatus
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings

GP = "/NORAD/elements/gp.php"
QUAKES = "/earthquakes/feed/v1.0/summary/all_day.geojson"


class House:
    """One source's way from HTTP to rows, run as a claimed job."""

    def __init__(self, pool: Pool, server: FeedServer, client: PoliteClient, folder: Path, floor_s: float) -> None:
        feeds = {"celestrak_gp": {"url": f"{server.url}{GP}?GROUP=active&FORMAT=json", "floor_s": floor_s},
                 "usgs_quakes": {"url": f"{server.url}{QUAKES}", "floor_s": floor_s}}  # fmt: skip
        settings = Settings(data_dir=folder, feeds=feeds)
        clock = SystemClock()
        self.pool, self.server, self.queue = pool, server, queue_on(pool)
        collector = FeedCollector(fact_feeds(), client, FileBodyStore(folder / "bodies"), clock, settings)
        self.sources = PostgresSourceStore(pool, source_defaults(fact_feeds().values(), settings))
        self.task = CollectTask(self.queue, collector, PostgresFactStore(pool), self.sources, clock)

    async def collect(self, source: str = "celestrak_gp") -> dict[str, Any]:
        """The finished job's row. Raises what the feed raised."""
        await self.queue.submit(wish(source=source))
        lease = await claim_one(self.queue)
        try:
            await self.task(lease)
        except FeedError as error:
            await self.queue.finish(lease, JobStatus.CANCELLED, error=(error.code, error.message))
            raise
        await self.queue.finish(lease, JobStatus.COMPLETED)
        return dict(await self.pool.fetchrow("select * from collection_tasks where id = $1", lease.job.id))

    async def source(self, source: str = "celestrak_gp") -> dict[str, Any]:
        return next(row for row in await self.sources.list() if row["source"] == source)

    async def count(self, source: str = "celestrak_gp") -> int:
        return await self.pool.fetchval("select count(*) from collected_data where source = $1", source)


@pytest_asyncio.fixture
async def house(pg_pool: Pool, feed_server: FeedServer, tmp_path: Path) -> AsyncIterator[Callable[..., House]]:
    async with PoliteClient(SystemClock()) as client:
        await PostgresSourceStore(pg_pool, source_defaults(fact_feeds().values(), Settings())).ensure()
        yield lambda floor_s=0.0: House(pg_pool, feed_server, client, tmp_path, floor_s)


async def test_a_catalogue_is_collected_and_the_second_run_changes_nothing(house: Callable[..., House]) -> None:
    """S40, S45."""
    one = house()
    job = await one.collect()
    rows = await one.count()
    assert rows >= 12_000
    assert (job["records_processed"], job["records_total"], job["message"]) == (rows, rows, f"{rows} records")
    changes = await one.pool.fetchval("select count(*) from earth_data_change_events")
    assert (await one.collect())["message"] == "not modified"
    assert await one.pool.fetchval("select count(*) from earth_data_change_events") == changes


async def test_deleted_facts_come_back_inside_the_floor(house: Callable[..., House]) -> None:
    """Facts decide."""
    one = house(floor_s=7_200)
    await one.collect()
    rows = await one.count()
    assert (await one.collect())["message"].startswith("cooldown until ")
    await one.pool.execute("delete from collected_data where source = 'celestrak_gp'")
    job = await one.collect()
    assert await one.count() == rows
    assert "kept data applied again" in job["message"]
    assert one.server.counts[GP].requests == 1
    assert (await one.collect())["message"].startswith("cooldown until ")


async def test_deleted_facts_come_back_after_the_floor_though_nothing_changed(house: Callable[..., House]) -> None:
    one = house()
    await one.collect()
    rows = await one.count()
    await one.pool.execute("delete from collected_data where source = 'celestrak_gp' and external_key < '2'")
    await one.collect()
    assert await one.count() == rows
    assert one.server.counts[GP].ok == 2


async def test_what_left_the_catalogue_is_swept_but_half_a_catalogue_sweeps_nothing(
    house: Callable[..., House],
) -> None:
    one = house()
    body = orjson.loads(await _body(one))
    one.server.set_body(GP, orjson.dumps(body[:100]))
    await one.collect()
    one.server.set_body(GP, orjson.dumps(body[:90]))
    await one.collect()
    assert await one.count() == 90
    one.server.set_body(GP, orjson.dumps(body[:20]))
    job = await one.collect()
    assert await one.count() == 90
    assert "suspicious_shrink" in job["message"]


async def test_a_record_that_breaks_keeps_its_last_good_fact(house: Callable[..., House]) -> None:
    one = house()
    body = orjson.loads(await _body(one))[:50]
    one.server.set_body(GP, orjson.dumps(body))
    await one.collect()
    body[7]["EPOCH"] = "never"
    one.server.set_body(GP, orjson.dumps(body))
    job = await one.collect()
    assert await one.count() == 50
    assert job["message"] == "49 records, 1 rejected (bad_time 1)"
    assert next(row for row in await one.sources.list() if row["source"] == "celestrak_gp")["rejects_last_run"] == 1


async def test_failures_leave_the_facts_alone(house: Callable[..., House]) -> None:
    """S68 begins here."""
    one = house()
    await one.sources.ensure()
    await one.collect()
    rows = await one.count()
    for step in (
        Step(status=200, body=b"<html>busy</html>", content_type="text/html"),
        Step(status=500),
        Step(cut_at_byte=100_000, validators=False),
    ):
        one.server.script(GP, [step])
        try:
            await one.collect()
        except FeedError:
            pass
        else:
            raise AssertionError("no error")
        assert await one.count() == rows
    one.server.script(GP, [Step(status=403, body=b"GP data has not updated")])
    assert "not modified" in (await one.collect())["message"]
    assert await one.count() == rows


@pytest.mark.parametrize("tail", [b"[{}]", b"<br />\n<b>Fatal error</b>: out of memory"])
async def test_a_body_that_goes_on_after_its_end_sweeps_nothing_and_the_source_says_so(
    house: Callable[..., House], tail: bytes
) -> None:
    """Two lists stuck together, or an error page behind one, once deleted a third of the catalogue."""
    one = house()
    body = orjson.loads(await _body(one))[:100]
    one.server.set_body(GP, orjson.dumps(body))
    await one.collect()
    one.server.set_body(GP, orjson.dumps(body[:60]) + tail)
    job = await one.collect()
    assert "nothing was swept" in job["message"]
    assert await one.count() == 100
    source = await one.source()
    assert (source["last_error_code"], "goes on after its end" in source["last_error"]) == ("incomplete_body", True)
    one.server.set_body(GP, orjson.dumps(body[:90]))
    await one.collect()
    assert (await one.count(), (await one.source())["last_error_code"]) == (90, None)


async def test_a_body_of_which_most_is_refused_is_told_with_its_source(house: Callable[..., House]) -> None:
    one = house()
    body = orjson.loads(await _body(one))[:20]
    one.server.set_body(GP, orjson.dumps([record | {"EPOCH": "never"} for record in body[1:]] + body[:1]))
    await one.collect()
    assert (await one.count(), (await one.source())["last_error_code"]) == (1, "mostly_rejected")


async def test_whatever_ends_a_collect_stands_with_its_source(
    house: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what nobody thought of: the diagnostic looks there, and a job's own text is quoted nowhere."""
    one = house()

    async def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret of ours")

    with monkeypatch.context() as patched:
        patched.setattr(PostgresFactStore, "upsert", broken)
        await one.queue.submit(wish(source="celestrak_gp"))
        lease = await claim_one(one.queue)
        with pytest.raises(ZeroDivisionError):
            await one.task(lease)
    await one.queue.finish(lease, JobStatus.CANCELLED)
    source = await one.source()
    assert (source["last_error_code"], source["last_error"]) == ("internal", "an error of ours: ZeroDivisionError")
    await one.collect()
    assert (await one.source())["last_error_code"] is None


async def test_a_quake_that_changed_its_id_is_one_row(house: Callable[..., House]) -> None:
    """Report 53; a deleted one is gone, report 54; one that left the window stays."""
    one = house()

    def body(*features: tuple[str, str, str]) -> bytes:
        return orjson.dumps({"type": "FeatureCollection", "features": [
            {"type": "Feature", "id": key, "geometry": {"type": "Point", "coordinates": [1, 2, 3]},
             "properties": {"time": 1_779_789_720_000, "mag": 4, "ids": ids, "status": status}}
            for key, ids, status in features
        ]})  # fmt: skip

    one.server.set_body(QUAKES, body(("us1", ",us1,", "automatic"), ("us2", ",us2,", "automatic"), ("us3", "", "x")))
    await one.collect("usgs_quakes")
    one.server.set_body(QUAKES, body(("ci9", ",us1,ci9,", "reviewed"), ("us2", ",us2,", "deleted")))
    await one.collect("usgs_quakes")
    keys = await one.pool.fetch("select external_key from collected_data where source = 'usgs_quakes' order by 1")
    assert [row[0] for row in keys] == ["ci9", "us3"]


async def _body(one: House) -> bytes:
    async with httpx.AsyncClient(timeout=60) as client:
        return (await client.get(f"{one.server.url}{GP}?GROUP=active&FORMAT=json")).content
