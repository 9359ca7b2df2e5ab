"""What the types of the declaration say of a text, as faults with places, in our words."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError

from planetwire.declared.faults import Fault, nearest, quoted
from planetwire.declared.marked import Loc, Marked
from planetwire.declared.model import Declaration

_EXPECTED = re.compile(r"'([^']*)'")
_MISSING = "missing"
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_WORDS = {
    "float_type": "a number is needed",
    "float_parsing": "a number is needed",
    "int_type": "a whole number is needed",
    "int_parsing": "a whole number is needed",
    "int_from_float": "a whole number is needed",
    "bool_type": "`true` or `false` is needed",
    "bool_parsing": "`true` or `false` is needed",
    "string_type": "a text is needed",
    "list_type": "a list is needed",
    "tuple_type": "a list is needed",
    "dict_type": "a mapping of names to values is needed",
    "model_type": "a mapping of names to values is needed",
    "dataclass_type": "a mapping of names to values is needed",
}
_BOUNDS = {
    "greater_than": "more than {gt:g} is needed",
    "greater_than_equal": "{ge:g} or more is needed",
    "less_than": "less than {lt:g} is needed",
    "less_than_equal": "{le:g} or less is needed",
    "too_short": "at least {min_length} of them are needed",
    "too_long": "at most {max_length} of them are allowed",
    "string_too_short": "a text of at least {min_length} characters is needed",
    "string_too_long": "a text of at most {max_length} characters is needed",
}
_PATTERNS = {
    "source": "lower-case words of letters and digits, joined by `_`, at most 32 characters: `city_bikes`",
    "fields": "a field's name is lower-case letters, digits and `_`, beginning with a letter",
    "header": "the name of a header: letters, digits and `-`",
    "query": "the name of a parameter: letters, digits, `_`, `.`, `~`, `-`",
}


def shape_faults(error: ValidationError, marked: Marked) -> list[Fault]:
    """One for each thing that is wrong; of the alternatives of a type only the one that was meant. At least one."""
    found: dict[tuple[Loc, str], Fault] = {}
    left_out: list[Fault] = []
    for one in error.errors(include_url=False):
        loc, alternatives = _in_text(one["loc"], marked.value, missing=one["type"] == _MISSING)
        fault = _fault(one, loc, marked)
        if all(_is_meant(word, _at(marked.value, at)) for at, word in alternatives):
            found.setdefault((loc, fault.code), fault)
        else:
            left_out.append(fault)
    return list(found.values()) or left_out[:1]


def _in_text(loc: tuple[int | str, ...], value: Any, *, missing: bool) -> tuple[Loc, list[tuple[Loc, str]]]:
    """The part of a place that stands in the text; and, with their places, parts that name alternatives of a type.

    Of what is `missing` the last part is the name that should be there.
    """
    found: Loc = ()
    alternatives: list[tuple[Loc, str]] = []
    for at, part in enumerate(loc):
        if (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        ):
            value = _inside(value, part)
            found = (*found, part)
        elif missing and at == len(loc) - 1:
            found = (*found, part)
        else:
            alternatives.append((found, str(part)))
    return found, alternatives


def _at(value: Any, loc: Loc) -> Any:
    for part in loc:
        value = _inside(value, part)
    return value


def _inside(value: Any, part: str | int) -> Any:
    """None where there is no such part."""
    if isinstance(value, list):
        return value[part] if isinstance(part, int) and 0 <= part < len(value) else None
    return value.get(part) if isinstance(value, dict) else None


def _is_meant(alternative: str, value: Any) -> bool:
    """Whether who wrote this value can have meant that alternative of a type."""
    if isinstance(value, dict):
        return alternative[:1].isupper() or alternative.startswith(("dict", "function"))
    if isinstance(value, list):
        return alternative.startswith("list")
    return not alternative[:1].isupper() and not alternative.startswith(("dict", "list"))


def _fault(one: Mapping[str, Any], loc: Loc, marked: Marked) -> Fault:
    kind, word = str(one["type"]), str(loc[-1]) if loc else ""
    if kind in _UNKNOWN:
        known = _words_at(loc[:-1])
        return marked.fault(loc, "unknown_name", f"{quoted(word)} is not known here", nearest(word, known))
    if kind == _MISSING:
        return marked.fault(loc, "missing", f"{quoted(word)} is missing", _description(loc))
    value = one.get("input")
    if kind == "literal_error":
        known = _EXPECTED.findall(str(one.get("ctx", {}).get("expected", "")))
        return marked.fault(
            loc, "unknown_word", f"{quoted(value)} is none of the words for this", nearest(str(value), known)
        )
    if kind == "string_pattern_mismatch":
        names = [str(part) for part in loc if str(part) in _PATTERNS]
        remedy = _PATTERNS[names[-1]] if names else _description(loc)
        return marked.fault(loc, "bad_name", f"{quoted(value)} is no name for this", remedy)
    bound = _BOUNDS[kind].format(**one["ctx"]) if kind in _BOUNDS else None
    message = bound or _WORDS.get(kind) or str(one["msg"]).removeprefix("Value error, ")
    return marked.fault(loc, "bad_value", f"{message}, not {quoted(value)}", _description(loc))


def _words_at(loc: Loc) -> list[str]:
    """The names that may stand there."""
    return [name for model in _models_at(loc) for name in _names(model)]


def _description(loc: Loc) -> str:
    """What the schema says of it."""
    if not loc:
        return ""
    for model in _models_at(loc[:-1]):
        if issubclass(model, BaseModel) and loc[-1] in model.model_fields:
            return model.model_fields[str(loc[-1])].description or ""
    return ""


def _models_at(loc: Loc) -> list[type[Any]]:
    found: list[type[Any]] = [Declaration]
    for part in loc:
        inner = [_annotation(model, str(part)) for model in found]
        if isinstance(part, int) or all(one is None for one in inner):
            continue  # an item of a list, a name of a mapping: the type inside was found already
        found = [model for one in inner for model in _models_in(one)]
    return found


def _annotation(model: type[Any], name: str) -> Any:
    if issubclass(model, BaseModel):
        return model.model_fields[name].annotation if name in model.model_fields else None
    return next((_hints(model)[one.name] for one in dataclasses.fields(model) if one.name == name), None)


def _hints(model: type[Any]) -> dict[str, Any]:
    return get_type_hints(model)


def _models_in(annotation: Any) -> Iterator[type[Any]]:
    """Every class with names of its own that a type mentions."""
    if get_origin(annotation) in (Union, UnionType) or get_args(annotation):
        for part in get_args(annotation):
            yield from _models_in(part)
    elif isinstance(annotation, type) and (issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)):
        yield annotation


def _names(model: type[Any]) -> list[str]:
    if issubclass(model, BaseModel):
        return list(model.model_fields)
    return [one.name for one in dataclasses.fields(model)]
