"""Tables that belong to one layer: rows that it makes of facts, beside what search finds.

What creates such a table, what writes it and what watches it are printed from its declaration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

ColumnType: TypeAlias = Literal["bigint", "double precision", "text", "boolean", "timestamptz", "jsonb"]

IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
TABLE_BYTES_MAX = 36  # so that the names of its triggers are whole: PostgreSQL cuts at 63
COLUMN_BYTES_MAX = 63
OF_EVERY_TABLE = ("id", "source", "fact_key")


@dataclass(frozen=True, slots=True)
class Column:
    """`what` it says and in which `unit`. `required`: every row has one. `values`: a text that is one of these."""

    name: str
    type: ColumnType
    what: str
    unit: str = ""
    required: bool = False
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name, COLUMN_BYTES_MAX)
        if self.name in OF_EVERY_TABLE:
            raise ValueError(f"{self.name} is a column of every owned table")
        if self.values and self.type != "text":
            raise ValueError(f"{self.name}: only a text has a list of values")
        if any("'" in value or "\\" in value for value in self.values):
            raise ValueError(f"{self.name}: a value with a quotation mark or a backslash")


@dataclass(frozen=True)
class OwnedTable:
    """A table with one row, or none, for each fact of its layer. A layer's `derive` gives the values in this order.

    Beside its columns it has `id`, and `source` and `fact_key`, which name the fact. `card_key`: under which key the
    object's card shows the row. `rewritten`: each run of the feed changes nearly every row, so room is left beside.
    """

    name: str
    columns: tuple[Column, ...]
    card_key: str | None = None
    rewritten: bool = False

    def __post_init__(self) -> None:
        _check_name(self.name, TABLE_BYTES_MAX)
        names = [column.name for column in self.columns]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"{self.name}: columns with different names, at least one")
        if self.card_key is not None:
            _check_name(self.card_key, COLUMN_BYTES_MAX)

    @cached_property
    def texts(self) -> tuple[int, ...]:
        """Which of the columns are free texts, by position: one of a list of values is as it is."""
        return tuple(at for at, column in enumerate(self.columns) if column.type == "text" and not column.values)

    @cached_property
    def json(self) -> tuple[int, ...]:
        """Which of the columns are JSON, by position."""
        return tuple(at for at, column in enumerate(self.columns) if column.type == "jsonb")


def _check_name(name: str, most: int) -> None:
    if not IDENTIFIER.fullmatch(name) or len(name) > most:
        raise ValueError(f"{name!r} is no name: lower-case words and digits, joined by _, at most {most}")
