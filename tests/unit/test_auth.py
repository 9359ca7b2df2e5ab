"""Who may do what: tokens, the one-time code, the signed cookie, and the brake on guessing."""

from __future__ import annotations

from typing import Any

import pytest

from planetwire.errors import Unauthorised
from planetwire.web.auth import SESSION_S, Guard, TooManyFailures, same_origin
from planetwire.web.codes_memory import MemoryCodes
from planetwire.web.failures_memory import FAILURE_WINDOW_S, FAILURES_MAX, MemoryBrake


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


def guard(clock: Clock | None = None, **options: Any) -> Guard:
    return Guard("admin", "ingest", b"k" * 32, now=clock or Clock(), **options)


async def test_an_offered_code_signs_in_once() -> None:
    """Q15."""
    codes = MemoryCodes()
    one = guard(codes=codes)
    await codes.offer("code")
    assert one.session_valid(await one.sign_in(code="code", token=None, address="a"))
    with pytest.raises(Unauthorised):
        await one.sign_in(code="code", token=None, address="a")


async def test_a_cookie_that_was_changed_or_is_old_is_no_session() -> None:
    clock = Clock()
    one = guard(clock)
    cookie = await one.sign_in(code=None, token="admin", address="a")
    expiry, nonce, signature = cookie.split(".")
    assert not one.session_valid(f"{int(expiry) + 1}.{nonce}.{signature}")
    assert not one.session_valid(f"{expiry}.{nonce}.{'0' * len(signature)}")
    assert not one.session_valid(None) and not one.session_valid("") and not one.session_valid("..")
    clock.at += SESSION_S + 1
    assert not one.session_valid(cookie)


async def test_guessing_is_slowed_down_per_address() -> None:
    """Q35."""
    clock = Clock()
    one = guard(brake=MemoryBrake(clock))
    for _ in range(FAILURES_MAX):
        with pytest.raises(Unauthorised):
            await one.sign_in(code=None, token="wröng", address="a")
    with pytest.raises(TooManyFailures):
        await one.sign_in(code=None, token="admin", address="a")
    assert await one.sign_in(code=None, token="admin", address="b")
    clock.at += FAILURE_WINDOW_S + 1
    assert await one.sign_in(code=None, token="admin", address="a")


@pytest.mark.parametrize(
    ("header", "right"),
    [("Bearer admin", True), ("bearer admin", True), ("Bearer ", False), ("Basic admin", False), (None, False)],
)
def test_a_bearer_token_is_taken_as_it_is_written(header: str | None, right: bool) -> None:
    assert guard().bearer_is(header, "admin") is right


async def test_reads_can_be_closed() -> None:
    closed = guard(public_reads=False)
    with pytest.raises(Unauthorised):
        closed.check_read(None, None)
    closed.check_read("Bearer admin", None)
    closed.check_read(None, await closed.sign_in(code=None, token="admin", address="a"))
    guard().check_read(None, None)


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
