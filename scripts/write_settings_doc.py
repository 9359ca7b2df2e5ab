"""Generates docs/settings.md from the settings; a test compares the two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from planetwire.settings import PREFIX, FeedSettings, Section, Settings, default_data_dir

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
HEAD = """# Settings

Environment variables only. A misspelt `PLANETWIRE_*` variable stops the start and names the nearest known one; an empty
one is unset. `planetwire config` prints the effective values. This page is written by `scripts/write_settings_doc.py`.

| variable | default | what it does |
|---|---|---|
"""


def _default(name: str, field: FieldInfo) -> str:
    if name == "data_dir":
        return f"`{str(default_data_dir()).replace(str(Path.home()), '~')}`"
    value: Any = field.default
    if value is PydanticUndefined or value is None:
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _rows(model: type[BaseModel], prefix: str) -> list[str]:
    rows: list[str] = []
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if name == "feeds":
            rows += _rows(FeedSettings, f"{PREFIX}FEEDS__<SOURCE>__")
        elif isinstance(annotation, type) and issubclass(annotation, Section):
            rows += _rows(annotation, f"{prefix}{name.upper()}__")
        else:
            alias = field.validation_alias
            choices = getattr(alias, "choices", None)
            variable = " or ".join(f"`{choice}`" for choice in choices) if choices else f"`{prefix}{name.upper()}`"
            rows.append(f"| {variable} | {_default(name, field)} | {field.description or ''} |")
    return rows


def page() -> str:
    """The whole page."""
    return HEAD + "\n".join(_rows(Settings, PREFIX)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
