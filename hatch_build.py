"""Refuses to build a wheel without the front end, or with one that was not packed: it would install, start, and show an
empty page, or send every browser four times the bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INDEX = Path("src/planetwire/web/static/index.html")
PACKED = (".br", ".gz")


class FrontEndIncluded(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is "editable" for a development install, which may build the front end later."""
        if version == "editable":
            return
        index = Path(self.root) / INDEX
        if not index.exists():
            raise RuntimeError(f"{INDEX} is missing: run `make setup` before building a wheel")
        for script in (index.parent / "assets").glob("*.js"):
            for suffix in PACKED:
                if not script.with_name(script.name + suffix).exists():
                    raise RuntimeError(f"{script.name}{suffix} is missing: build the front end with `npm run build`")
