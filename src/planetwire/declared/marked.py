"""YAML 1.2 or JSON text as plain values, and where in the text each of them stands.

Only what a declaration needs: one document, no anchors, aliases or tags, bounded in size and depth. Plain words are
what YAML 1.2 says they are, so that `no`, `12:30` and `2026-11-30` are texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from planetwire.declared.faults import DeclarationFaults, Fault, quoted
from planetwire.model.facts import DECLARATION_MAX_BYTES

DEPTH_MAX = 12
VALUES_MAX = 5_000
Loc: TypeAlias = tuple[str | int, ...]

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE, _FALSE = frozenset({"true", "True", "TRUE"}), frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,18}|[0-9]{1,18}(\.[0-9]{0,18})?)([eE][-+]?[0-9]{1,3})?")
_OPENS = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSES = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


@dataclass(slots=True)
class Marked:
    """Plain values, and (line, column) of each: of a member of a mapping that of its name. Both begin at 1."""

    value: Any = None
    places: dict[Loc, tuple[int, int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def place(self, loc: Loc) -> tuple[int, int]:
        """Of what is there, or of the nearest thing around it."""
        while loc not in self.places and loc:
            loc = loc[:-1]
        return self.places.get(loc, (1, 1))

    def fault(self, loc: Loc, code: str, message: str, remedy: str = "") -> Fault:
        """A fault of what is there."""
        return Fault(*self.place(loc), code, message, remedy)


def read_marked(text: str, name: str) -> Marked:
    """The document. Raises DeclarationFaults when it is none; a name given twice is noted in `faults`."""
    if len(text.encode(errors="replace")) > DECLARATION_MAX_BYTES:
        raise _refused(name, None, "too_large", f"a declaration has at most {DECLARATION_MAX_BYTES:,} bytes")
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith("{"):
        text = text.replace("\t", " ")  # JSON may be indented so; inside its texts there is none
    try:
        _check_events(text, name)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        remedy = "a text with `: `, `#` or a bracket needs quotation marks; indent with spaces"
        raise _refused(name, mark, "no_yaml", f"no YAML: {error.problem or error.context}", remedy) from None
    except yaml.YAMLError as error:  # a character that no YAML may hold
        raise _refused(name, None, "no_yaml", f"no YAML: {getattr(error, 'reason', 'unreadable')}") from None
    if not isinstance(node, yaml.MappingNode):
        raise _refused(
            name, None, "no_mapping", "a declaration is a mapping of names to values", "begin with `source:`"
        )
    marked = Marked()
    marked.value = _value(node, (), marked)
    return marked


def _refused(name: str, mark: Any, code: str, message: str, remedy: str = "") -> DeclarationFaults:
    line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
    return DeclarationFaults([Fault(line, column, code, message, remedy)], name)


def _check_events(text: str, name: str) -> None:
    """Before any value is made of it: the parser goes through the text without recursion."""
    depth = values = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, _OPENS)
        depth -= isinstance(event, _CLOSES)
        values += isinstance(event, yaml.ScalarEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _refused(name, event.start_mark, "no_alias", "anchors and aliases are not read", "write it out")
        if getattr(event, "tag", None) is not None:
            raise _refused(name, event.start_mark, "no_tag", "tags (`!…`) are not read", "leave the tag out")
        if depth > DEPTH_MAX:
            raise _refused(name, event.start_mark, "too_deep", f"nested more than {DEPTH_MAX} levels deep")
        if values > VALUES_MAX:
            raise _refused(name, event.start_mark, "too_large", f"more than {VALUES_MAX} values")
        if documents > 1:
            raise _refused(name, event.start_mark, "two_documents", "a second document", "one source a file")


def _value(node: Any, loc: Loc, marked: Marked) -> Any:
    marked.places.setdefault(loc, (node.start_mark.line + 1, node.start_mark.column + 1))
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*loc, at), marked) for at, item in enumerate(node.value)]
    return dict(_members(node, loc, marked))


def _members(node: Any, loc: Loc, marked: Marked) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for key, inner in node.value:
        line, column = key.start_mark.line + 1, key.start_mark.column + 1
        if not isinstance(key, yaml.ScalarNode):
            marked.faults.append(Fault(line, column, "bad_name", "a name is a word"))
            continue
        name = str(key.value)
        if name in seen:
            marked.faults.append(Fault(line, column, "twice", f"{quoted(name)} is there twice", "leave one"))
            continue
        seen.add(name)
        marked.places[(*loc, name)] = (line, column)
        yield name, _value(inner, (*loc, name), marked)


def _scalar(node: Any) -> Any:
    text = str(node.value)
    if node.style is not None:  # in quotation marks, or a block
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
