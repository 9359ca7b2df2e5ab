"""What the page shows of a layer, as data: how its points look, what its legend says, the rows of its cards.

No expressions and no code: both sides read the same few words, so that a page draws layers that it has never heard of.
A value is named by its key in a fact's data, as `observed_at` or `kind` (the fact's own), or as what the drawing of the
kind works out, such as the altitude of a satellite.
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
