"""The records of a body: their places in it, each parsed on its own, so that only broken ones are lost.

Invariant: a body is in memory once, as received; of its records only the places are stored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from planetwire.errors import FeedError
from planetwire.model import Json, Reject

MAX_RECORDS = 100_000  # per body, including refused ones; the whole catalogue of satellites has a third of it
MAX_RECORD_BYTES = 64 * 1024  # a typical one has 500
MAX_SAMPLE_CHARS = 200
MAX_DEPTH = 32  # deeper values of a record that needs repair become null
_NUMBER = re.compile(r"[+-]?[0-9]{1,6}(\.[0-9]{0,12})?")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Broken(ValueError):
    """Why a record cannot be parsed."""

    def __init__(self, reason: str, code: str = "broken") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


@dataclass(slots=True)
class Records:
    """The content of a body, in order: places of records, rejects, other members, and whether its end was found.

    A place is a start offset, an end offset, and perhaps the record's name. `read` parses the bytes there and raises
    Broken; if places are something else, `made` makes the value from the place.
    `count`: records and rejects; `read_bytes`: bytes read to find the places, for tests of the cost.
    """

    body: bytes = b""
    read: Callable[[bytes], Any] = bytes
    most: int = MAX_RECORDS
    places: list[tuple[int, Any]] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    around: Json = field(default_factory=dict)
    complete: bool = True
    made: Callable[[Any], Any] | None = None
    count: int = 0
    read_bytes: int = 0

    def add(self, place: Any) -> None:
        """Add a record. Raises FeedError `bad_body` beyond `most`."""
        self.places.append((self._next(), place))

    def refuse(self, code: str, reason: str, sample: object) -> None:
        """Add a reject. Raises FeedError `bad_body` beyond `most`."""
        self.rejects.append(reject(reason, sample, self._next(), code))

    def refuse_place(self, code: str, reason: str, start: int, end: int) -> None:
        """As `refuse`, with the bytes there as the sample."""
        self.refuse(code, reason, self.sample((start, end)))

    def refuse_trailing(self, at: int) -> None:
        """The body continues after the end of its format, so it is not one complete body."""
        self.complete = False
        self.refuse_place("goes_on", "the body goes on after its end", at, len(self.body))

    def refuse_cut_off(self) -> None:
        """The body ends before its format does."""
        self.complete = False
        start = max(0, len(self.body) - MAX_SAMPLE_CHARS)
        self.refuse_place("cut_off", "the body ends before its end mark", start, len(self.body))

    def items(self) -> Iterator[tuple[int, Any]]:
        """(index, value), parsed lazily; an unreadable one becomes a reject. Places are freed as they are read."""
        places, self.places = self.places, []
        places.reverse()
        while places:
            index, place = places.pop()
            try:
                yield index, self.read(self.body[place[0] : place[1]]) if self.made is None else self.made(place)
            except Broken as broken:
                self.rejects.append(reject(broken.reason, self.sample(place), index, broken.code))

    def sample(self, place: Sequence[Any]) -> str:
        """The beginning of the bytes there, as text."""
        start, end = place[:2]
        return self.body[start : min(end, start + 4 * MAX_SAMPLE_CHARS)].decode("utf-8", "replace")

    def _next(self) -> int:
        if self.count >= self.most:
            raise FeedError(f"more than {self.most} records in one body", code="bad_body")
        self.count += 1
        return self.count - 1


def reject(reason: str, sample: object, offset: int, code: str = "broken") -> Reject:
    """A Reject whose texts are truncated, storable and sendable."""
    text = sample if isinstance(sample, str) else _as_text(sample)
    return Reject(_storable(reason), _storable(text[:MAX_SAMPLE_CHARS]), offset, code)


def _as_text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        return f"a {type(value).__name__}"


def _storable(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text)


def json_value(raw: bytes) -> Any:
    """The value of a JSON text. Raises Broken.

    NaN and numbers of any size are accepted, as floats that `number` refuses. Invalid Unicode, as bytes or as an
    escape, becomes U+FFFD.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        return _repaired(json.loads(raw.decode("utf-8", "replace")), MAX_DEPTH)
    except json.JSONDecodeError as error:
        raise Broken(f"broken record: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise Broken(f"broken record: {type(error).__name__}") from None


def _repaired(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, dict):
        return {_storable(key): _repaired(item, depth - 1) for key, item in value.items()} if depth else None
    if isinstance(value, list):
        return [_repaired(item, depth - 1) for item in value] if depth else None
    return value


def number(value: object) -> float | None:
    """A finite JSON number, or None for null, text, booleans, NaN and infinities."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def number_in(value: object) -> float | None:
    """As `number`, but also accepts numeric text."""
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value.strip()) else None
    return number(value)


def cleaned(values: Iterable[object]) -> list[str]:
    """The texts among the values, stripped, without empty ones."""
    return [value.strip() for value in values if isinstance(value, str) and value.strip()]
