"""What cached snapshots are called, and which of these names a pattern means. Pure.

`earth:layer:<layer>:<variant>` is a body of a layer, `dash:terminal:<name>` one of the Terminal's. Whoever keeps a
snapshot names it here, so that the patterns of the registry mean something.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def layer_body(layer: str, variant: str) -> str:
    """A layer's body in one state, coding and length."""
    return f"earth:layer:{layer}:{variant}"


def terminal_body(name: str) -> str:
    """A snapshot of the dashboard: `scan`, `detail shanghai`."""
    return f"dash:terminal:{name}"


def is_meant(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns means the name, as in a shell: `*`, `?`, `[…]`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
