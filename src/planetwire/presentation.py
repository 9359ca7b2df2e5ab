"""What the page shows of a layer, as data: how its points look, what its legend says, the rows of its cards.

No expressions and no code: both sides read the same few words, so that a page draws layers that it has never heard of.
A value is named by its key in a fact's data, as `observed_at` or `kind` (the fact's own), or as what the drawing of the
kind works out, such as the altitude of a satellite.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

By: TypeAlias = Literal["age", "value", "category"]
Format: TypeAlias = Literal["text", "number", "temperature", "time", "flag", "choice"]


# --- the look on the globe --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScaleClass:
    """One colour of a scale and one line of the legend. It holds what is below its bound and not in an earlier class.

    `up_to_s` bounds an age and is part of the class, `below` bounds a value and is not, `equals` is a category. One
    class of a scale may do without: it holds everything else, and comes last unless it is a category.
    """

    key: str
    label: str
    label_zh: str
    color: str
    alpha: float = 0.95
    up_to_s: float | None = None
    below: float | None = None
    equals: str | None = None
    size_px: float | None = None  # instead of the look's size


@dataclass(frozen=True, slots=True)
class Paint:
    """A colour that stands in no legend."""

    color: str
    alpha: float = 0.95


@dataclass(frozen=True, slots=True)
class Scale:
    """Colour by the age of `observed_at`, by a number or by a category. `unknown`: of what has no such value.

    Without it what has no value is with everything else.
    """

    by: By
    classes: tuple[ScaleClass, ...]
    value: str | None = None
    unknown: Paint | None = None


@dataclass(frozen=True, slots=True)
class FixedSize:
    """The diameter of every point."""

    px: float = 5.0


@dataclass(frozen=True, slots=True)
class GrowingSize:
    """Diameter `base_px * factor ** value` within bounds; `else_px` where there is no such number."""

    value: str
    base_px: float
    factor: float
    least_px: float
    most_px: float
    else_px: float


@dataclass(frozen=True, slots=True)
class Late:
    """How faint a point is once `observed_at` is older than so many seconds, or than its own `value` says."""

    after_s: float
    alpha: float
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """The points of a layer. Without a scale: the colour that the page gives to the kind, and no legend."""

    color: Scale | None = None
    size: FixedSize | GrowingSize = FixedSize()
    late: Late | None = None


PLAIN = Look()


# --- the card ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """What a value of a `choice` is called; for a `flag`, what `yes` and `no` are."""

    equals: str
    label: str
    label_zh: str


@dataclass(frozen=True, slots=True)
class CardRow:
    """One row of a card; left out where none of its `values` can be shown in its format, unless it says `otherwise`.

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


# --- on the wire ------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """As JSON has it, without what was not given."""
    if dataclasses.is_dataclass(value):
        pairs = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
        return {name: plain(part) for name, part in pairs if part is not None and part != ()}
    return [plain(part) for part in value] if isinstance(value, tuple) else value


def look_on_wire(look: Look) -> dict[str, Any]:
    """With all three of its parts, null for none."""
    return {"color": None, "late": None, **plain(look)}
