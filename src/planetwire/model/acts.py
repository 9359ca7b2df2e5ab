"""What people do, as the audit log keeps it: values, no I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from planetwire.model import Actor, Json

DETAILS_MAX_BYTES = 2_000
TEXT_MAX = 200
CUT = "cut"


@dataclass(frozen=True, slots=True)
class Act:
    """One action of a person. `what` is a stable code, `<noun>.<past verb>`."""

    by: Actor
    what: str
    task_id: int | None = None
    source: str | None = None
    rows_deleted: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A stored act. Newer entries have greater ids."""

    id: int
    at: datetime
    act: Act


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """A filter of entries; a None field matches all."""

    since: datetime | None = None
    who: str | None = None
    source: str | None = None
    task_id: int | None = None
    what: str | None = None

    def wants(self, entry: AuditEntry) -> bool:
        """Whether the entry matches."""
        act = entry.act
        pairs = (
            (self.who, act.by.who),
            (self.source, act.source),
            (self.task_id, act.task_id),
            (self.what, act.what),
        )
        return all(wanted in (None, given) for wanted, given in pairs) and (
            self.since is None or entry.at >= self.since
        )


def plain(text: str) -> str:
    """Truncated, on one line, without control characters and lone surrogates: any store accepts it."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)[:TEXT_MAX]


def bounded(details: Mapping[str, Any]) -> Json:
    """The details if every store can hold them, else only their names."""
    try:
        text = json.dumps(details, default=str, ensure_ascii=False, allow_nan=False)
        if len(text.encode()) <= DETAILS_MAX_BYTES and "\\u0000" not in text:
            return dict(json.loads(text))
    except ValueError:  # a lone surrogate, NaN
        pass
    return {CUT: [plain(str(name)) for name in list(details)[:20]]}
