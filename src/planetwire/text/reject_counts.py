"""How many records of a body were refused, by code, as the message of a job carries it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_COUNTS = re.compile(r"(?:^|, )\d+ rejected \(([a-z_]+ \d+(?:, [a-z_]+ \d+)*)\)")


def rejected_text(codes: Mapping[str, int]) -> str:
    """`5 rejected (bad_value 3, no_record 2)`, the most frequent code first."""
    listed = sorted(codes.items(), key=lambda item: (-item[1], item[0]))
    return f"{sum(codes.values())} rejected ({', '.join(f'{code} {count}' for code, count in listed)})"


def rejected_in(message: str | None) -> dict[str, int]:
    """The counts that a message has from `rejected_text`; empty without."""
    found = _COUNTS.search(message or "")
    if found is None:
        return {}
    pairs = (part.split(" ") for part in found[1].split(", "))
    return {code: int(count) for code, count in pairs}
