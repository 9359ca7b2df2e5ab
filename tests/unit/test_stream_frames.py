"""What goes on the wire, byte by byte; and what is read from it."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from planetwire.errors import InputError
from planetwire.model import Cursor, LogEvent, ResyncReason
from planetwire.web.access.limits import ConnectionLimits, TooManyConnections
from planetwire.web.http.outgoing import Outgoing
from planetwire.web.live import frames
from planetwire.web.live.sse_query import FOREIGN, parse_query
from planetwire.web.live.ws_message import parse_message

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
EPOCH = "abcdef012345"
EVENT = LogEvent("city:a", 42, 40, b'{"revision":42}')


def known(name: str) -> str | None:
    return name.lower() if name.lower() in {"a", "b", "hong kong"} else None


def test_patch_frame_is_the_stored_body_with_an_id() -> None:
    assert frames.sse_encoder(EPOCH)(EVENT) == b'id: abcdef012345-42\ndata: {"revision":42}\n\n'


@pytest.mark.parametrize("body", [b'{\n"a":1}', b'{\r\n"a":1}\n', b'{\r"a":1}'])
def test_line_breaks_in_a_body_cannot_end_the_frame(body: bytes) -> None:
    frame = frames.sse_encoder(EPOCH)(LogEvent("t", 1, 0, body))
    first, second, *rest = frame.splitlines()
    assert (first, rest) == (b"id: abcdef012345-1", [b""])
    assert orjson.loads(second.removeprefix(b"data: ")) == {"a": 1}


def test_socket_frame_wraps_the_stored_body() -> None:
    assert orjson.loads(frames.ws_encoder(EPOCH)(EVENT)) == {
        "channel": "earth_updates",
        "epoch": EPOCH,
        "revision": 42,
        "prev_revision": 40,
        "data": {"revision": 42},
    }


def test_control_frames_carry_no_id() -> None:
    """Else a browser would come back with the id of a frame that is no patch."""
    cursor = Cursor(EPOCH, 7)
    for frame in (
        frames.heartbeat(cursor, AT),
        frames.heartbeat(None, AT),
        frames.resync_required(ResyncReason.SLOW_CONSUMER, cursor, AT, cities=["a"]),
        frames.connected(epoch=EPOCH, revision=1, cities={"a": 1}, unknown=[], heartbeat_s=30, at=AT),
    ):
        wire = frames.sse_control(frame)
        assert wire.startswith(b"data: ")
        assert wire.endswith(b"\n\n")
        assert orjson.loads(wire[6:])["ts"] == 1_777_636_800_000


@pytest.mark.parametrize(
    ("given", "limit"),
    [(None, 500), ("7", 7), ("0", 1), ("-5", 1), ("2001", 2000), ("9" * 40, 2000), ("%2B3", 3)],
)
def test_replay_limit_is_clamped(given: str | None, limit: int) -> None:
    """S152, S153, Q36."""
    text = "cities=a" if given is None else f"cities=a&replay_limit={given}"
    assert parse_query(text.encode(), [], known).limit == limit


@pytest.mark.parametrize("value", ["", "x", "1.0", "1e3", "0x10", "9" * 101, "٣x"])
def test_replay_limit_that_is_no_integer_is_refused(value: str) -> None:
    """Q36."""
    with pytest.raises(InputError) as caught:
        parse_query(f"cities=a&replay_limit={value}".encode(), [], known)
    assert caught.value.code == "bad_replay_limit"


@pytest.mark.parametrize(
    ("header", "since"),
    [
        (f"{EPOCH}-9", (EPOCH, 9)),
        ("9", (None, 9)),
        ("", (None, 3)),
        ("   ", (None, 3)),
        ("something else", (FOREIGN, 0)),
    ],
)
def test_last_event_id_wins_unless_empty(header: str, since: tuple[str | None, int]) -> None:
    headers = [(b"last-event-id", header.encode())]
    assert parse_query(b"cities=a&since_revision=3", headers, known).since == since


def test_cities_keep_their_order_and_come_once() -> None:
    """S150: names may hold spaces."""
    query = parse_query(b"cities=b,%20Hong+Kong%20,x,B,a,,x&since_revision=", [], known)
    assert (query.cities, query.unknown, query.since) == (("b", "hong kong", "a"), ("x",), None)
    assert query.topics == ("city:b", "city:hong kong", "city:a")


@pytest.mark.parametrize("query", [b"", b"since_revision=x&replay_limit=x", b"Cities=a", b"x=cities%3Da"])
def test_without_cities_nothing_else_is_looked_at(query: bytes) -> None:
    """S229: a page of before the parameter is answered, whatever else it asks."""
    parsed = parse_query(query, [(b"last-event-id", b"7")], known)
    assert (parsed.cities, parsed.unknown, parsed.since, parsed.topics) == ((), (), None, ())


@pytest.mark.parametrize("query", [b"cities=", b"cities", b"cities=,%20", b"since_revision=1&cities="])
def test_cities_that_are_named_empty_are_an_error(query: bytes) -> None:
    """S229: who knows the parameter is told that it names nothing."""
    with pytest.raises(InputError) as caught:
        parse_query(query, [], known)
    assert caught.value.code == "no_cities"


def test_limits_count_addresses_and_the_total() -> None:
    limits = ConnectionLimits(total=3, per_address=2)
    slots = [limits.take("a"), limits.take("a")]
    with pytest.raises(TooManyConnections):
        limits.take("a")
    slots.append(limits.take("b"))
    with pytest.raises(TooManyConnections):
        limits.take("c")
    slots[0].release()
    slots[0].release()
    assert (limits.connections, limits.refused) == (2, 2)
    limits.take("a")


class Follower:
    cursor = 0

    def __init__(self) -> None:
        self.calls: list[str] = []

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")

    def close(self) -> None:
        self.calls.append("close")


async def test_outgoing_pauses_above_its_mark_and_resumes_when_empty() -> None:
    outgoing = Outgoing(high_bytes=10)
    outgoing.follower = follower = Follower()
    for _ in range(4):
        outgoing.write(b"12345")
    assert (follower.calls, outgoing.pending_bytes()) == (["pause"], 20)
    frames_taken = await outgoing.ready()
    for frame in frames_taken[:3]:
        outgoing.sent(len(frame))
    assert follower.calls == ["pause"]
    outgoing.sent(5)
    assert (follower.calls, outgoing.full) == (["pause", "resume"], False)
    await outgoing.room()


def test_message_parts_are_read_and_unknown_keys_ignored() -> None:
    message = parse_message(
        '{"subscribe":["earth_updates","earth_updates"],"unsubscribe":"datasource_tasks","ping":0,"later":1,'
        '"since":{"earth_updates":"abcdef012345-5","other":"x"}}'
    )
    assert (message.subscribe, message.unsubscribe, message.ping) == (("earth_updates",), ("datasource_tasks",), 0)
    assert message.since == {"earth_updates": (EPOCH, 5)}
