"""A sender's value as it may be quoted in a message: short, and safe whatever it is."""

from __future__ import annotations

SHOWN_CHARS = 40


def shown(raw: object) -> str:
    """Texts and numbers quoted and cut; of anything else only its kind."""
    if isinstance(raw, str):
        return repr(raw[:SHOWN_CHARS])
    if raw is None or isinstance(raw, bool | float):
        return repr(raw)
    if isinstance(raw, int):
        return repr(raw) if abs(raw) < 10**18 else "a very large number"
    return f"a JSON {'object' if isinstance(raw, dict) else 'array'}"
