"""Whom a request comes from: what proxies say is believed from those that are named, and from nobody else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planetwire.model import Role
from planetwire.setting_texts import networks, role_mapping
from planetwire.web.http.proxies import BehindProxies, TrustedProxies, peer_of

TRUSTED = TrustedProxies(networks("127.0.0.1, ::1, 10.0.0.0/8"))


def forwarded(*values: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"x"), *((b"x-forwarded-for", value) for value in values)]


@pytest.mark.parametrize(
    ("peer", "values", "address"),
    [
        ("192.0.2.1", (b"198.51.100.1",), "192.0.2.1"),
        ("127.0.0.1", (), "127.0.0.1"),
        ("127.0.0.1", (b" ",), "127.0.0.1"),
        ("127.0.0.1", (b"198.51.100.1, 192.0.2.9",), "192.0.2.9"),
        ("127.0.0.1", (b"198.51.100.1", b"192.0.2.9"), "192.0.2.9"),
        ("127.0.0.1", (b"198.51.100.1, 192.0.2.9, 10.0.0.7",), "192.0.2.9"),
        ("127.0.0.1", (b"10.0.0.8, 10.0.0.7",), "10.0.0.8"),
        ("127.0.0.1", (b"192.0.2.9, unknown, 10.0.0.7",), "10.0.0.7"),
        ("127.0.0.1", (b"192.0.2.9:4711",), "192.0.2.9"),
        ("::1", (b"[2001:db8::1]:4711",), "2001:db8::1"),
        ("::ffff:127.0.0.1", (b"::ffff:192.0.2.9",), "192.0.2.9"),
        (None, (b"192.0.2.9",), "unknown"),
        ("testclient", (b"192.0.2.9",), "testclient"),
        ("127.0.0.1", (b"192.0.2.9," + b"10.0.0.1," * 5_000,), "10.0.0.1"),
    ],
)
def test_the_client_is_the_right_most_address_that_is_no_trusted_proxy(
    peer: str | None, values: tuple[bytes, ...], address: str
) -> None:
    assert TRUSTED.client_address(peer, forwarded(*values)) == address


def test_by_default_nobody_is_believed_not_even_this_machine() -> None:
    nobody = TrustedProxies()
    headers = [*forwarded(b"192.0.2.9"), (b"x-forwarded-proto", b"https"), (b"remote-user", b"alice")]
    assert nobody.client_address("127.0.0.1", headers) == "127.0.0.1"
    assert nobody.scheme("127.0.0.1", headers, "http") == "http"
    assert nobody.user("127.0.0.1", headers) is None


@pytest.mark.parametrize(
    ("peer", "said", "own", "scheme"),
    [
        ("127.0.0.1", b"https", "http", "https"),
        ("127.0.0.1", b"https", "ws", "wss"),
        ("127.0.0.1", b"http, https", "http", "https"),
        ("127.0.0.1", b"gopher", "http", "http"),
        ("127.0.0.1", b"http", "https", "http"),
        ("192.0.2.1", b"https", "http", "http"),
    ],
)
def test_the_scheme_is_the_proxys(peer: str, said: bytes, own: str, scheme: str) -> None:
    assert TRUSTED.scheme(peer, [(b"x-forwarded-proto", said)], own) == scheme


USERS = TrustedProxies(networks("10.0.0.1"), b"remote-user", None, role_mapping("alice=admin, *=viewer"))
GROUPS = TrustedProxies(networks("10.0.0.1"), b"remote-user", b"remote-groups", role_mapping("ops=operator"))


@pytest.mark.parametrize(
    ("proxies", "headers", "found"),
    [
        (USERS, [(b"remote-user", b"alice")], ("alice", Role.ADMIN)),
        (USERS, [(b"remote-user", "Zoë".encode())], ("Zoë", Role.VIEWER)),
        (USERS, [(b"remote-user", b"alice"), (b"remote-user", b"bob")], None),
        (USERS, [(b"remote-user", b"")], None),
        (USERS, [(b"remote-user", b"\xff")], None),
        (USERS, [(b"remote-user", b"a\x1b[2J")], None),
        (USERS, [(b"remote-user", b"a" * 101)], None),
        (USERS, [(b"remote_user", b"alice")], None),
        (GROUPS, [(b"remote-user", b"ops")], ("ops", Role.VIEWER)),
        (GROUPS, [(b"remote-user", b"bob"), (b"remote-groups", b"staff, ops")], ("bob", Role.OPERATOR)),
        (GROUPS, [(b"remote-user", b"bob"), (b"remote-groups", b"admin,ops")], ("bob", Role.ADMIN)),
        (GROUPS, [(b"remote-user", b"bob"), (b"remote-groups", b"*")], ("bob", Role.VIEWER)),
    ],
)
def test_a_user_has_the_role_that_the_mapping_gives(
    proxies: TrustedProxies, headers: list[tuple[bytes, bytes]], found: tuple[str, Role] | None
) -> None:
    assert proxies.user("10.0.0.1", headers) == found
    assert proxies.user("10.0.0.2", headers) is None


NAMES = st.sampled_from([b"x-forwarded-for", b"x-forwarded-proto", b"remote-user", b"remote-groups", b"host"])


@given(st.text(max_size=40), st.lists(st.tuples(NAMES, st.binary(max_size=300)), max_size=6))
def test_nothing_that_stands_in_a_header_raises_or_speaks_for_a_stranger(
    peer: str, headers: list[tuple[bytes, bytes]]
) -> None:
    for known in ("10.0.0.1", peer):
        assert GROUPS.client_address(known, headers)
        assert GROUPS.scheme(known, headers, "http") in ("http", "https")
        GROUPS.user(known, headers)
    assert GROUPS.client_address("192.0.2.1", headers) == "192.0.2.1"
    assert GROUPS.user("192.0.2.1", headers) is None


async def test_the_application_sees_the_client_and_can_still_ask_for_the_peer() -> None:
    seen: list[dict[str, object]] = []

    async def app(scope: object, receive: object, send: object) -> None:
        seen.append(scope)  # type: ignore[arg-type]

    headers = [*forwarded(b"192.0.2.9"), (b"x-forwarded-proto", b"https")]
    scope = {"type": "http", "scheme": "http", "client": ("127.0.0.1", 4711), "headers": headers}
    await BehindProxies(app, TRUSTED)(scope, None, None)  # type: ignore[arg-type]
    assert (seen[0]["client"], seen[0]["scheme"], peer_of(seen[0])) == (("192.0.2.9", 0), "https", "127.0.0.1")
    await BehindProxies(app, TrustedProxies())(scope, None, None)  # type: ignore[arg-type]
    assert (seen[1]["client"], seen[1]["scheme"]) == (("127.0.0.1", 4711), "http")
