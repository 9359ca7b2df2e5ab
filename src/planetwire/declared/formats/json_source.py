"""Records of a JSON body: one after the other where the path allows it, else out of the body as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jsonpath.path import JSONPath

from planetwire.collect.formats.body import sample_of
from planetwire.collect.formats.json_records import json_records
from planetwire.collect.formats.records import Broken, Records, json_value
from planetwire.declared.formats.paths import list_under, named_values, query
from planetwire.errors import FeedError

WHOLE_BYTES_MAX = 4 * 1024 * 1024  # read as a whole it takes many times that in memory
NAME = "\x00name"  # under which a member's own name is added to a record; no path names it


def reader(path: str, *, named: bool) -> Callable[[bytes], Records]:
    """How a body is read. `named`: each record has its own name, see `member`.

    Lists at the top and under one name are read in places; for every other path the body has at most WHOLE_BYTES_MAX.
    Raises BadPath.
    """
    found = query(path)
    names = list_under(found)

    def read(body: bytes) -> Records:
        return (None if named else _in_places(body, found, names)) or _as_a_whole(body, found, names, named=named)

    return read


def _in_places(body: bytes, found: JSONPath, names: list[str] | None) -> Records | None:
    """None where the records do not lie in a list at the top, or under one name of an object there."""
    first = body.lstrip()[:1]
    if (names == [] and first == b"[") or (not found.segments and first == b"{"):
        return json_records(body)
    if names is None or len(names) != 1:
        return None
    try:
        return json_records(body, names[0])
    except FeedError:
        if len(body) > WHOLE_BYTES_MAX:
            raise
        return None  # an object may be under that name, whose members are the records


def _as_a_whole(body: bytes, found: JSONPath, names: list[str] | None, *, named: bool) -> Records:
    if len(body) > WHOLE_BYTES_MAX:
        raise FeedError(f"for this path a body has at most {WHOLE_BYTES_MAX} bytes", code="bad_body")
    try:
        value = json_value(body)
    except Broken as broken:
        raise FeedError(f"no JSON: {broken.reason}: {sample_of(body)!r}", code="bad_body") from None
    out = Records(body, made=lambda place: place[1])
    some = False
    for name, record in named_values(found, value):
        some = some or isinstance(record, dict | list)
        out.add((name, _with_name(record, name) if named else record))
    if not some and not _is_empty_list(value, names):
        raise FeedError(f"no records at {str(found)!r}: {sample_of(body)!r}", code="bad_body")
    return out


def _with_name(record: Any, name: str) -> Any:
    return {**record, NAME: name} if isinstance(record, dict) else {"value": record, NAME: name}


def _is_empty_list(value: Any, names: list[str] | None) -> bool:
    """Whether there is a list, or an object, where the records should be: then there are none, and that is all."""
    for name in names or ():
        value = value.get(name) if isinstance(value, dict) else None
    return names is not None and isinstance(value, list | dict) and not value


def with_header(items: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Records that are lists as objects, named by the first of them; objects as they are.

    Publishers have changed from one form to the other, so a declaration takes both.
    """
    names: list[str] | None = None
    for index, item in items:
        if not isinstance(item, list):
            yield index, item
        elif names is None:
            names = [str(name).strip() for name in item]
        else:
            yield index, dict(zip(names, item, strict=False)) if len(item) <= len(names) else item
