"""Values of a fact's data in the types that a layer expects. Total: a fact may have been typed in by hand."""

from __future__ import annotations

import math


def number(value: object) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def text(value: object) -> str:
    """Stripped text; empty for any other type."""
    return value.strip() if isinstance(value, str) else ""


def joined(*parts: str) -> str:
    """The non-empty parts, with dots between them."""
    return " · ".join(part for part in parts if part)
