"""Which addresses a feed may lead to, and that what was looked at is what is connected to."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any

import httpcore
import pytest

from planetwire.collect.http.addresses import ADDRESSES_MAX, ip_of, is_public
from planetwire.collect.http.connect import Connections, Gate, Proxies
from planetwire.errors import FeedError, SetupError

PUBLIC = "93.184.216.34"
PUBLIC_V6 = "2606:2800:220:1:248:1893:25c8:1946"


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1",
        "169.254.169.254", "100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
        "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b::10.0.0.1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001::1", "2001:db8::1", "fc00::1",
        "fd00::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1", "5f00::1", "4000::1",
    ],
)  # fmt: skip
def test_these_are_not_in_the_open_network(text: str) -> None:
    address = ip_of(text)
    assert address is not None
    assert not is_public(address)


@pytest.mark.parametrize("text", [PUBLIC, PUBLIC_V6, "1.1.1.1", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::"])
def test_these_are(text: str) -> None:
    address = ip_of(text)
    assert address is not None
    assert is_public(address)


def test_a_name_is_no_address() -> None:
    assert [ip_of(text) for text in ("localhost", "127.1", "2130706433", "0x7f.1", "", "1.1.1.1.example")] == [None] * 6


class Wire:
    """Takes the place of the network: notes where a gate connects to."""

    def __init__(self, *dead: str) -> None:
        self.dead = dead
        self.reached: list[tuple[str, int]] = []

    async def connect_tcp(self, host: str, port: int, *_: Any) -> httpcore.AsyncNetworkStream:
        if host in self.dead:
            raise httpcore.ConnectError("no")
        self.reached.append((host, port))
        return httpcore.AsyncMockStream([])


def gate_to(
    answers: Sequence[Sequence[str]], *, private_ok: bool = False, dead: Sequence[str] = ()
) -> tuple[Gate, Wire]:
    """A gate whose resolver gives these answers, one after the other."""
    left = list(answers)

    async def resolver(host: str, port: int) -> Sequence[str]:
        return left.pop(0)

    gate, wire = Gate(resolver, private_ok=private_ok), Wire(*dead)
    gate._plain = wire  # type: ignore[assignment]
    return gate, wire


async def test_what_was_resolved_is_what_is_connected_to() -> None:
    gate, wire = gate_to([[PUBLIC], ["127.0.0.1"]])
    await gate.connect_tcp("feed.example", 443)
    assert wire.reached == [(PUBLIC, 443)]
    for redirected in (True, False):
        gate, wire = gate_to([[PUBLIC], ["127.0.0.1"]], private_ok=True)
        await gate.connect_tcp("feed.example", 443)
        gate.redirected = redirected
        with pytest.raises(FeedError) as caught:
            await gate.connect_tcp("feed.example", 443)
        assert caught.value.code == "redirect_refused"
        assert wire.reached == [(PUBLIC, 443)]


async def test_of_several_addresses_only_public_ones_are_tried_and_not_many() -> None:
    many = [f"93.184.216.{n}" for n in range(1, 20)]
    gate, wire = gate_to([["127.0.0.1", "10.0.0.1", PUBLIC_V6, PUBLIC]], dead=[PUBLIC_V6])
    await gate.connect_tcp("feed.example", 80)
    assert wire.reached == [(PUBLIC, 80)]
    gate, wire = gate_to([many], dead=many[:ADDRESSES_MAX])
    with pytest.raises(httpcore.ConnectError):
        await gate.connect_tcp("feed.example", 80)


async def test_a_private_address_is_reached_only_if_it_is_the_configured_one() -> None:
    gate, wire = gate_to([], private_ok=True)
    await gate.connect_tcp("192.168.0.7", 8080)
    gate.redirected = True
    await gate.connect_tcp("192.168.0.7", 8080)
    await gate.connect_tcp(PUBLIC, 443)
    for host, port in (("192.168.0.7", 8081), ("192.168.0.8", 8080), ("127.0.0.1", 8080), ("0.0.0.0", 8080)):
        with pytest.raises(FeedError):
            await gate.connect_tcp(host, port)
    assert wire.reached == [("192.168.0.7", 8080), ("192.168.0.7", 8080), (PUBLIC, 443)]


async def test_a_first_step_through_a_proxy_opens_nothing_for_a_redirect() -> None:
    gate, wire = gate_to([], private_ok=True)
    gate.redirected = True
    with pytest.raises(FeedError):
        await gate.connect_tcp("127.0.0.1", 80)
    assert wire.reached == []


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")


def test_proxies_are_those_of_the_environment(proxied: None) -> None:
    found = Proxies()
    assert found.of("https", "feed.example") == "http://proxy.example:3128"
    for scheme, host in (
        ("http", "feed.example"),
        ("https", "a.inside.example"),
        ("https", "localhost"),
        ("https", "::1"),
    ):
        assert found.of(scheme, host) is None


def test_a_proxy_is_not_asked_for_private_addresses(proxied: None) -> None:
    gate, _ = gate_to([])
    connections = Connections(gate, ssl.create_default_context(), Proxies())
    gate.redirected = True
    with pytest.raises(FeedError):
        connections.to("https", "169.254.169.254")


def test_another_kind_of_proxy_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://user:word-of-mine@proxy.example:1080")
    with pytest.raises(SetupError, match=r"ALL_PROXY.*proxy\.example:1080") as caught:
        Proxies()
    assert "of-mine" not in caught.value.message
