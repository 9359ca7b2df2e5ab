"""Whom we send to may answer what it likes: its status is heeded, its words are not kept, and it leads us nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
import pytest_asyncio

from hostile_feed import BLOCK, MIB, HostileFeed, answer, at_length, bomb, chunked, dripping, head, plainly
from hostile_feed import running_hostile_feed as running
from planetwire.collect.push import sink_http
from planetwire.errors import BackendError, BusError
from planetwire.model import BusMessage
from planetwire.relay import bus_webhook
from planetwire.runtime.clock import SystemClock

SECRET = "secret-of-the-test"
MESSAGE = BusMessage("e-1", "satellites", "kind", b"{}")
COOKIES = {"Set_Cookie": "a=secret; Path=/"}
Send = Callable[[], Awaitable[object]]


@pytest.fixture
def other() -> Iterator[HostileFeed]:
    with running() as made:
        yield made


@pytest_asyncio.fixture
async def hook(other: HostileFeed) -> AsyncIterator[Send]:
    bus = bus_webhook.WebhookBus(f"{other.url}/x", SECRET, SystemClock())
    yield lambda: bus.send(MESSAGE)
    await bus.aclose()


@pytest_asyncio.fixture
async def sink(other: HostileFeed, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Send]:
    monkeypatch.setattr(sink_http, "BACKOFF_S", 0.0)
    monkeypatch.setattr(sink_http, "PUSH_PATH", "/x")
    made = sink_http.HttpPatchSink(other.url, SECRET, SystemClock())
    yield lambda: made.deliver([{"n": 1}])
    await made.aclose()


@pytest.mark.parametrize("status", [400, 401, 404, 500, 503])
async def test_their_words_are_in_no_error(other: HostileFeed, hook: Send, sink: Send, status: int) -> None:
    """E13."""
    other.scripts["/x"] = answer(b'{"detail": "secret text", "code": "Secret Text"}', status)
    with pytest.raises(BusError, match=str(status)) as told:
        await hook()
    with pytest.raises(BackendError, match=str(status)) as said:
        await sink()
    assert "ecret" not in told.value.message + said.value.message


async def test_what_is_no_http_is_not_quoted_either(other: HostileFeed, hook: Send, sink: Send) -> None:
    other.scripts["/x"] = plainly(b"SSH-2.0-secret\r\n\r\n")
    for send in (hook, sink):
        with pytest.raises(BackendError) as told:
            await send()
        assert "secret" not in told.value.message


async def test_a_code_of_our_own_ingest_is_told(other: HostileFeed, sink: Send) -> None:
    other.scripts["/x"] = answer(b'{"code": "bad_patch"}', 400)
    with pytest.raises(BackendError, match="status 400, bad_patch"):
        await sink()


async def test_redirects_are_not_followed(other: HostileFeed, hook: Send, sink: Send) -> None:
    with running() as third:
        for status in (301, 302, 307, 308):
            other.scripts["/x"] = plainly(head(status, Location=f"{third.url}/x", Content_Length=0))
            for send in (hook, sink):
                with pytest.raises(BackendError, match=str(status)):
                    await send()
        assert third.asked == []


async def test_a_message_that_was_taken_is_taken_whatever_follows(
    other: HostileFeed, hook: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_webhook, "REST_S", 0.05)
    scripts = (
        chunked(BLOCK, None),
        plainly(head(Content_Encoding="gzip"), bomb(64 * MIB)),
        plainly(head(Content_Length=99), b"half"),
        dripping(head(), b" "),
    )
    for script in scripts:
        other.scripts["/x"] = script
        await hook()
    assert len(other.asked) == len(scripts)


async def test_silence_ends_at_the_deadline(
    other: HostileFeed, hook: Send, sink: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_webhook, "DEADLINE_S", 0.1)
    monkeypatch.setattr(sink_http, "DEADLINE_S", 0.1)
    for script in (dripping(b"", b""), dripping(b"HTTP/1.1 200 X\r\n", b"X: a\r\n")):
        other.scripts["/x"] = script
        for send in (hook, sink):
            with pytest.raises(BackendError, match=r"within 0\.1 s"):
                await send()


async def test_an_endless_answer_of_the_ingest_is_no_answer(other: HostileFeed, sink: Send) -> None:
    other.scripts["/x"] = at_length(head(), BLOCK, None)
    with pytest.raises(BackendError, match="refused: status 200"):
        await sink()


@pytest.mark.parametrize("results", [b"[]", b'"x"', b'{"results": 1}', b"null", b"["])
async def test_an_answer_of_another_shape_is_a_refusal(other: HostileFeed, sink: Send, results: bytes) -> None:
    other.scripts["/x"] = answer(results)
    with pytest.raises(BackendError, match="refused: status 200"):
        await sink()


async def test_results_of_another_shape_are_passed_over(other: HostileFeed, sink: Send) -> None:
    other.scripts["/x"] = answer(b'{"results": [1, null, "x", {"code": 7}, {"duplicate": false}]}')
    assert await sink() == 1


@pytest.mark.parametrize("wait", ["\xb2", "9" * 5_000, "-5", "Fri, 31 Dec 9999 23:59:59 -2359"])
async def test_any_wait_they_ask_for_is_read(other: HostileFeed, hook: Send, wait: str) -> None:
    other.scripts["/x"] = answer(b"", 503, Retry_After=wait)
    with pytest.raises(BusError) as told:
        await hook()
    assert told.value.retry_after_s is None


async def test_their_cookies_are_not_kept(other: HostileFeed, hook: Send, sink: Send) -> None:
    other.scripts["/x"] = answer(b'{"results": []}', 200, **COOKIES)
    for send in (hook, sink, hook, sink):
        await send()
    assert not any("cookie" in one.headers for one in other.asked)
