"""The port `DataChangeBus`, for every way out: today the signed webhook. Another (a broker) adds itself to `out`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest
import pytest_asyncio

from planetwire.errors import BusError, SetupError
from planetwire.model import BusMessage
from planetwire.ports import DataChangeBus
from planetwire.relay.bus_webhook import WebhookBus, checked_address, signature
from planetwire.runtime.clock import SystemClock
from webhook_receiver import SECRET, Receiver, signed

Answer = Callable[[dict[str, Any]], Awaitable[tuple[int, str]]]


def message(n: int, key: str = "satellites") -> BusMessage:
    return BusMessage(f"e-{n}", key, "kind", orjson.dumps({"id": f"e-{n}", "key": key, "revision": n, "data": {}}))


def answers(*statuses: int, extra: str = "") -> Answer:
    left = list(statuses)

    async def answer(body: dict[str, Any]) -> tuple[int, str]:
        return (left.pop(0) if left else 204), extra

    return answer


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.stop()


@pytest_asyncio.fixture(params=["webhook"])
async def out(receiver: Receiver) -> AsyncIterator[DataChangeBus]:
    bus = WebhookBus(receiver.url, SECRET, SystemClock())
    yield bus
    await bus.aclose()
    await bus.aclose()


async def test_what_send_returned_from_is_with_the_other_side(out: DataChangeBus, receiver: Receiver) -> None:
    """S92, S91."""
    for n in range(20):
        await out.send(message(n))
        assert receiver.taken[-1].body["id"] == f"e-{n}"
    assert [taken.raw for taken in receiver.taken] == [message(n).body for n in range(20)]


async def test_a_repeat_has_the_same_id(out: DataChangeBus, receiver: Receiver) -> None:
    for _ in range(3):
        await out.send(message(1))
    assert [taken.body["id"] for taken in receiver.taken] == ["e-1"] * 3


@pytest.mark.parametrize(
    ("status", "refused"),
    [(400, True), (401, True), (410, True), (422, True), (301, True), (408, False), (429, False), (500, False)],
)
async def test_a_refusal_of_the_message_is_told_from_trouble_of_the_moment(
    status: int, refused: bool, out: DataChangeBus, receiver: Receiver
) -> None:
    receiver.answer = answers(status)
    with pytest.raises(BusError, match=str(status)) as caught:
        await out.send(message(1))
    assert caught.value.refused is refused
    await out.send(message(1))
    assert len(receiver.taken) == 1


async def test_the_other_side_may_ask_for_patience(out: DataChangeBus, receiver: Receiver) -> None:
    receiver.answer = answers(503, extra="retry-after: 17\r\n")
    with pytest.raises(BusError) as caught:
        await out.send(message(1))
    assert caught.value.retry_after_s == 17


async def test_another_side_that_is_away_is_no_refusal_and_may_come_back(
    out: DataChangeBus, receiver: Receiver
) -> None:
    await out.send(message(1))
    await receiver.stop()
    with pytest.raises(BusError) as caught:
        await out.send(message(2))
    assert not caught.value.refused
    await receiver.start()
    await out.send(message(2))
    assert [taken.body["id"] for taken in receiver.taken] == ["e-1", "e-2"]


async def test_a_send_that_was_given_up_leaves_the_way_out_usable(out: DataChangeBus, receiver: Receiver) -> None:
    held, came = asyncio.Event(), asyncio.Event()

    async def hold(body: dict[str, Any]) -> tuple[int, str]:
        came.set()
        await held.wait()
        return 204, ""

    receiver.answer = hold
    sending = asyncio.create_task(out.send(message(1)))
    await came.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    held.set()
    receiver.answer = None
    await out.send(message(2))
    assert receiver.taken[-1].body["id"] == "e-2"


# --- the webhook's own


async def test_requests_are_signed_over_id_time_and_body(receiver: Receiver) -> None:
    """As Standard Webhooks has it; `whsec_` secrets are base64."""
    for secret in (SECRET, "whsec_c2VjcmV0LW9mLXRoZS10ZXN0"):
        bus = WebhookBus(receiver.url, secret, SystemClock())
        await bus.send(message(1))
        await bus.aclose()
        assert signed(receiver.taken[-1])  # the same key in both spellings
        assert not signed(receiver.taken[-1], "another")
        assert receiver.taken[-1].headers["planetwire-key"] == "satellites"
        assert receiver.taken[-1].headers["content-type"] == "application/json"
    changed = receiver.taken[-1]
    changed.raw += b" "
    assert not signed(changed)


def test_the_signature_is_that_of_the_published_example() -> None:
    """The example of the Standard Webhooks specification."""
    body = b'{"test": 2432232314}'
    found = signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "address",
    ["https://example.org/hook", "http://127.0.0.1:9/x", "http://localhost/x", "http://[::1]:9/", "https://10.0.0.1/"],
)
def test_an_address_may_be_https_or_loopback(address: str) -> None:
    assert checked_address(address) == address


@pytest.mark.parametrize(
    "address",
    [
        "http://example.org/hook",
        "ftp://example.org/",
        "kafka://broker",
        "https://",
        "example.org",
        "https://user:word@example.org/",
        "http://127.0.0.1.example.org/",
        "https://example.org:port/",
        "https://[::1/",
    ],
)
def test_any_other_address_stops_the_start(address: str) -> None:
    with pytest.raises(SetupError, match="PLANETWIRE_CHANGES_BUS"):
        checked_address(address)


def test_a_secret_that_is_no_secret_stops_the_start() -> None:
    with pytest.raises(SetupError, match="PLANETWIRE_CHANGES_BUS_SECRET"):
        WebhookBus("https://example.org/", "whsec_***", SystemClock())
