"""The published JSON Schema of declarations, made of the model: editors complete and explain names with it."""

from __future__ import annotations

import json
from typing import Any

from planetwire.declared.model import Declaration

ID = "source.v1.schema.json"


def source_schema() -> dict[str, Any]:
    """JSON Schema 2020-12. What parts say of each other is not in it: `check-source` tells that."""
    made = Declaration.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        **_without_titles(made, names=False),
        "title": "source.v1",
    }


def schema_text() -> str:
    """As `spec/sources/` holds it."""
    return json.dumps(source_schema(), ensure_ascii=False, indent=2) + "\n"


def _without_titles(value: Any, *, names: bool) -> Any:
    """Generated titles repeat the names. `names`: the mapping's keys are names of ours, `title` among them."""
    if isinstance(value, list):
        return [_without_titles(one, names=False) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: one for key, one in value.items() if names or key != "title"}
    return {key: _without_titles(one, names=key in ("properties", "$defs") and not names) for key, one in kept.items()}
