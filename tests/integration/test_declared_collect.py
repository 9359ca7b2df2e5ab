"""A declared source behind the collector, over HTTP: in every way like a shipped one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from declarations import SMALLEST, declared
from planetwire.collect.bodies_file import FileBodyStore
from planetwire.collect.collector import FeedCollector
from planetwire.collect.http.client import PoliteClient
from planetwire.declared.read import read
from planetwire.demo.script import Step
from planetwire.demo.server import FeedServer
from planetwire.errors import FeedError
from planetwire.model import Batch, FetchState
from planetwire.runtime.clock import ManualClock
from planetwire.settings import Settings
from planetwire.wiring.commands import check_source

NOW = datetime(2026, 12, 1, 12, 34, tzinfo=UTC)
PATH = "/bikes.json"


def bikes(*ids: int) -> bytes:
    return json.dumps([{"id": n, "lat": 1.0 * n, "lon": 2.0} for n in ids]).encode()


@pytest_asyncio.fixture
async def client() -> AsyncIterator[PoliteClient]:
    async with PoliteClient(ManualClock(NOW)) as made:
        yield made


def collector(client: PoliteClient, folder: Path, url: str, *, private: bool = True, **other: Any) -> FeedCollector:
    feed = read(json.dumps(SMALLEST | {"url": url} | other), private=private).dataset.fact_feeds[0]
    settings = Settings(data_dir=folder, feeds={}, jobs={"batch_rows": 2})
    return FeedCollector({feed.source: feed}, client, FileBodyStore(folder / "bodies"), ManualClock(NOW), settings)


async def batches(made: FeedCollector, state: FetchState | None = None) -> list[Batch]:
    return [batch async for batch in made.batches("city_bikes", state, manual=True)]


async def test_a_declared_source_is_collected_in_batches_and_may_sweep(
    client: PoliteClient, feed_server: FeedServer, tmp_path: Path
) -> None:
    feed_server.set_body(PATH, bikes(1, 2, 3, 4, 5))
    got = await batches(collector(client, tmp_path, f"{feed_server.url}{PATH}", missing="gone"))
    assert [len(one.facts) for one in got] == [2, 2, 1] and got[-1].complete
    assert got[-1].sweep_keys == {"1", "2", "3", "4", "5"}
    assert got[-1].state is not None and got[-1].state.etag


async def test_the_floor_holds_and_an_unchanged_body_is_not_read_again(
    client: PoliteClient, feed_server: FeedServer, tmp_path: Path
) -> None:
    feed_server.set_body(PATH, bikes(1))
    made = collector(client, tmp_path, f"{feed_server.url}{PATH}")
    state = (await batches(made))[-1].state
    assert state is not None
    again = await batches(made, state)
    assert feed_server.counts[PATH].requests == 1 and again[-1].message is not None
    assert again[-1].message.startswith("cooldown until")
    made.clock.advance(3_600.0)  # type: ignore[attr-defined]
    later = await batches(made, state)
    assert feed_server.counts[PATH].requests == 2 and later[-1].message == "not modified"


async def test_a_page_with_status_200_deletes_nothing(
    client: PoliteClient, feed_server: FeedServer, tmp_path: Path
) -> None:
    feed_server.set_body(PATH, b"<!DOCTYPE html><html>Maintenance</html>")
    with pytest.raises(FeedError) as caught:
        await batches(collector(client, tmp_path, f"{feed_server.url}{PATH}", missing="gone"))
    assert caught.value.code == "bad_body"


async def test_the_address_is_that_of_the_time_and_its_validators_stay_with_it(
    client: PoliteClient, feed_server: FeedServer, tmp_path: Path
) -> None:
    """A new file must not be taken for the old one because it has an older date."""
    newest = {"Last-Modified": "Wed, 01 Dec 2032 00:00:00 GMT"}
    feed_server.script("/20261201/1230.json", [Step(status=200, body=bikes(1), headers=newest, validators=False)])
    made = collector(client, tmp_path, feed_server.url + "/{now:%Y%m%d}/{now/10min:%H%M}.json")
    first = (await batches(made))[-1]
    assert [one.external_key for one in first.facts] == ["1"] and first.state is not None
    assert first.state.last_modified == newest["Last-Modified"]
    feed_server.set_body("/20261201/1330.json", bikes(2))
    made.clock.advance(3_600.0)  # type: ignore[attr-defined]
    second = (await batches(made, first.state))[-1]
    assert [one.external_key for one in second.facts] == ["2"]


async def test_a_private_address_is_not_asked_unless_that_is_allowed(
    client: PoliteClient, feed_server: FeedServer, tmp_path: Path
) -> None:
    """A name that leads to this machine passes the look at the text and is refused when it is connected to."""

    async def here(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    feed_server.set_body(PATH, bikes(1))
    url = f"http://bikes.example.org:{feed_server.url.rpartition(':')[2]}{PATH}"
    async with PoliteClient(ManualClock(NOW), resolver=here) as led:
        with pytest.raises(FeedError):
            await batches(collector(led, tmp_path, url, private=False))
        assert not feed_server.counts[PATH].requests
        got = await batches(collector(led, tmp_path, url, private=True))
    assert [one.external_key for one in got[-1].facts] == ["1"]


async def test_check_source_asks_once_and_says_what_came(feed_server: FeedServer, tmp_path: Path) -> None:
    """With an address of the operator's own, which may be this machine."""
    feed_server.set_body(PATH, bikes(1, 2))
    settings = Settings(data_dir=tmp_path, feeds={"city_bikes": {"url": f"{feed_server.url}{PATH}"}})
    text = declared().text
    checked = await check_source(settings, text, "bikes.yaml", None, NOW, fetch=True)
    assert checked.good and checked.record["body"]["rows"] == 2 and feed_server.counts[PATH].requests == 1
    feed_server.set_body(PATH, b"[]nonsense")
    feed_server.script(PATH, [Step(status=429)])
    refused = await check_source(settings, text, "bikes.yaml", None, NOW, fetch=True)
    assert not refused.good and refused.record["error"]["code"] == "transient"
