"""A sender's value, short and safe to quote in a message."""

from __future__ import annotations

SHOWN_CHARS = 40


def shown(raw: object) -> str:
    """Texts and numbers quoted and truncated; of anything else only the type."""
    if isinstance(raw, str):
        return repr(raw[:SHOWN_CHARS])
    if raw is None or isinstance(raw, bool | float):
        return repr(raw)
    if isinstance(raw, int):
        return repr(raw) if abs(raw) < 10**18 else "a very large number"
    return f"a JSON {'object' if isinstance(raw, dict) else 'array'}"
