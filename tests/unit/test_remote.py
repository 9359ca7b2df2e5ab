"""What others send is read totally: a value or None, and no text of theirs in ours."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planetwire.remote import (
    HEADER_CHARS_MAX,
    HOST_CHARS_MAX,
    RETRY_AFTER_MAX_S,
    describe_error,
    host_of,
    http_date,
    plain_header,
    retry_after,
    whole_number,
)

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("120", 120.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("999999999999999", RETRY_AFTER_MAX_S),
        ("Fri, 20 Mar 2026 12:10:00 GMT", 600.0),
        ("Friday, 20-Mar-26 12:10:00 GMT", 600.0),
        ("Fri Mar 20 12:10:00 2026", 600.0),
        ("Fri, 20 Mar 2026 11:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_MAX_S),
        ("Fri, 31 Dec 9999 23:59:59 -2359", None),
        ("Mon, 01 Jan 1900 00:00:00 +2359", 0.0),
        ("Fri, 20 Mar 99999999999999999999 12:10:00 GMT", None),
        ("Fri, 20 Mar 2026 99:99:99 GMT", None),
        ("9" * 5_000, None),
        ("\xb2", None),
        ("１２", None),
        ("-5", None),
        ("+5", None),
        ("1e9", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("12, 13", None),
        ("\0", None),
    ],
)
def test_a_wait_is_seconds_or_a_date_or_nothing(text: str, wait_s: float | None) -> None:
    assert retry_after({"retry-after": text}, NOW) == wait_s
    assert retry_after({"x-rate-limit-retry-after-seconds": text}, NOW) == wait_s


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d{1,30} [A-Z][a-z]{2} \d{1,25} \d+:\d+:\d+ [-+A-Z0-9]{1,9}"))
def test_any_header_is_read_without_an_error(text: str) -> None:
    wait_s = retry_after({"retry-after": text}, NOW)
    assert wait_s is None or 0 <= wait_s <= RETRY_AFTER_MAX_S
    at = http_date(text)
    assert at is None or at.tzinfo is UTC
    number = whole_number(text)
    assert number is None or 0 <= number < 10**15
    kept = plain_header(text)
    assert kept is None or (kept.isascii() and kept.isprintable() and len(kept) <= HEADER_CHARS_MAX)


@given(st.text() | st.builds("http://{}:{}@{}/{}?{}".format, *[st.text()] * 5))
def test_any_address_has_a_host_to_show(address: str) -> None:
    shown = host_of(address)
    assert shown.isprintable()
    assert len(shown) <= HOST_CHARS_MAX + 10


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://user:s3cret@example.org/path?token=s3cret#s3cret", "example.org"),
        ("https://user:s3c/ret@example.org/", "a malformed address"),
        ("http://s3cret@[::1]:8080/", "[::1]:8080"),
        ("http://example.org:port/", "a malformed address"),
        ("/path", "an address without a host"),
    ],
)
def test_a_shown_host_has_no_secret(address: str, shown: str) -> None:
    assert host_of(address) == shown


def test_an_error_is_told_describe_error() -> None:
    for error in (httpx.RemoteProtocolError, httpx.ReadError, httpx.ConnectTimeout, httpx.DecodingError):
        words = describe_error(error("illegal status line: bytearray(b'SSH-2.0-s3cret')"))
        assert words
        assert "s3cret" not in words
