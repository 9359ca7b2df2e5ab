"""Refuses to build a wheel without the front end: such a wheel would install, start, and show an empty page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INDEX = Path("src/planetwire/web/static/index.html")


class FrontEndIncluded(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is "editable" for a development install, which may build the front end later."""
        if version != "editable" and not (Path(self.root) / INDEX).exists():
            raise RuntimeError(f"{INDEX} is missing: run `make setup` before building a wheel")
