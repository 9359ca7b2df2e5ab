"""Parses a client's message on `/ws`, one small JSON object. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planetwire.errors import InputError
from planetwire.model import parse_cursor
from planetwire.text.json_input import parse_json
from planetwire.web.live.frames import DATASOURCE_TASKS, EARTH_UPDATES

MESSAGE_BYTES = 4096
CHANNELS_MAX = 16  # named in one message
CHANNELS = frozenset({EARTH_UPDATES, DATASOURCE_TASKS})

_KEYS = frozenset({"subscribe", "unsubscribe", "ping", "since"})


@dataclass(frozen=True, slots=True)
class WsMessage:
    """Channels to join and to leave, cursors by channel, and the value to echo in a pong (None: no pong)."""

    subscribe: tuple[str, ...]
    unsubscribe: tuple[str, ...]
    since: dict[str, tuple[str | None, int]]
    ping: Any


def parse_message(text: str | bytes | None) -> WsMessage:
    """Raises InputError: `bad_message`, `too_deep`, `too_large`, `unknown_channel`, `bad_cursor`.

    Unknown keys are ignored.
    """
    if text is None or len(text) > MESSAGE_BYTES:
        raise InputError(f"a message is text of at most {MESSAGE_BYTES} bytes", code="too_large")
    raw = parse_json(text, code="bad_message")
    if not isinstance(raw, dict) or not _KEYS & raw.keys():
        raise InputError("expected subscribe, unsubscribe or ping", code="bad_message")
    return WsMessage(
        subscribe=_channels(raw.get("subscribe", [])),
        unsubscribe=_channels(raw.get("unsubscribe", [])),
        since=_cursors(raw.get("since") or {}),
        ping=raw.get("ping"),
    )


def _channels(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or len(names) > CHANNELS_MAX or not all(isinstance(name, str) for name in names):
        raise InputError("channels are a list of names", code="bad_message")
    for name in names:
        if name not in CHANNELS:
            raise InputError(
                f"no channel {name[:40]!r}; there are {', '.join(sorted(CHANNELS))}", code="unknown_channel"
            )
    return tuple(dict.fromkeys(names))


def _cursors(value: Any) -> dict[str, tuple[str | None, int]]:
    if not isinstance(value, dict):
        raise InputError("since is an object of cursors by channel", code="bad_message")
    return {str(name): parse_cursor(str(text)) for name, text in value.items() if name in CHANNELS and text is not None}
