"""Reads and writes JSON without raising: values that a parser would reject become null.

PostgreSQL stores numbers of any size and any depth in jsonb, so facts written by hand may have them; browsers and the
JSON library here have limits.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

MAX_DEPTH = 100
MAX_DIGITS = 400  # of a whole number: beyond 309 it is infinite anyhow
MAX_WHOLE = 2**63 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")


def loads(raw: bytes | memoryview | str) -> Any:
    """The value of a JSON text; numbers that no float can hold are None, and so is a text that cannot be read."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        text = raw if isinstance(raw, str) else bytes(raw).decode("utf-8", "replace")
        return json.loads(text, parse_float=_finite, parse_int=_whole, parse_constant=lambda token: None)
    except (ValueError, RecursionError):
        return None


def dumps(value: object) -> bytes:
    """The JSON of a value; parts without a JSON form are null, and lone surrogates become U+FFFD."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(plain(value))


def plain(value: object, depth: int = MAX_DEPTH) -> Any:
    """The value with every part that JSON cannot represent replaced."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -MAX_WHOLE <= value <= MAX_WHOLE else _float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(str(key)): plain(item, depth - 1) for key, item in value.items()} if depth else None
    if isinstance(value, list | tuple):
        return [plain(item, depth - 1) for item in value] if depth else None
    return None


def text(value: str) -> str:
    """Without lone surrogates: a text that can be stored and sent."""
    return value if value.isascii() else _SURROGATE.sub("\ufffd", value)


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _whole(digits: str) -> int | float | None:
    if len(digits) > MAX_DIGITS:
        return None
    value = int(digits)
    return value if -MAX_WHOLE <= value <= MAX_WHOLE else _float(value)


def _float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
