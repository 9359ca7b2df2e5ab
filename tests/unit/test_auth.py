"""Who may do what: tokens, the one-time code, the signed cookie, and the brake on guessing."""

from __future__ import annotations

import pytest

from planetwire.errors import Unauthorised
from planetwire.web.auth import CODE_S, FAILURE_WINDOW_S, FAILURES_MAX, SESSION_S, Guard, TooManyFailures, same_origin


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


def guard(clock: Clock | None = None, **options: object) -> Guard:
    return Guard("admin", "ingest", b"k" * 32, now=clock or Clock(), **options)  # type: ignore[arg-type]


def test_the_printed_code_signs_in_once_and_only_for_ten_minutes() -> None:
    """Q15."""
    clock = Clock()
    one = guard(clock, login_code="code")
    cookie = one.sign_in(code="code", token=None, address="a")
    assert one.session_valid(cookie)
    with pytest.raises(Unauthorised):
        one.sign_in(code="code", token=None, address="a")
    late = guard(clock, login_code="code")
    clock.at += CODE_S + 1
    with pytest.raises(Unauthorised):
        late.sign_in(code="code", token=None, address="a")


def test_a_cookie_that_was_changed_or_is_old_is_no_session() -> None:
    clock = Clock()
    one = guard(clock)
    cookie = one.sign_in(code=None, token="admin", address="a")
    expiry, nonce, signature = cookie.split(".")
    assert not one.session_valid(f"{int(expiry) + 1}.{nonce}.{signature}")
    assert not one.session_valid(f"{expiry}.{nonce}.{'0' * len(signature)}")
    assert not one.session_valid(None) and not one.session_valid("") and not one.session_valid("..")
    clock.at += SESSION_S + 1
    assert not one.session_valid(cookie)


def test_guessing_is_slowed_down_per_address() -> None:
    """Q35."""
    clock = Clock()
    one = guard(clock)
    for _ in range(FAILURES_MAX):
        with pytest.raises(Unauthorised):
            one.sign_in(code=None, token="wrong", address="a")
    with pytest.raises(TooManyFailures):
        one.sign_in(code=None, token="admin", address="a")
    assert one.sign_in(code=None, token="admin", address="b")
    clock.at += FAILURE_WINDOW_S + 1
    assert one.sign_in(code=None, token="admin", address="a")


@pytest.mark.parametrize(
    ("header", "right"),
    [("Bearer admin", True), ("bearer admin", True), ("Bearer ", False), ("Basic admin", False), (None, False)],
)
def test_a_bearer_token_is_taken_as_it_is_written(header: str | None, right: bool) -> None:
    assert guard().bearer_is(header, "admin") is right


def test_reads_can_be_closed() -> None:
    closed = guard(public_reads=False)
    with pytest.raises(Unauthorised):
        closed.check_read(None, None)
    closed.check_read("Bearer admin", None)
    closed.check_read(None, closed.sign_in(code=None, token="admin", address="a"))
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
