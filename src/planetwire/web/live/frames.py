"""Bytes on the wire of both live transports: pure functions from values to frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from planetwire.model import Cursor, Json, LogEvent, ResyncReason

EARTH_UPDATES = "earth_updates"
DATASOURCE_TASKS = "datasource_tasks"


# --- Server-Sent Events


def sse_encoder(epoch: str) -> Callable[[LogEvent], bytes]:
    """Makes the frame of a patch: `id: <epoch>-<revision>`, and the body as it was stored."""
    prefix = f"id: {epoch}-".encode()

    def encode(event: LogEvent) -> bytes:
        return b"%b%d\ndata: %b\n\n" % (prefix, event.revision, one_line(event.body))

    return encode


def one_line(body: bytes) -> bytes:
    """JSON without line breaks: one would end the SSE field. Only white space between tokens can hold any."""
    return body.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in body or b"\r" in body else body


def sse_control(frame: Mapping[str, Any]) -> bytes:
    """A frame without `id:`, so that a browser's Last-Event-ID stays at the last patch."""
    return b"data: %b\n\n" % orjson.dumps(frame)


def sse_retry(milliseconds: int) -> bytes:
    """How long a browser waits before it reconnects by itself."""
    return b"retry: %d\n\n" % milliseconds


# --- WebSocket


def ws_encoder(epoch: str, channel: str = EARTH_UPDATES) -> Callable[[LogEvent], bytes]:
    """Makes the text frame of an event; its body is the `data` object."""
    prefix = f'{{"channel":"{channel}","epoch":"{epoch}","revision":'.encode()

    def encode(event: LogEvent) -> bytes:
        return b'%b%d,"prev_revision":%d,"data":%b}' % (prefix, event.revision, event.prev_revision, event.body)

    return encode


def ws_row(row: Any) -> bytes:
    """A ledger row on `datasource_tasks`."""
    return orjson.dumps({"channel": DATASOURCE_TASKS, "data": row})


# --- control frames of both


def milliseconds(at: datetime) -> int:
    """Milliseconds since 1970."""
    return int(at.timestamp() * 1000)


def connected(
    *,
    epoch: str,
    revision: int,
    cities: Mapping[str, int],
    unknown: Sequence[str],
    heartbeat_s: float,
    at: datetime,
    hint: Mapping[str, str] | None = None,
) -> Json:
    """The first frame of an SSE stream. `hint`: how to correct the request."""
    return {
        "type": "connected",
        "revision": revision,
        "epoch": epoch,
        "cities": dict(cities),
        "unknown": list(unknown),
        "heartbeat_s": heartbeat_s,
        **({} if hint is None else {"hint": dict(hint)}),
        "ts": milliseconds(at),
    }


def heartbeat(cursor: Cursor | None, at: datetime) -> Json:
    """All events for the connection up to `cursor` were sent. None: the connection follows no log."""
    return {
        "type": "heartbeat",
        "cursor": None if cursor is None else str(cursor),
        "revision": None if cursor is None else cursor.revision,
        "ts": milliseconds(at),
    }


def resync_required(reason: ResyncReason, head: Cursor, at: datetime, **scope: Any) -> Json:
    """A snapshot is needed. `scope`: of `cities` or `channel`."""
    return {
        "type": "resync_required",
        "reason": reason.value,
        "latest_revision": head.revision,
        "epoch": head.epoch,
        **scope,
        "ts": milliseconds(at),
    }
