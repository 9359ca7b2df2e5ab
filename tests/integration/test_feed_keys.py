"""An operator's key goes to the provider, as the feed takes it, and to no other host, into no message and no file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from hostile_feed import HostileFeed, Script, answer, head, plainly, running_hostile_feed
from planetwire.collect.bodies_file import FileBodyStore
from planetwire.collect.collector import FeedCollector
from planetwire.collect.feed_usgs import UsgsQuakes
from planetwire.collect.http.client import Fetched, FetchRules, Outcome, PoliteClient
from planetwire.collect.http.credential import Access, Credential
from planetwire.errors import FeedError
from planetwire.model import FetchState
from planetwire.runtime.clock import ManualClock
from planetwire.settings import Settings

KEY = "k3y/of+the operator".replace(" ", "_")
PASSWORD = "pass-word-of-the-operator"
HEADER = Credential("X-Api-Key")
QUERY = Credential("api_key", "query")
QUAKES = orjson.dumps({"type": "FeatureCollection", "metadata": {"count": 0}, "features": []})


class Names:
    """A resolver: what each name means, one answer a question; the last one stays."""

    def __init__(self, **answers: Sequence[str]) -> None:
        self.answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        given = self.answers[host]
        return [given.pop(0) if len(given) > 1 else given[0]]


@pytest.fixture
def feed() -> Iterator[HostileFeed]:
    with running_hostile_feed() as running:
        running.scripts["/data"] = answer(b'{"good": 1}')
        yield running


@pytest.fixture
def names() -> Names:
    return Names(feed_example=["127.0.0.1"], other_example=["127.0.0.1"])


@pytest_asyncio.fixture
async def client(names: Names) -> AsyncIterator[PoliteClient]:
    async with PoliteClient(ManualClock(datetime(2026, 3, 20, tzinfo=UTC)), resolver=names) as made:
        yield made


async def fetched(
    client: PoliteClient, feed: HostileFeed, path: str = "/data", credential: Credential = HEADER, **more: Any
) -> Fetched:
    """With the key, from `feed.example`."""
    url = f"http://{more.pop('user', '')}feed.example:{feed.port}{path}"
    return await client.fetch(url, FetchState(), FetchRules(), Access(KEY, credential, **more))


def redirect(location: str) -> Script:
    return plainly(head(302, Location=location, Content_Length=0))


async def test_a_key_goes_as_a_header(client: PoliteClient, feed: HostileFeed) -> None:
    assert (await fetched(client, feed)).outcome is Outcome.FRESH
    assert feed.asked[0].headers["x-api-key"] == KEY
    await fetched(client, feed, credential=Credential("Authorization", prefix="Bearer "))
    assert feed.asked[1].headers["authorization"] == f"Bearer {KEY}"


async def test_a_key_goes_as_a_query_parameter(client: PoliteClient, feed: HostileFeed) -> None:
    assert (await fetched(client, feed, "/data?a=1&api_key=old&b=2", QUERY)).outcome is Outcome.FRESH
    assert feed.asked[0].target == "/data?a=1&b=2&api_key=k3y%2Fof%2Bthe_operator"


async def test_user_and_password_of_the_address_go_as_they_always_did(client: PoliteClient, feed: HostileFeed) -> None:
    url = f"http://user:{PASSWORD}@feed.example:{feed.port}/data"
    assert (await client.fetch(url, FetchState(), FetchRules())).outcome is Outcome.FRESH
    assert feed.asked[0].headers["authorization"].startswith("Basic ")
    assert PASSWORD not in str(feed.asked[0])


@pytest.mark.parametrize("credential", [HEADER, QUERY])
async def test_a_key_stays_with_its_origin(client: PoliteClient, feed: HostileFeed, credential: Credential) -> None:
    feed.scripts["/start"] = redirect("/near")
    feed.scripts["/near"] = redirect(f"http://other.example:{feed.port}/far")
    feed.scripts["/far"] = redirect(f"http://feed.example:{feed.port}/data")
    assert (await fetched(client, feed, "/start", credential, user=f"user:{PASSWORD}@")).outcome is Outcome.FRESH
    start, near, far, data = feed.asked
    for one in (start, near):
        assert KEY in str(one) or "k3y%2Fof" in one.target
        assert "authorization" in one.headers
    for one in (far, data):  # who was away once may be led by a stranger
        assert "k3y" not in str(one)
        assert "authorization" not in one.headers


async def test_a_redirect_that_takes_the_key_along_is_refused(client: PoliteClient, feed: HostileFeed) -> None:
    for key in (KEY, "k3y%2Fof%2Bthe_operator"):
        feed.scripts["/start"] = redirect(f"http://other.example:{feed.port}/far?k={key}")
        got = await fetched(client, feed, "/start", QUERY)
        assert got.outcome is Outcome.REDIRECT_REFUSED
        assert "k3y" not in repr(got)
    assert {one.headers["host"] for one in feed.asked} == {f"feed.example:{feed.port}"}


async def test_what_another_host_answers_is_never_quoted(client: PoliteClient, feed: HostileFeed) -> None:
    feed.scripts["/start"] = redirect(f"http://other.example:{feed.port}/far")
    for status in (200, 400, 401, 403, 404, 410, 429, 500, 503):
        feed.scripts["/far"] = answer(b"<html>secret of another host", status)
        for rules in (FetchRules(), FetchRules(refusal_cooldown_s=60), FetchRules(empty_text="secret")):
            got = await client.fetch(f"http://feed.example:{feed.port}/start", FetchState(), rules)
            assert got.outcome is not Outcome.FRESH
            assert "secret" not in got.message
    feed.scripts["/far"] = plainly(b"secret secret\r\n\r\n")
    got = await client.fetch(f"http://feed.example:{feed.port}/start", FetchState(), FetchRules())
    assert "secret" not in got.message


async def test_an_address_with_a_password_shows_none(client: PoliteClient, feed: HostileFeed) -> None:
    """E15."""
    nowhere = "http://user:pass-word-of-mine@127.0.0.1:9/x?token=token-of-mine"
    messages = [(await client.fetch(nowhere, FetchState(), FetchRules())).message]
    for script in (plainly(b"x\r\n\r\n"), plainly(b""), redirect("ftp://x/"), answer(b"no", 404)):
        feed.scripts["/data"] = script
        url = f"http://user:pass-word-of-mine@feed.example:{feed.port}/data?token=token-of-mine"
        messages.append((await client.fetch(url, FetchState(), FetchRules())).message)
    feed.scripts["/data"] = plainly(head(Content_Length=9))
    rules = FetchRules(deadline_s=0.000_001)
    messages.append((await client.fetch(nowhere, FetchState(), rules)).message)
    assert all(messages)
    assert not any("of-mine" in message or "user" in message for message in messages)


async def test_a_key_that_the_provider_says_back_is_blanked_everywhere(client: PoliteClient, feed: HostileFeed) -> None:
    echoes = (KEY, "k3y%2Fof%2Bthe_operator", "k3y\\/of+the_operator")
    for echo in echoes:
        feed.scripts["/data"] = answer(f'{{"you": "{echo}"}}'.encode(), ETag=f'"{echo}"')
        got = await fetched(client, feed)
        assert (got.outcome, got.state.etag) == (Outcome.FRESH, None)
        assert got.body == b'{"you": "' + b"*" * len(echo) + b'"}'
        feed.scripts["/data"] = answer(b"bad key " + echo.encode(), 403)
        got = await fetched(client, feed)
        assert (got.outcome, "*****" in got.message, "k3y" in got.message) == (Outcome.AUTH_REFUSED, True, False)


class KeyedQuakes(UsgsQuakes):
    """A feed that takes a key."""

    source = "keyed_quakes"

    def __init__(self, credential: Credential) -> None:
        self.rules = replace(UsgsQuakes.rules, credential=credential)


@pytest.mark.parametrize("credential", [HEADER, QUERY])
async def test_the_setting_reaches_the_provider_and_no_file(
    client: PoliteClient, feed: HostileFeed, tmp_path: Path, credential: Credential
) -> None:
    feed.scripts["/data"] = answer(QUAKES, ETag=f'"{KEY}"')
    settings = Settings(
        data_dir=tmp_path,
        feeds={"keyed_quakes": {"url": f"http://feed.example:{feed.port}/data", "token": KEY}},  # type: ignore[dict-item]
    )
    feeds = {"keyed_quakes": KeyedQuakes(credential)}
    collector = FeedCollector(
        feeds, client, FileBodyStore(tmp_path), ManualClock(datetime(2026, 3, 20, tzinfo=UTC)), settings
    )
    batches = [batch async for batch in collector.batches("keyed_quakes", None, manual=True)]
    assert "k3y" in str(feed.asked[0])
    assert "k3y" not in repr(batches)
    assert not any(b"k3y" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    feed.scripts["/data"] = answer(f"no such key: {KEY}".encode(), 401)
    with pytest.raises(FeedError) as caught:
        async for _ in collector.batches("keyed_quakes", None, manual=True):
            pass
    assert (caught.value.code, "k3y" in repr(caught.value.message)) == ("auth_refused", False)


async def test_rejects_of_another_hosts_body_are_counted_and_not_quoted(
    client: PoliteClient, feed: HostileFeed, tmp_path: Path
) -> None:
    """E13."""
    feed.scripts["/start"] = redirect(f"http://other.example:{feed.port}/far")
    settings = Settings(
        data_dir=tmp_path,
        feeds={"usgs_quakes": {"url": f"http://feed.example:{feed.port}/start"}},  # type: ignore[dict-item]
    )
    collector = FeedCollector(
        {"usgs_quakes": UsgsQuakes()}, client, FileBodyStore(tmp_path), ManualClock(datetime(2026, 3, 20, tzinfo=UTC)),
        settings,
    )  # fmt: skip
    good = {"id": "q", "properties": {"time": 1773964800000, "updated": 1, "mag": 1}, "geometry": None}
    bad = {"id": "secret", "properties": {"time": "secret"}}
    feed.scripts["/far"] = answer(orjson.dumps({"features": [good, bad]}))
    batches = [batch async for batch in collector.batches("usgs_quakes", None, manual=True)]
    assert (len(batches[-1].rejects), "secret" in repr(batches[-1].rejects)) == (1, False)
    for body in (orjson.dumps({"features": [bad]}), b'{"secret": 1}'):
        feed.scripts["/far"] = answer(body)
        with pytest.raises(FeedError) as caught:
            async for _ in collector.batches("usgs_quakes", None, manual=True):
                pass
        assert "secret" not in caught.value.message + (caught.value.sample or "")


async def test_a_name_that_changes_its_meaning_leads_nowhere(feed: HostileFeed) -> None:
    """DNS rebinding."""
    names = Names(feed_example=["127.0.0.1", "127.0.0.2"])
    async with PoliteClient(ManualClock(datetime(2026, 3, 20, tzinfo=UTC)), resolver=names) as client:
        feed.scripts["/start"] = redirect("/data")
        got = await fetched(client, feed, "/start")
        assert got.outcome is Outcome.REDIRECT_REFUSED
    assert (names.asked, feed.paths()) == (["feed.example", "feed.example"], ["/start"])


async def test_an_address_that_a_feed_declares_is_never_a_private_one(client: PoliteClient, feed: HostileFeed) -> None:
    got = await fetched(client, feed, own_address=False)
    assert (got.outcome, feed.asked) == (Outcome.REDIRECT_REFUSED, [])
