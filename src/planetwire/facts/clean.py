"""Text and JSON that PostgreSQL can hold: it has no NUL, and one in a title must not cost the batch."""

from __future__ import annotations

import orjson


def text(value: str) -> str:
    """Without NUL."""
    return value.replace("\x00", "")


def json_bytes(value: object) -> bytes:
    """The JSON of the value, without NUL in any text."""
    encoded = orjson.dumps(value)
    return orjson.dumps(_without_nul(value)) if b"\\u0000" in encoded else encoded


def _without_nul(value: object) -> object:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(str(key)): _without_nul(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nul(item) for item in value]
    return value
