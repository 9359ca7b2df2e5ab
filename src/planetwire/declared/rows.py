"""A record as a row of named values: every field is read by one function that was made when the source was declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from planetwire.collect.formats.records import Broken
from planetwire.collect.formats.shown import shown
from planetwire.declared.formats import json_source, text_source, xml_source
from planetwire.declared.formats.paths import Get
from planetwire.declared.formats.paths import getter as json_getter
from planetwire.declared.model import Condition, Declaration, FieldSpec, Scalar, paths_of, spec_of
from planetwire.declared.units import named
from planetwire.declared.values import UNREADABLE, Read
from planetwire.declared.values import reader as value_reader

Row: TypeAlias = dict[str, Any]
Holds: TypeAlias = Callable[[Row], bool]


@dataclass(frozen=True, slots=True)
class Field:
    """How one field is read. `ahead_s`: a time that is later than this after the reading is none."""

    name: str
    get: Get
    read: Read
    required: bool
    ahead_s: float | None = None


def path_getter(kind: str, path: str) -> Get:
    """Where a path of that kind of source lies in a record. Raises BadPath."""
    if kind in ("http_json", "http_geojson"):
        return json_getter(path)
    return xml_source.getter(path) if kind == "http_xml" else text_source.getter(path)


def field_of(name: str, spec: FieldSpec, declaration: Declaration) -> Field:
    """Raises BadPath."""
    get = _getter(spec, declaration.kind)
    read = value_reader(spec, declaration.nulls)
    if spec.unit_path is not None:
        get, read = _with_unit(spec, declaration, get)
    return Field(name, get, read, spec.required or name in declaration.key, spec.ahead)


def _getter(spec: FieldSpec, kind: str) -> Get:
    if spec.member:
        return lambda record: record.get(json_source.NAME) if isinstance(record, dict) else None
    if spec.path is None:
        return lambda record: spec.constant
    if isinstance(spec.path, str):
        return path_getter(kind, spec.path)
    return _joined([path_getter(kind, path) for path in spec.path], spec.pad or [0] * len(spec.path))


def _joined(getters: Sequence[Get], pad: Sequence[int]) -> Get:
    """Several values with a space between, None if one is missing: date and time in columns of their own."""
    parts = list(zip(getters, pad, strict=True))

    def get(record: Any) -> Any:
        texts = []
        for one, digits in parts:
            raw = one(record)
            if raw is None or isinstance(raw, dict | list):
                return None
            texts.append(str(raw).strip().zfill(digits))
        return " ".join(texts)

    return get


def _with_unit(spec: FieldSpec, declaration: Declaration, get: Get) -> tuple[Get, Read]:
    """Value and unit together; each unit has its reader, made when it first comes."""
    unit_of = path_getter(declaration.kind, spec.unit_path or "")
    readers: dict[str, Read] = {}

    def read(both: tuple[Any, Any]) -> Any:
        raw, word = both
        if raw is None:
            return None
        unit = named(word) if isinstance(word, str) else None
        if unit is None:
            return UNREADABLE
        if unit not in readers:
            one = value_reader(spec.model_copy(update={"unit": unit, "unit_path": None}), declaration.nulls)
            readers[unit] = one
        try:
            return readers[unit](raw)
        except TypeError:  # a unit of something else than `to`
            return UNREADABLE

    return lambda record: (get(record), unit_of(record)), read


class RowReader:
    """Reads records of one declaration. Raises BadPath when it is made."""

    def __init__(self, declaration: Declaration) -> None:
        self.fields = [field_of(name, spec_of(given), declaration) for name, given in declaration.fields.items()]
        self._plain = [(one.name, one.get, one.read, one.required) for one in self.fields]
        self._bounded = [(one.name, one.ahead_s) for one in self.fields if one.ahead_s is not None]
        self._key = frozenset(declaration.key)
        self._holds = [_condition(one) for one in declaration.filter]

    def read(self, record: Any, at: datetime, notes: Counter[str]) -> Row | None:
        """The row; None for one that the filter leaves out. Raises Broken when something that it needs is missing.

        A value that cannot be read is None and counted, as `unreadable_<field>`.
        """
        row: Row = {}
        lacks: str | None = None
        for name, get, read, required in self._plain:
            value = read(get(record))
            if value is UNREADABLE:
                notes[f"unreadable_{name}"] += 1
                value = None
            if value is None and required and lacks is None:
                lacks = name
            row[name] = value
        for name, ahead_s in self._bounded:
            value = row[name]
            if ahead_s is not None and isinstance(value, datetime) and value > at + timedelta(seconds=ahead_s):
                notes[f"ahead_{name}"] += 1
                raise Broken(f"{name} lies ahead: {value.isoformat()}", "bad_time")
        if lacks is not None:
            code = "bad_key" if lacks in self._key else "bad_value"
            raise Broken(f"no {lacks}: {shown(self._raw(lacks, record))}", code)
        return row if self._is_wanted(row, notes) else None

    def key(self, record: Any, names: Sequence[str]) -> str | None:
        """The key of a record that is refused for something else; None where it has none."""
        fields = {one.name: one for one in self.fields}
        values = [fields[name].read(fields[name].get(record)) for name in names]
        return None if any(value is None or value is UNREADABLE for value in values) else key_text(values)

    def _is_wanted(self, row: Row, notes: Counter[str]) -> bool:
        for holds in self._holds:
            if not holds(row):
                notes["left_out"] += 1
                return False
        return True

    def _raw(self, name: str, record: Any) -> Any:
        raw = next(one.get(record) for one in self.fields if one.name == name)
        return raw[0] if isinstance(raw, tuple) else raw


def _condition(given: Condition) -> Holds:
    """All that the entry says, together; a comparison of what is no number does not hold."""
    name, asked = given.field, given.model_fields_set
    tests: list[Callable[[Any], bool]] = []
    if "equals" in asked:
        tests.append(lambda value: _same(value, given.equals))
    if "not_equals" in asked:
        tests.append(lambda value: not _same(value, given.not_equals))
    if given.one_of is not None:
        tests.append(lambda value: any(_same(value, one) for one in given.one_of or ()))
    if given.at_least is not None:
        tests.append(lambda value: _is_number(value) and value >= given.at_least)
    if given.at_most is not None:
        tests.append(lambda value: _is_number(value) and value <= given.at_most)
    if given.present is not None:
        tests.append(lambda value: (value is not None) == given.present)
    return lambda row: all(test(row[name]) for test in tests)


def _same(value: Any, wanted: Scalar) -> bool:
    """The number 3 is 3.0; true is not 1."""
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def used_columns(declaration: Declaration) -> list[str]:
    """Columns that the fields of a table name, each once."""
    specs = [spec_of(given) for given in declaration.fields.values()]
    paths = [path for spec in specs for path in (*paths_of(spec), spec.unit_path)]
    return list(dict.fromkeys(path for path in paths if path is not None))


def template(text: str) -> Callable[[Mapping[str, Any]], str]:
    """A text with fields in braces; a field without a value is nothing."""
    parts = text.replace("}", "{").split("{")

    def fill(row: Mapping[str, Any]) -> str:
        told = (_told(row.get(part)) if at % 2 else part for at, part in enumerate(parts))
        return " ".join("".join(told).split())

    return fill


def fields_in(text: str) -> list[str]:
    """The names in braces."""
    return text.replace("}", "{").split("{")[1::2]


def _told(value: Any) -> str:
    return "" if value is None else plain_text(value)


def plain_text(value: Any) -> str:
    """As a key or a title shows it: whole numbers without a point, times as ISO 8601 in UTC."""
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def key_text(values: Sequence[Any]) -> str:
    """What names a thing: the values of its key."""
    return ":".join([plain_text(value) for value in values])


def iso(at: datetime) -> str:
    """`2026-12-01T12:00:00Z`, with milliseconds where there are any."""
    return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds").replace("+00:00", "Z")


def stored_names(declaration: Declaration) -> list[str]:
    """Fields that are a fact's data: place and time are columns of their own, and not there again."""
    place = declaration.place
    columns = {declaration.time, *(() if place is None else (place.lat, place.lon))}
    return [name for name, given in declaration.fields.items() if spec_of(given).stored and name not in columns]
