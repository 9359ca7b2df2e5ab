"""Loads the `.sql` file that lies beside a module: SQL stays visible as SQL, one keystroke from its caller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)$", re.MULTILINE)


class Queries:
    """Named statements as attributes: `Q.claim_job`. Unknown names raise AttributeError."""

    def __init__(self, named: dict[str, str]) -> None:
        self._named = named

    def __getattr__(self, name: str) -> str:
        try:
            return self._named[name]
        except KeyError:
            raise AttributeError(name) from None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._named.items())


def queries_beside(module_file: str) -> Queries:
    """Statements of the `.sql` of the same stem: `jobs_postgres.py` reads `jobs_postgres.sql`.

    Each begins with a line `-- name: lower_case`. Raises ValueError when a name is defined twice.
    """
    text = Path(module_file).with_suffix(".sql").read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    named: dict[str, str] = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if name in named:
            raise ValueError(f"{module_file}: query {name} is defined twice")
        named[name] = body.strip().removesuffix(";")
    return Queries(named)
