"""Names under which an installation may be reached."""

from __future__ import annotations

import pytest

from planetwire.errors import SetupError
from planetwire.web.http.hosts import AllowedHosts, listed

ALWAYS = [
    *("localhost", "LOCALHOST:8000", "localhost.", "terminal.localhost:1"),
    *("127.0.0.1", "127.0.0.1:8000", "192.0.2.7:80", "[::1]", "[::1]:8000", "[2001:db8::7]:65535"),
]
NEVER = [
    *("", "evil.example", "evil.example:8000", "localhost.evil.example", "notlocalhost", "127.0.0.1.evil.example"),
    *("127.0.0.1:", "127.0.0.1:8000:1", "127.0.0.1@evil.example", "[::1", "::1", "[evil.example]", "localhost/x"),
    *("127.0.0.1, evil.example", "127.1", "0x7f.0.0.1", " localhost", "localhost\n", "１２７.0.0.1", "a" * 300),
]


@pytest.mark.parametrize("host", ALWAYS)
def test_loopback_names_and_addresses_are_always_ours(host: str) -> None:
    assert AllowedHosts().allows(host)


@pytest.mark.parametrize("host", NEVER)
def test_other_names_are_not(host: str) -> None:
    assert not AllowedHosts().allows(host)


@pytest.mark.parametrize("host", ["", "[::1", "a b", "a" * 300, "x\r\ny"])
def test_what_is_no_host_is_never_taken(host: str) -> None:
    assert not AllowedHosts(["*"]).allows(host)


def test_names_are_added_by_the_setting() -> None:
    hosts = AllowedHosts(listed("earth.example.org, *.Example.NET,"))
    assert hosts.allows("Earth.Example.Org:443")
    assert hosts.allows("a.b.example.net")
    assert hosts.allows("localhost")
    assert not hosts.allows("example.org")
    assert not hosts.allows("example.net")
    assert not hosts.allows("evilexample.net")
    assert AllowedHosts(["*"]).allows("anything.example")


@pytest.mark.parametrize("name", ["https://example.org", "example.org:443", "a b", "*.*", "*example.org", "é.example"])
def test_what_is_no_name_stops_the_start(name: str) -> None:
    with pytest.raises(SetupError, match="PLANETWIRE_ALLOWED_HOSTS"):
        AllowedHosts([name])
