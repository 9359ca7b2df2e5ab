"""Who may do what: tokens and roles, sessions that end, and the brake that no right token meets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from starlette.requests import Request

from planetwire.errors import Forbidden, Unauthorised
from planetwire.model import Role
from planetwire.ports import Holder, Limit
from planetwire.setting_texts import networks
from planetwire.text.fingerprint import fingerprint
from planetwire.web.access.auth import SESSION_S, Guard, TooMany, limit_key, same_origin
from planetwire.web.access.caller import Caller
from planetwire.web.access.cookie import COOKIE
from planetwire.web.http.proxies import TrustedProxies
from planetwire.web.stores.codes_memory import MemoryCodes
from planetwire.web.stores.limits_memory import DEFAULTS, WINDOW_S, MemoryLimits
from planetwire.web.stores.sessions_memory import MemorySessions

FAILURES_MAX = DEFAULTS[Limit.SIGN_IN]


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


class Book:
    def __init__(self, *holders: Holder) -> None:
        self.kept = list(holders)

    def holders(self) -> Sequence[Holder]:
        return self.kept


def guard(clock: Clock | None = None, **options: Any) -> Guard:
    clock = clock or Clock()
    options.setdefault("limits", MemoryLimits(now=clock))
    options.setdefault("sessions", MemorySessions(clock))
    return Guard("admin", "ingest", b"k" * 32, now=clock, **options)


def asked(method: str = "GET", peer: str = "a", **headers: str) -> Request:
    pairs = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return Request({"type": "http", "method": method, "path": "/", "headers": pairs, "client": (peer, 1)})


async def signed_in(one: Guard, cookie: str | None) -> bool:
    return await one.known(Caller("a", cookie=cookie)) is not None


async def test_an_offered_code_signs_in_once() -> None:
    """Q15."""
    codes = MemoryCodes()
    one = guard(codes=codes)
    await codes.offer("code")
    assert await signed_in(one, await one.sign_in(code="code", token=None, address="a"))
    with pytest.raises(Unauthorised):
        await one.sign_in(code="code", token=None, address="a")


async def test_a_session_ends_with_signing_out_and_not_only_in_the_browser() -> None:
    one = guard()
    cookie = await one.sign_in(code=None, token="admin", address="a")
    other = await one.sign_in(code=None, token="admin", address="a")
    assert await signed_in(one, cookie)
    await one.sign_out(cookie)
    assert (await signed_in(one, cookie), await signed_in(one, other)) == (False, True)


async def test_a_cookie_that_was_changed_or_is_old_is_no_session() -> None:
    clock = Clock()
    one = guard(clock)
    cookie = await one.sign_in(code=None, token="admin", address="a")
    name, _, signature = cookie.rpartition(".")
    for wrong in (
        f"{name}x.{signature}",
        f"{name}.{'A' * len(signature)}",
        "",
        "..",
        f"{name}.\xe9",
        "a" * 5_000,
        "\ud800",
    ):
        assert not await signed_in(one, wrong)
        await one.sign_out(wrong)
    clock.at += SESSION_S + 1
    assert not await signed_in(one, cookie)


async def test_a_cookie_signed_with_an_empty_key_or_another_is_no_session() -> None:
    sessions = MemorySessions(Clock())
    one, other = guard(sessions=sessions), guard(sessions=sessions)
    other.session_key = b""
    assert not await signed_in(one, await other.sign_in(code=None, token="admin", address="a"))


async def test_another_admin_token_ends_all_sessions() -> None:
    sessions, codes = MemorySessions(Clock()), MemoryCodes()
    named = Book(Holder("token bot", Role.VIEWER, fingerprint("bots")))
    one = guard(sessions=sessions, codes=codes, operator_token="operator", named=named)
    await codes.offer("code")
    cookies = [await one.sign_in(code="code", token=None, address="a")]
    cookies += [await one.sign_in(code=None, token=token, address="a") for token in ("admin", "operator", "bots")]
    assert [await signed_in(one, cookie) for cookie in cookies] == [True] * 4
    changed = guard(sessions=sessions, operator_token="operator", named=named)
    changed.admin_token = "another"
    assert [await signed_in(changed, cookie) for cookie in cookies] == [False] * 4


async def test_a_token_that_was_taken_back_or_made_anew_ends_its_sessions_and_a_lesser_role_lessens_them() -> None:
    book = Book(Holder("token bot", Role.OPERATOR, fingerprint("first")))
    one = guard(named=book)
    cookie = await one.sign_in(code=None, token="first", address="a")
    book.kept = [Holder("token bot", Role.VIEWER, fingerprint("first"))]
    actor = await one.known(Caller("a", cookie=cookie))
    assert actor is not None and (actor.who, actor.role) == ("token bot", Role.VIEWER)
    book.kept = [Holder("token bot", Role.OPERATOR, fingerprint("second"))]
    assert not await signed_in(one, cookie)
    book.kept = []
    assert not await signed_in(one, cookie)


@pytest.mark.parametrize("way", ["sign in", "bearer", "ingest", "read"])
async def test_guessing_is_slowed_down_per_address_and_a_right_token_never(way: str) -> None:
    """Q35: whoever guesses from the address of an honest program does not lock it out."""
    clock = Clock()
    one = guard(clock, public_reads=False)

    async def tried(token: str, address: str = "a") -> None:
        if way == "sign in":
            await one.sign_in(code=None, token=token, address=address)
        elif way == "ingest":
            await one.check_ingest(f"Bearer {token}", address)
        elif way == "bearer":
            await one.admin(asked("POST", address, authorization=f"Bearer {token}"))
        else:
            await one.reader(asked("GET", address, authorization=f"Bearer {token}"))

    for _ in range(FAILURES_MAX):
        with pytest.raises((Unauthorised, Forbidden)):
            await tried("wröng")
    with pytest.raises(TooMany) as told:
        await tried("wröng")
    assert (told.value.code, 0 < told.value.retry_after_s <= WINDOW_S) == ("too_many_failures", True)
    await tried("admin")
    with pytest.raises((Unauthorised, Forbidden)):
        await tried("wröng", "b")
    clock.at += WINDOW_S + 1
    with pytest.raises((Unauthorised, Forbidden)):
        await tried("wröng")


async def test_codes_are_braked_whether_right_or_wrong() -> None:
    codes = MemoryCodes()
    one = guard(codes=codes)
    for _ in range(FAILURES_MAX):
        with pytest.raises(Unauthorised):
            await one.sign_in(code="wrong", token=None, address="a")
    await codes.offer("right")
    with pytest.raises(TooMany):
        await one.sign_in(code="right", token=None, address="a")
    assert await one.sign_in(code="right", token=None, address="b")


async def test_pushes_and_openings_are_limited_each_for_itself() -> None:
    """S13."""
    rates = {Limit.SIGN_IN: 1, Limit.INGEST: 2, Limit.STREAM: 3}
    one = guard(limits=MemoryLimits(rates, Clock()))
    for _ in range(2):
        await one.check_ingest("Bearer ingest", "a")
    with pytest.raises(TooMany) as told:
        await one.check_ingest("Bearer ingest", "a")
    assert told.value.code == "too_many_pushes"
    for _ in range(3):
        await one.check_opening("a")
    with pytest.raises(TooMany) as told:
        await one.check_opening("a")
    assert told.value.code == "too_many_openings"


@pytest.mark.parametrize(
    ("address", "key"),
    [("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "2001:db8::/64"), ("2001:db8::2", "2001:db8::/64"), ("a:b", "a:b")],
)
def test_who_has_one_address_of_a_network_has_all_of_them(address: str, key: str) -> None:
    assert limit_key(address) == key


@pytest.mark.parametrize("token", ["", " ", "\ud800", "é" * 3])
async def test_no_token_is_none(token: str) -> None:
    """Also where a token should be empty: then nobody has it."""
    one = Guard("", "", b"k" * 32, operator_token="", viewer_token="")
    for credentials in (Caller("a", f"Bearer {token}"), Caller("a", f"bearer  {token}")):
        with pytest.raises(Unauthorised):
            await one.known(credentials)
    with pytest.raises(Unauthorised):
        await one.sign_in(code=None, token=token, address="a")
    with pytest.raises(Forbidden):
        await one.check_ingest(f"Bearer {token}", "a")


@pytest.mark.parametrize(
    ("header", "right"),
    [("Bearer admin", True), ("bearer admin", True), ("Bearer ", False), ("Basic admin", False), (None, False)],
)
async def test_a_bearer_token_is_taken_as_it_is_written(header: str | None, right: bool) -> None:
    try:
        actor = await guard().known(Caller("a", header))
    except Unauthorised:
        actor = None
    assert (actor is not None) is right


ROLES = [("admin", Role.ADMIN), ("operator", Role.OPERATOR), ("viewer", Role.VIEWER), ("bots", Role.OPERATOR)]


@pytest.mark.parametrize("by", ["bearer", "cookie"])
@pytest.mark.parametrize(("token", "role"), ROLES)
async def test_each_role_may_what_the_lesser_may_and_no_more(by: str, token: str, role: Role) -> None:
    book = Book(Holder("token bot", Role.OPERATOR, fingerprint("bots")))
    one = guard(operator_token="operator", viewer_token="viewer", named=book, public_reads=False)
    cookie = await one.sign_in(code=None, token=token, address="a")
    headers = {"cookie": f"{COOKIE}={cookie}", "origin": "http://here", "host": "here"}
    request = asked("POST", **(headers if by == "cookie" else {"authorization": f"Bearer {token}"}))
    assert (await one.viewer(request)).role is role
    await one.reader(request)
    for need, check in ((Role.OPERATOR, one.operator), (Role.ADMIN, one.admin)):
        if list(Role).index(role) >= list(Role).index(need):
            assert (await check(request)).address == "a"
        else:
            with pytest.raises(Forbidden) as told:
                await check(request)
            assert told.value.code == "role_too_small"


async def test_the_ingest_token_opens_nothing_else_and_is_no_wrong_one() -> None:
    one = guard(public_reads=False)
    for _ in range(FAILURES_MAX + 1):
        with pytest.raises(Forbidden):
            await one.reader(asked(authorization="Bearer ingest"))


async def test_a_cookie_writes_from_our_own_pages_only() -> None:
    one = guard()
    cookie = f"{COOKIE}={await one.sign_in(code=None, token='admin', address='a')}"
    assert await one.admin(asked("POST", cookie=cookie, origin="http://here", host="here"))
    assert await one.viewer(asked("GET", cookie=cookie, origin="http://evil", host="here"))
    for origin in ({}, {"origin": "http://evil"}, {"origin": "null"}):
        with pytest.raises(Forbidden) as told:
            await one.admin(asked("POST", cookie=cookie, host="here", **origin))
        assert told.value.code == "wrong_origin"


async def test_whom_a_trusted_proxy_signed_in_is_known_and_writes_from_our_own_pages_only() -> None:
    roles = {"alice": Role.ADMIN, "*": Role.VIEWER}
    one = guard(proxies=TrustedProxies(networks("10.0.0.1"), b"remote-user", None, roles))
    told: dict[str, str] = {"remote_user": "alice", "host": "here", "x_forwarded_for": "192.0.2.1"}
    actor = await one.admin(asked("POST", "10.0.0.1", origin="https://here", **told))
    assert (actor.who, actor.role, actor.address) == ("alice", Role.ADMIN, "192.0.2.1")
    with pytest.raises(Forbidden):
        await one.admin(asked("POST", "10.0.0.1", **told))
    with pytest.raises(Unauthorised):
        await one.admin(asked("POST", "10.0.0.2", origin="https://here", **told))
    # Its own `Authorization`, passed on, is nobody's token.
    assert await one.viewer(asked("GET", "10.0.0.1", authorization="Basic YTpi", **told))


async def test_reads_can_be_closed() -> None:
    closed = guard(public_reads=False)
    with pytest.raises(Unauthorised):
        await closed.check_read(Caller("a"))
    await closed.check_read(Caller("a", "Bearer admin"))
    await closed.check_read(Caller("a", cookie=await closed.sign_in(code=None, token="admin", address="a")))
    await guard().check_read(Caller("a"))


async def test_diagnostics_and_the_texts_of_errors_can_be_closed_by_themselves() -> None:
    closed = guard(public_diagnostics=False, viewer_token="viewer")
    await closed.reader(asked())
    with pytest.raises(Unauthorised):
        await closed.diagnostics(asked())
    await closed.diagnostics(asked(authorization="Bearer viewer"))
    assert [await closed.sees_errors(Caller("a", header)) for header in (None, "Bearer no", "Bearer viewer")] == [
        False,
        False,
        True,
    ]
    await guard().diagnostics(asked())
    assert await guard().sees_errors(Caller("a"))


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8000", True),
        ("https://Planet.example", "planet.example", True),
        ("http://evil.example", "127.0.0.1:8000", False),
        ("null", "127.0.0.1:8000", False),
        (None, "127.0.0.1:8000", False),
    ],
)
def test_another_site_is_not_our_origin(origin: str | None, host: str, same: bool) -> None:
    assert same_origin(origin, host) is same
