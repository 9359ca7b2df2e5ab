"""How the page presents a layer, as data: the look of its objects, its legend, the rows of its cards.

A closed vocabulary without expressions or code, so that a page can draw layers it was not built with. A value is named
by its key in a fact's data, as `observed_at` or `kind` (of the fact itself), or as a value that the page computes for
the kind, such as the altitude of a satellite.
"""

from __future__ import annotations

from planetwire.model.presentation.card import CardRow, Choice
from planetwire.model.presentation.look import (
    PLAIN,
    FixedSize,
    GrowingSize,
    Late,
    Look,
    Paint,
    Scale,
    ScaleClass,
)

__all__ = [
    "PLAIN",
    "CardRow",
    "Choice",
    "FixedSize",
    "GrowingSize",
    "Late",
    "Look",
    "Paint",
    "Scale",
    "ScaleClass",
]
