"""How the objects of a layer are drawn on the globe; the legend is the scale, with counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

By: TypeAlias = Literal["age", "value", "category"]


@dataclass(frozen=True, slots=True)
class ScaleClass:
    """One colour of a scale and one line of the legend. It holds values below its bound that are in no earlier class.

    `up_to_s` bounds an age and is part of the class, `below` bounds a value and is not, `equals` is a category. One
    class of a scale may have none of them: it contains everything else, and comes last unless it is a category.
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
    """A colour without a legend entry."""

    color: str
    alpha: float = 0.95


@dataclass(frozen=True, slots=True)
class Scale:
    """Colour by the age of `observed_at`, by a number or by a category. `unknown`: for objects without such a value.

    Without `unknown` they belong to the class for everything else.
    """

    by: By
    classes: tuple[ScaleClass, ...]
    value: str | None = None
    unknown: Paint | None = None


@dataclass(frozen=True, slots=True)
class FixedSize:
    """The diameter of every point; the width of every line, and of the border of every area."""

    px: float = 5.0


@dataclass(frozen=True, slots=True)
class GrowingSize:
    """Diameter or width `base_px * factor ** value` within bounds; `else_px` without such a number."""

    value: str
    base_px: float
    factor: float
    least_px: float
    most_px: float
    else_px: float


@dataclass(frozen=True, slots=True)
class Late:
    """The opacity of an object whose `observed_at` is older than so many seconds, or than its own `value`."""

    after_s: float
    alpha: float
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """The points, lines or areas of a layer. Without a scale: the page's colour for the kind, and no legend.

    `fill_alpha`: the opacity of the inside of an area, as a share of that of its border; None: the page's own.
    """

    color: Scale | None = None
    size: FixedSize | GrowingSize = FixedSize()
    late: Late | None = None
    fill_alpha: float | None = None


PLAIN = Look()
