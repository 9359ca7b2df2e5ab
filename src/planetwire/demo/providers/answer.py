"""A request to a simulated provider, and its response."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass, field
from functools import cached_property

JSON = "application/json"
GEOJSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Query:
    """The parts of a request that a provider uses. `conditional`: it carried a validator."""

    values: dict[str, str]
    client: str = ""
    conditional: bool = False

    def get(self, name: str, default: str = "") -> str:
        """A query value by its case-insensitive name."""
        return self.values.get(name.lower(), default)


@dataclass(frozen=True)
class Answer:
    """A body to serve. `modified_s` (epoch) gives Last-Modified; validators are sent on 200 only."""

    body: bytes
    content_type: str = TEXT
    status: int = 200
    modified_s: float | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @cached_property
    def etag(self) -> str:
        """A strong validator, derived from the bytes."""
        return f'"{hashlib.blake2b(self.body, digest_size=10).hexdigest()}"'

    @cached_property
    def gzipped(self) -> bytes:
        """The body compressed; the same bytes each time."""
        return gzip.compress(self.body, 5, mtime=0)


def text(status: int, message: str) -> Answer:
    """A plain-text error, in the providers' form: no trailing newline."""
    return Answer(message.encode(), TEXT, status)
