"""Facts of feeds, on their way from a body to committed rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from planetwire.model.common import Json

FACT_TABLE = "collected_data"
STORE = "store"  # the origin of a declaration that no file brought
FROM_FILE = "file:"  # before whose folder it was
DECLARATION_MAX_BYTES = 32_768
SOURCE_CHARS_MAX = 32  # of the name that a declaration or a plug-in gives its source
SOURCES_MAX = 500  # declared at a time

RowsOf: TypeAlias = Callable[[str], Awaitable[Mapping[str, int]]]  # a source's rows by table, facts first


@dataclass(frozen=True, slots=True)
class SourceDefaults:
    """A source's settings unless an operator changes them. `floor_s`: the provider's minimum interval."""

    source: str
    interval_s: float
    floor_s: float
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Fact:
    """A future row of `collected_data`, without its source. `external_key` is unique within the source."""

    external_key: str
    kind: str
    title: str
    data: Json
    lat: float | None = None
    lon: float | None = None
    observed_at: datetime | None = None
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that was refused. `sample` is at most 200 characters; `offset` is its index in the body.

    `reason` is for people, `code` for programs: one of the list in docs/operations.md.
    """

    reason: str
    sample: str
    offset: int
    code: str = "broken"


@dataclass(frozen=True, slots=True)
class Parsed:
    """The parsed content of one body of a feed. `complete` is True only if the body was read to its end."""

    rows: Sequence[Fact | Json]
    rejects: Sequence[Reject]
    complete: bool
    notes: Mapping[str, int] = field(default_factory=dict)  # skipped without being wrong: `duplicates`, `prose`
    tombstones: frozenset[str] = frozenset()  # keys the publisher deleted, or merged into another key of the body
    refused_keys: frozenset[str] = frozenset()  # keys of rejects, where readable: their older facts are not swept


@dataclass(frozen=True, slots=True)
class FetchState:
    """Validators of a source's last verified body, for a conditional next request."""

    etag: str | None = None
    last_modified: str | None = None
    body_sha256: str | None = None
    fetched_at: datetime | None = None
    cooldown_until: datetime | None = None
    void: bool = False  # facts were deleted since, not by the feed's own sweep (contracts §1)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction of a collect job commits.

    `complete` is True only on the last batch of a verified whole body: then facts of the source whose keys
    did not appear in the run are swept (`sweep_keys` holds all keys of the body), and `state` is stored.
    """

    facts: Sequence[Fact]
    rejects: Sequence[Reject] = ()
    total_hint: int | None = None
    complete: bool = False
    sweep_keys: frozenset[str] | None = None
    state: FetchState | None = None
    message: str | None = None  # for people: "not modified", "cooldown until …"
    fault: tuple[str, str] | None = None  # code and text: an error of the body, although it gave rows
    tombstones: frozenset[str] = frozenset()  # facts with these keys are deleted, whether or not the batch sweeps


@dataclass(frozen=True, slots=True)
class Written:
    """Rows that one upsert really changed; unchanged rows are not written."""

    inserted: int
    updated: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared source. `revision`: that of the set when it last changed. `sha256`: of the text."""

    name: str
    text: str
    enabled: bool
    origin: str
    revision: int
    changed_at: datetime
    changed_by: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Declarations:
    """All of them at one revision, in name order."""

    revision: int
    all: Sequence[Declaration]


def rows_record(source: str, rows: Mapping[str, int]) -> Json:
    """What a clear deletes: `facts`, `derived` by table, and all `rows` together."""
    facts = rows.get(FACT_TABLE, 0)
    derived = {table: count for table, count in rows.items() if table != FACT_TABLE}
    return {"source": source, "rows": facts + sum(derived.values()), "facts": facts, "derived": derived}
