"""The records of a JSON array, one by one: a broken record is a reject, the others live.

A whole, strict array is read at full speed; only when that fails is it read record by record.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from planetwire.collect.body import sample_of, without_bom
from planetwire.errors import FeedError
from planetwire.model import Json, Reject

MAX_SAMPLE_CHARS = 200
_SPACE = re.compile(r"[ \t\r\n]*")
_NEXT_RECORD = re.compile(r"\}\s*,\s*(?=\{)")


@dataclass(slots=True)
class Records:
    """What an array holds: (index, record) pairs, rejects, the object around it, whether its end was seen."""

    items: list[tuple[int, Any]] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    around: Json = field(default_factory=dict)
    complete: bool = True


def reject(reason: str, sample: object, offset: int) -> Reject:
    """A Reject whose sample is cut to its bound."""
    text = sample if isinstance(sample, str) else json.dumps(sample, ensure_ascii=False, default=str)
    return Reject(reason, text[:MAX_SAMPLE_CHARS], offset)


def read_records(body: bytes, key: str | None = None) -> Records:
    """The records of the top-level array, or of the array under `key`. Raises FeedError `bad_body`.

    A token such as NaN is no JSON: it is read as a float that `number` refuses, so it is never handed on.
    """
    body = without_bom(body)
    try:
        return _from_value(orjson.loads(body), key, body)
    except orjson.JSONDecodeError:
        return _salvaged(body, key)


def _from_value(value: Any, key: str | None, body: bytes) -> Records:
    around: Json = {}
    if key is not None:
        around = {name: item for name, item in value.items() if name != key} if isinstance(value, dict) else {}
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, list):
        raise FeedError(f"expected a JSON list of records, got {sample_of(body)!r}", code="bad_body")
    return Records(items=list(enumerate(value)), around=around)


def _array_start(text: str, key: str | None) -> int:
    pattern = r"\s*\[" if key is None else rf'"{key}"\s*:\s*\['
    match = re.match(pattern, text) if key is None else re.search(pattern, text)
    if match is None:
        raise FeedError(f"expected JSON, got {sample_of(text[:400].encode())!r}", code="bad_body")
    return match.end()


def _salvaged(body: bytes, key: str | None) -> Records:
    text = body.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    out = Records()
    at = _skip(text, _array_start(text, key))
    index = 0
    while at < len(text) and text[at] != "]":
        try:
            value, at = decoder.raw_decode(text, at)
            out.items.append((index, value))
        except (ValueError, RecursionError) as error:
            at = _resynchronised(text, at, index, str(error), out)
        at = _skip(text, at)
        index += 1
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    _note_the_end(text, at, index, out)
    return out


def _resynchronised(text: str, at: int, index: int, why: str, out: Records) -> int:
    """Note the broken record and give the position after it: the next `},{`, or the end."""
    following = _NEXT_RECORD.search(text, at)
    closing = text.rfind("}", at) if following is None else following.start()
    end = len(text) if closing < 0 else closing + 1
    if following is None and text[end:].strip() not in ("]", "]}"):
        end = len(text)
    out.rejects.append(reject(f"broken record: {why}", text[at:end], index))
    return end


def _note_the_end(text: str, at: int, index: int, out: Records) -> None:
    if at < len(text):
        return
    out.complete = False
    if not out.rejects or out.rejects[-1].offset != index - 1:
        out.rejects.append(reject("the body ends before its closing bracket", text[-MAX_SAMPLE_CHARS:], index))


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def number(value: object) -> float | None:
    """A finite JSON number, or None for null, text, booleans, NaN and infinities."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def cleaned(values: Iterable[object]) -> list[str]:
    """The texts among the values, stripped, without empty ones."""
    return [value.strip() for value in values if isinstance(value, str) and value.strip()]
