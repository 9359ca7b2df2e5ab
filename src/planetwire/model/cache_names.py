"""The names of cached snapshots, and which of them a pattern matches. Pure.

`earth:layer:<layer>:<variant>` is a body of a layer, `dash:terminal:<name>` one of the Terminal's. All names are
made here, so that the cache patterns of the registry match them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def layer_body(layer: str, variant: str) -> str:
    """The name of a layer's body: state, content coding, length."""
    return f"earth:layer:{layer}:{variant}"


def terminal_body(name: str) -> str:
    """The name of a Terminal snapshot: `scan`, `detail shanghai`."""
    return f"dash:terminal:{name}"


def is_meant(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches the name, as in a shell: `*`, `?`, `[…]`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
