"""The rows of the card of a layer's objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Format: TypeAlias = Literal["text", "number", "temperature", "time", "flag", "choice"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The label of one value of a `choice`; for a `flag`, of `yes` or `no`."""

    equals: str
    label: str
    label_zh: str


@dataclass(frozen=True, slots=True)
class CardRow:
    """One row of a card; left out if none of its `values` can be shown in its format and `otherwise` is not set.

    The first of the values that can be shown is, or all of them with `join` between. `decimals` None: one below ten,
    none above. `unit_from`: the value that names the unit.
    """

    key: str
    label: str
    label_zh: str
    values: tuple[str, ...]
    format: Format = "text"
    join: str | None = None
    decimals: int | None = None
    unit: str | None = None
    unit_from: str | None = None
    choices: tuple[Choice, ...] = ()
    otherwise: str | None = None
    otherwise_zh: str | None = None
