"""The JSON form of a look and a card."""

from __future__ import annotations

import dataclasses
from typing import Any

from planetwire.model.presentation.look import Look


def plain(value: Any) -> Any:
    """As JSON, without fields that were not given."""
    if dataclasses.is_dataclass(value):
        pairs = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
        return {name: plain(part) for name, part in pairs if part is not None and part != ()}
    return [plain(part) for part in value] if isinstance(value, tuple) else value


def look_on_wire(look: Look) -> dict[str, Any]:
    """With colour, size and lateness in any case, null for none."""
    return {"color": None, "late": None, **plain(look)}
