"""Text, numbers and JSON that PostgreSQL can hold: what it cannot in a title must not cost the batch."""

from __future__ import annotations

import math

import orjson

from planetwire.text import plain_json


def text(value: str) -> str:
    """Without NUL and without lone surrogates: it has neither."""
    return plain_json.text(value).replace("\x00", "")


def finite(value: float | None) -> float | None:
    """None for NaN and the infinities, which a column takes and a browser does not."""
    return value if value is not None and math.isfinite(value) else None


def json_bytes(value: object) -> bytes:
    """The JSON of the value, without NUL in any text; null for what has none."""
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
