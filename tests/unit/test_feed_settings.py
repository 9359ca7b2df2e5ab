"""A feed's settings are looked at before anything starts: what could not work, or would give a key away, stops it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planetwire.collect.feed_usgs import UsgsQuakes
from planetwire.collect.feeds import access_to, check_feed, rules_of
from planetwire.collect.http.client import DEADLINE_S, MAX_BODY_BYTES
from planetwire.collect.http.credential import Credential
from planetwire.errors import SetupError
from planetwire.settings import FeedSettings, Settings
from planetwire.wiring.work import check_supported

KEY = "key-of-the-operator"
OWN = "https://mirror.example/all_day.geojson"


class Keyed(UsgsQuakes):
    """A provider that takes a key."""

    rules = replace(UsgsQuakes.rules, credential=Credential("X-Key"))


@pytest.mark.parametrize(
    "address",
    [
        "ftp://example.org/",
        "example.org/x",
        "/x",
        "http://",
        "https://user:key-of-mine@",
        "http://a:b:c/",
        "http://[/",
        "x",
    ],
)
def test_an_address_that_cannot_be_asked_stops_the_start_and_shows_no_password(address: str) -> None:
    with pytest.raises(SetupError, match="PLANETWIRE_FEEDS__USGS_QUAKES__URL") as caught:
        check_supported(Settings(feeds={"usgs_quakes": FeedSettings(url=address)}))
    assert "of-mine" not in caught.value.message


@pytest.mark.parametrize(
    "address",
    [OWN, "http://127.0.0.1:9000/x", "http://[::1]:9/", "http://feeds:8080/x?y=z", "https://u:p@example.org/"],
)
def test_an_address_that_can_be_asked_is_taken(address: str) -> None:
    check_supported(Settings(feeds={"usgs_quakes": FeedSettings(url=address)}))


def test_a_token_that_would_go_nowhere_stops_the_start() -> None:
    with pytest.raises(SetupError, match="PLANETWIRE_FEEDS__USGS_QUAKES__TOKEN") as caught:
        check_supported(Settings(feeds={"usgs_quakes": {"token": KEY}}))  # type: ignore[dict-item]
    assert KEY not in caught.value.message
    check_supported(Settings(feeds={"usgs_quakes": {"token": KEY, "url": OWN}}))  # type: ignore[dict-item]
    check_feed(Keyed(), FeedSettings.model_validate({"token": KEY}))


@pytest.mark.parametrize("token", ["a\r\nX-Evil: 1", "tök-of-mine", "of-mine\0", " of-mine", "of-mine " * 100])
def test_a_token_that_no_header_can_carry_stops_the_start(token: str) -> None:
    with pytest.raises(SetupError, match="TOKEN") as caught:
        check_feed(Keyed(), FeedSettings.model_validate({"token": token}))
    assert "of-mine" not in caught.value.message


def test_a_token_goes_as_the_feed_declares_and_else_as_bearer() -> None:
    own = FeedSettings.model_validate({"token": KEY, "url": OWN})
    assert access_to(Keyed(), own).credential == Credential("X-Key")
    bearer = access_to(UsgsQuakes(), own)
    assert (bearer.token, bearer.credential, bearer.own_address) == (
        KEY,
        Credential("Authorization", prefix="Bearer "),
        True,
    )
    assert access_to(UsgsQuakes(), FeedSettings()).own_address is False


def test_an_operators_bounds_win() -> None:
    def bounds(**own: Any) -> tuple[float, int]:
        rules = rules_of(UsgsQuakes(), FeedSettings(**own))
        return rules.deadline_s, rules.limit_bytes

    assert bounds() == (DEADLINE_S, MAX_BODY_BYTES)
    assert bounds(deadline_s=7, max_body_bytes=9) == (7.0, 9)
