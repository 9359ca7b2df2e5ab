"""Parses JSON from outside; a value that is nested too deeply is refused before it is used.

Parsers accept more levels than encoders write, so an accepted value could not be stored or sent.
"""

from __future__ import annotations

import orjson

from planetwire.errors import InputError

DEPTH_MAX = 64


def parse_json(text: str | bytes, *, code: str = "bad_json") -> object:
    """The value. Raises InputError with `code`, or `too_deep`."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"not JSON: {error}", code=code) from None
    if _openings(text) > DEPTH_MAX:
        check_depth(value)
    return value


def _openings(text: str | bytes) -> int:
    """An upper bound of the depth, nearly always sufficient, for the cost of two scans."""
    if isinstance(text, str):
        return text.count("[") + text.count("{")
    return text.count(b"[") + text.count(b"{")


def check_depth(value: object) -> None:
    """One step a value, level by level. Raises InputError `too_deep`."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return
    raise InputError(f"JSON is nested at most {DEPTH_MAX} levels deep", code="too_deep")


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
