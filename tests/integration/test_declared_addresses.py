"""Where a declared source may lead: names and redirects are looked at when they are asked, whatever was declared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from declared_tools import quakes, quakes_address
from planetwire.collect.bodies_file import FileBodyStore
from planetwire.collect.collector import FeedCollector
from planetwire.collect.http.client import PoliteClient
from planetwire.declared.read import read
from planetwire.demo.script import Step
from planetwire.demo.server import FeedServer
from planetwire.errors import FeedError
from planetwire.model import Batch
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings

NAME = "feeds.example.org"


@asynccontextmanager
async def asking(url: str, folder: Path, *, private: bool, names: Sequence[str] = ()) -> AsyncIterator[FeedCollector]:
    """A collector of one declared source; every name means these addresses."""

    async def resolved(host: str, port: int) -> Sequence[str]:
        return names

    feed = read(quakes(url=url), private=private).dataset.fact_feeds[0]
    async with PoliteClient(SystemClock(), resolver=resolved) as client:
        settings = Settings(data_dir=folder)
        yield FeedCollector({feed.source: feed}, client, FileBodyStore(folder), SystemClock(), settings)


async def collected(collector: FeedCollector) -> list[Batch]:
    return [batch async for batch in collector.batches("my_quakes", None, manual=True)]


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.0.0.2", "::1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1"]
)
async def test_a_name_that_leads_into_a_private_network_is_not_asked(
    feed_server: FeedServer, tmp_path: Path, address: str
) -> None:
    port, path = urlsplit(feed_server.url).port, urlsplit(quakes_address("")).path
    url = f"http://{NAME}:{port}{path}"
    async with asking(url, tmp_path, private=False, names=[address]) as collector:
        with pytest.raises(FeedError) as caught:
            await collected(collector)
    assert caught.value.code == "redirect_refused"
    assert feed_server.counts[path].requests == 0


async def test_where_the_operator_allows_it_a_private_name_is_asked(feed_server: FeedServer, tmp_path: Path) -> None:
    port, path = urlsplit(feed_server.url).port, urlsplit(quakes_address("")).path
    url = f"http://{NAME}:{port}{path}"
    async with asking(url, tmp_path, private=True, names=["127.0.0.1"]) as collector:
        assert sum(len(batch.facts) for batch in await collected(collector)) > 0


async def test_a_redirect_to_another_private_address_is_refused_also_then(
    start_feed_server: Callable[..., FeedServer], tmp_path: Path
) -> None:
    first, second = start_feed_server(), start_feed_server()
    path = urlsplit(quakes_address("")).path
    aims = [f"{second.url}{path}", f"{first.url.replace('127.0.0.1', '127.0.0.2')}{path}"]
    first.script(path, [Step(status=302, headers={"Location": aim}) for aim in aims])
    async with asking(f"{first.url}{path}", tmp_path, private=True) as collector:
        for _ in aims:
            with pytest.raises(FeedError) as caught:
                await collected(collector)
            assert caught.value.code == "redirect_refused"
    assert second.counts[path].requests == 0
