"""Where in a JSON value something lies: RFC 9535 JSONPath, compiled once.

The usual path (`$.a.b[0]`) becomes a direct look-up; the library reads every other. What such a query may cost is
bounded when it is compiled: `match` and `search` are refused, since a pattern can be made to run for ever, and so is
what would visit a value many times over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import jsonpath
from jsonpath.filter import BaseExpression, FilterQuery, RootFilterQuery
from jsonpath.path import JSONPath
from jsonpath.segments import JSONPathRecursiveDescentSegment
from jsonpath.selectors import Filter, IndexSelector, NameSelector, WildcardSelector

Get: TypeAlias = Callable[[Any], Any]

PATH_CHARS_MAX = 500
STEPS_MAX = 16
SELECTORS_MAX = 4  # the product over all steps: `$[*,*][*,*]` sees each value four times
REFUSED = ("match", "search")


class BadPath(ValueError):
    """Why a path is not taken, in our words. `code`: `bad_path` or `costly_path`."""

    def __init__(self, message: str, code: str = "bad_path") -> None:
        super().__init__(message)
        self.code = code


def _environment() -> jsonpath.JSONPathEnvironment:
    environment = jsonpath.JSONPathEnvironment(strict=True)
    for name in REFUSED:
        environment.function_extensions.pop(name)
    return environment


_ENVIRONMENT = _environment()


def query(path: str) -> JSONPath:
    """The compiled query. Raises BadPath."""
    if len(path) > PATH_CHARS_MAX:
        raise BadPath(f"a path has at most {PATH_CHARS_MAX} characters")
    if not path.startswith("$"):
        raise BadPath("a JSONPath begins with `$`, which is the record itself")
    try:
        found = _ENVIRONMENT.compile(path)
    except (jsonpath.JSONPathError, ValueError, ArithmeticError, RecursionError) as error:
        refused = next((name for name in REFUSED if f"{name}(" in path), None)
        if refused is not None:
            message = f"`{refused}` is refused: a pattern can be made to run for ever"
            raise BadPath(message, "costly_path") from None
        raise BadPath(f"no JSONPath (RFC 9535): {str(error).splitlines()[0] if str(error) else 'unreadable'}") from None
    if not isinstance(found, JSONPath):
        raise BadPath("one path; paths are not joined")
    cost = _Cost()
    cost.of(found)
    cost.check()
    return found


class _Cost:
    """What makes a query visit values more than once each."""

    def __init__(self) -> None:
        self.selectors = 1
        self.descents = 0
        self.steps = 0

    def of(self, path: JSONPath) -> None:
        for segment in path.segments:
            self.steps += 1
            self.descents += isinstance(segment, JSONPathRecursiveDescentSegment)
            self.selectors *= max(1, len(segment.selectors))
            for selector in segment.selectors:
                if isinstance(selector, Filter):
                    self._expression(selector.expression)

    def _expression(self, expression: BaseExpression) -> None:
        if isinstance(expression, FilterQuery):
            if isinstance(expression, RootFilterQuery):
                raise BadPath("a filter looks at `@`, not at `$` again for each value", "costly_path")
            self.of(expression.path)
            return
        for child in expression.children() or ():
            self._expression(child)

    def check(self) -> None:
        if self.descents > 1:
            raise BadPath("one `..` in a path is the most: each further one multiplies the work", "costly_path")
        if self.selectors > SELECTORS_MAX:
            raise BadPath(f"more than {SELECTORS_MAX} alternatives (`[a,b]`) multiplied", "costly_path")
        if self.steps > STEPS_MAX:
            raise BadPath(f"more than {STEPS_MAX} steps", "costly_path")


def simple_steps(found: JSONPath) -> list[str | int] | None:
    """Names and indexes when that is all the path has; None for any other."""
    steps: list[str | int] = []
    for segment in found.segments:
        if isinstance(segment, JSONPathRecursiveDescentSegment) or len(segment.selectors) != 1:
            return None
        selector = segment.selectors[0]
        if isinstance(selector, NameSelector):
            steps.append(selector.name)
        elif isinstance(selector, IndexSelector):
            steps.append(selector.index)
        else:
            return None
    return steps


def list_under(found: JSONPath) -> list[str] | None:
    """The names down to the list whose members are asked for (`$.a.b[*]`); None for any other path."""
    if not found.segments:
        return None
    *before, last = found.segments
    if isinstance(last, JSONPathRecursiveDescentSegment) or len(last.selectors) != 1:
        return None
    if not isinstance(last.selectors[0], WildcardSelector):
        return None
    steps = simple_steps(JSONPath(env=_ENVIRONMENT, segments=before))
    return None if steps is None or not all(isinstance(step, str) for step in steps) else [str(step) for step in steps]


def getter(path: str) -> Get:
    """The first value that the path names in a record, or None. Raises BadPath."""
    found = query(path)
    steps = simple_steps(found)
    return _first_of(found) if steps is None else _direct(steps)


def _direct(steps: list[str | int]) -> Get:
    if all(isinstance(step, str) for step in steps):
        if len(steps) == 1:
            return _one_name(str(steps[0]))
        if len(steps) == 2:
            return _two_names(str(steps[0]), str(steps[1]))

    def get(record: Any) -> Any:
        for step in steps:
            if isinstance(step, str):
                record = record.get(step) if isinstance(record, dict) else None
            elif isinstance(record, list) and -len(record) <= step < len(record):
                record = record[step]
            else:
                return None
        return record

    return get


def _one_name(name: str) -> Get:
    def get(record: Any) -> Any:
        try:
            return record[name]
        except (KeyError, TypeError):
            return None

    return get


def _two_names(first: str, second: str) -> Get:
    def get(record: Any) -> Any:
        try:
            return record[first][second]
        except (KeyError, TypeError):
            return None

    return get


def _first_of(found: JSONPath) -> Get:
    def get(record: Any) -> Any:
        return next(values_of(found, record), None)

    return get


def values_of(found: JSONPath, value: Any) -> Iterator[Any]:
    """What the query names, in order; nothing more after what the library cannot follow, such as 100 levels."""
    for match in _matches(found, value):
        yield match.obj


def named_values(found: JSONPath, value: Any) -> Iterator[tuple[str, Any]]:
    """The same, each with the name or index under which it lies."""
    for match in _matches(found, value):
        yield str(match.parts[-1]) if match.parts else "", match.obj


def _matches(found: JSONPath, value: Any) -> Iterator[jsonpath.JSONPathMatch]:
    try:
        yield from found.finditer(value)
    except (jsonpath.JSONPathError, RecursionError, ValueError, TypeError):
        return
