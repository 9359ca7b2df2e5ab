"""A field's value as it is written, read into what a fact holds: one function a field, made once.

A reader gives the value, None where there is none, or UNREADABLE for what is there and cannot be that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from planetwire.declared.model import FieldSpec, Scalar, type_of
from planetwire.declared.times import reader as time_reader
from planetwire.declared.times import zone_named
from planetwire.declared.units import conversion, named, ours

Read: TypeAlias = Callable[[Any], Any]

TEXT_CHARS = 2_000  # what is longer is cut
WHOLE_MAX = 2**53  # beyond, a browser would round it


class _Unreadable:
    """The only one of its kind."""

    def __repr__(self) -> str:
        return "UNREADABLE"


UNREADABLE = _Unreadable()
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,3})?")
_NOT_A_NUMBER = frozenset({"nan", "-nan", "inf", "-inf", "+inf", "infinity", "-infinity"})
_TRUE, _FALSE = frozenset({"true", "yes", "y", "t", "1"}), frozenset({"false", "no", "n", "f", "0"})
_POINT = re.compile(r"([+-]?[0-9]{1,3}(?:\.[0-9]{0,12})?)\s?°?\s?([NSEWnsew])?")


def reader(given: FieldSpec, nulls: Sequence[Scalar] = ()) -> Read:
    """Of one field. `nulls`: those of every field."""
    spec = given.model_copy(update={"nulls": [*given.nulls, *nulls]})
    read = _READERS[type_of(spec)](spec)
    none_texts = frozenset(_written(value) for value in spec.nulls if value is not None)
    none_numbers = _numbers(spec.nulls)
    named_values = dict(spec.values or {})
    if not none_texts and not named_values:
        return _plain(read)

    def value(raw: Any) -> Any:
        if raw is None:
            return None
        kind = raw.__class__
        if kind is str:
            raw = raw.strip()
            if not raw or raw in none_texts:
                return None
        elif (kind is float or kind is int) and raw in none_numbers:
            return None
        if named_values and (written := _written(raw)) in named_values:
            return named_values[written]
        return read(raw)

    return value


def _plain(read: Read) -> Read:
    """The same where nothing stands for nothing."""

    def value(raw: Any) -> Any:
        if raw is None:
            return None
        if raw.__class__ is str:
            raw = raw.strip()
            if not raw:
                return None
        return read(raw)

    return value


def _written(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip() if not isinstance(value, dict | list) else ""


def _numbers(values: Sequence[Scalar]) -> frozenset[float]:
    """Those that are numbers, or texts of numbers: `99.00` is also 99."""
    return frozenset(number for value in values if (number := _as_number(value)) is not None)


def _as_number(value: Scalar) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value.strip()) else None
    return float(value)


def plain_number(raw: Any) -> Any:
    """A finite number, of a text too; None for `NaN` and the infinities."""
    kind = raw.__class__
    if kind is float:
        return raw if math.isfinite(raw) else None
    if kind is int:
        return raw if -WHOLE_MAX <= raw <= WHOLE_MAX else UNREADABLE
    if kind is str:
        if _NUMBER.fullmatch(raw):
            number = float(raw)
            return number if math.isfinite(number) else UNREADABLE
        return None if raw.lower() in _NOT_A_NUMBER else UNREADABLE
    return UNREADABLE


def _number(spec: FieldSpec) -> Read:
    least = -math.inf if spec.min is None else spec.min
    most = math.inf if spec.max is None else spec.max
    bounded = spec.min is not None or spec.max is not None
    convert = None
    if spec.unit is not None:
        given = named(spec.unit) or spec.unit
        convert = conversion(given, named(spec.to) or spec.to if spec.to is not None else ours(given))
    none_numbers = _numbers(spec.nulls)
    comma = spec.decimal == ","

    def read(raw: Any) -> Any:
        if comma and raw.__class__ is str:
            raw = raw.replace(",", ".", 1)
        value = plain_number(raw)
        if value is None or value is UNREADABLE or value in none_numbers:
            return None if value in none_numbers else value
        if convert is not None:
            value = convert(value)
        return UNREADABLE if bounded and not least <= value <= most else value

    return read if bounded or convert is not None or comma or none_numbers else plain_number


def _integer(spec: FieldSpec) -> Read:
    number = _number(spec)

    def read(raw: Any) -> Any:
        value = number(raw)
        if value is None or value is UNREADABLE:
            return value
        return int(value) if value == int(value) else UNREADABLE

    return read


def _any(spec: FieldSpec) -> Read:
    def read(raw: Any) -> Any:
        kind = raw.__class__
        if kind is str:
            return raw[:TEXT_CHARS]
        if kind is bool:
            return raw
        return plain_number(raw)

    return read


def _text(spec: FieldSpec) -> Read:
    def read(raw: Any) -> Any:
        kind = raw.__class__
        if kind is str:
            return raw[:TEXT_CHARS]
        if kind is bool or kind is int or kind is float:
            return _written(raw)[:TEXT_CHARS]
        return UNREADABLE

    return read


def _boolean(spec: FieldSpec) -> Read:
    def read(raw: Any) -> Any:
        if raw.__class__ is bool:
            return raw
        word = _written(raw).lower()
        if word in _TRUE:
            return True
        return False if word in _FALSE else UNREADABLE

    return read


def _time(spec: FieldSpec) -> Read:
    zone = zone_named(spec.zone or "UTC")
    assert zone is not None  # checked with the declaration
    at = time_reader(spec.format or "iso", zone)
    return lambda raw: found if (found := at(raw)) is not None else UNREADABLE


def _degrees(spec: FieldSpec) -> Read:
    """Degrees of a number, of `12.5N`, or of `[35, 41.5]`: degrees, minutes and seconds."""

    def read(raw: Any) -> Any:
        if raw.__class__ is list:
            return _of_parts(raw)
        if raw.__class__ is str:
            found = _POINT.fullmatch(raw)
            if found is None:
                return UNREADABLE
            value = float(found[1])
            return -value if found[2] is not None and found[2] in "SWsw" else value
        return plain_number(raw)

    return read


def _of_parts(parts: Sequence[Any]) -> Any:
    numbers = [plain_number(part) for part in parts[:4]]
    if not 1 <= len(numbers) <= 3 or any(part is None or part is UNREADABLE for part in numbers):
        return UNREADABLE
    if any(part < 0 or part >= 60 for part in numbers[1:]):
        return UNREADABLE
    size = abs(numbers[0]) + sum(part / 60**power for power, part in enumerate(numbers[1:], 1))
    return math.copysign(size, numbers[0])


_READERS: dict[str, Callable[[FieldSpec], Read]] = {
    "any": _any,
    "text": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "time": _time,
    "degrees": _degrees,
}
