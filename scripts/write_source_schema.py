"""Writes `spec/sources/source.v1.schema.json` anew; a test compares it with the model."""

from __future__ import annotations

from pathlib import Path

from planetwire.declared.schema import ID, schema_text

if __name__ == "__main__":
    (Path(__file__).resolve().parent.parent / "spec" / "sources" / ID).write_text(schema_text(), encoding="utf-8")
