"""Text, numbers and JSON that PostgreSQL can store: an invalid character in a title must not fail the batch."""

from __future__ import annotations

import math

import orjson

from planetwire.text import plain_json

MAX_TEXT_CHARS = 2_000  # of a title; its first 500 are searchable


def text(value: str) -> str:
    """Without NUL and lone surrogates: PostgreSQL stores neither."""
    if not value.isascii():
        value = plain_json.text(value)
    return value.replace("\x00", "") if "\x00" in value else value


def short(value: str) -> str:
    """The same, cut at MAX_TEXT_CHARS."""
    return text(value)[:MAX_TEXT_CHARS]


def finite(value: float | None) -> float | None:
    """None for NaN and infinities, which a column accepts and JSON does not."""
    return value if value is not None and math.isfinite(value) else None


def json_bytes(value: object) -> bytes:
    """The JSON of the value, without NUL in any text; null for values without a JSON form."""
    encoded = plain_json.dumps(value)
    return orjson.dumps(_without_nul(plain_json.loads(encoded))) if b"\\u0000" in encoded else encoded


def _without_nul(value: object) -> object:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(str(key)): _without_nul(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nul(item) for item in value]
    return value
