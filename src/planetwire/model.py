"""The values that cross stage boundaries: frozen, no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from planetwire.errors import InputError
from planetwire.people import Actor as Actor
from planetwire.people import Role as Role
from planetwire.tasks import Lane as Lane
from planetwire.tasks import TaskType as TaskType

Json = dict[str, Any]

EPOCH_PATTERN = r"[a-z0-9]{12}"
_CURSOR = re.compile(rf"(?:(?P<epoch>{EPOCH_PATTERN})-)?(?P<revision>\d{{1,18}})")


# --- jobs -------------------------------------------------------------------------------------------


class JobStatus(StrEnum):
    """queued → running → completed | failed; queued → cancelled; running → cancelling → cancelled | completed."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Final states never change again."""
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A wish for work. `source` may be None unless the type is a write."""

    task_type: TaskType
    source: str | None
    payload: Json = field(default_factory=dict)
    priority: int = 100
    idempotency_key: str | None = None


class Job(NamedTuple):
    """One ledger row as clients see it. Times are aware UTC; `progress` is 0..1. A tuple: made ten times as fast."""

    id: int
    task_type: TaskType
    source: str | None
    status: JobStatus
    priority: int
    payload: Json
    progress: float
    records_processed: int
    records_total: int | None
    message: str | None
    error_code: str | None
    error: str | None
    attempts: int
    max_attempts: int
    idempotency_key: str | None
    worker_id: str | None
    lease_seq: int
    lease_until: datetime | None
    heartbeat_at: datetime | None
    scheduled_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    cancel_requested_at: datetime | None
    finished_at: datetime | None
    phase: str | None = None  # what a running job is at: fetch, write, clear
    batches: int = 0  # committed; a stop keeps them
    rejects: int = 0
    sample: str | None = None  # the first record, or the start of the body, that was at fault
    deadline_at: datetime | None = None  # taken from its worker then, however often that answers
    retried_as: int | None = None


@dataclass(frozen=True, slots=True)
class DueSource:
    """A source whose time has come, as the database saw it at `now`, its clock. `due_at`: None before any plan.

    `tick_at` is the tick of `cron` that `due_at` stands for, before jitter and floor. `retry_at`: when the source is
    tried again after a failure in passing, whatever its schedule says. The floor counts from `answered_at`.
    """

    source: str
    now: datetime
    due_at: datetime | None
    tick_at: datetime | None
    retry_at: datetime | None
    answered_at: datetime | None
    interval_s: float
    floor_s: float
    cron: str | None
    time_zone: str | None
    misfire: str


@dataclass(frozen=True, slots=True)
class NextRun:
    """What follows on a due source: the tick that fires now, or None to let it pass, and when it is due again."""

    fire_at: datetime | None
    tick_at: datetime | None
    next_run_at: datetime


class ClaimedJob(NamedTuple):
    """What a worker is told of a job that it claimed: nothing that its claim decides, and no more than it needs."""

    id: int
    task_type: TaskType
    source: str | None
    priority: int
    payload: Json
    records_processed: int
    attempts: int
    max_attempts: int


class Lease(NamedTuple):
    """The time-limited right to run one job; `seq` is the fencing token checked by every batch."""

    job: ClaimedJob
    worker_id: str
    seq: int


class JobLine(NamedTuple):
    """A line of a job's log: `event` is a stable word, `text` at most 500 characters without control characters."""

    at: datetime
    event: str
    text: str


# --- facts ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceDefaults:
    """What a source does while no operator has said otherwise. `floor_s`: the provider's least interval."""

    source: str
    interval_s: float
    floor_s: float
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of `collected_data` to be, without its source. `external_key` is unique within the source."""

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
    """What one body of a feed holds. `complete` is True only if the whole body was read to its end."""

    rows: Sequence[Fact | Json]
    rejects: Sequence[Reject]
    complete: bool
    notes: Mapping[str, int] = field(default_factory=dict)  # skipped without being wrong: `duplicates`, `prose`
    tombstones: frozenset[str] = frozenset()  # keys the publisher deleted, or merged into another key of the body
    refused_keys: frozenset[str] = frozenset()  # keys of rejects, where readable: their older facts are not swept


@dataclass(frozen=True, slots=True)
class FetchState:
    """What is remembered of a source's last verified body, so that the next request can be conditional."""

    etag: str | None = None
    last_modified: str | None = None
    body_sha256: str | None = None
    fetched_at: datetime | None = None
    cooldown_until: datetime | None = None
    void: bool = False  # facts were deleted since, by something else than the feed's own sweep (contracts §1)


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
    fault: tuple[str, str] | None = (
        None  # code and text: the body gave rows, and something is wrong with it all the same
    )
    tombstones: frozenset[str] = frozenset()  # facts with these keys are deleted, whether or not the batch sweeps


@dataclass(frozen=True, slots=True)
class Written:
    """Rows that one upsert really changed; unchanged rows are not written."""

    inserted: int
    updated: int
    unchanged: int


class Orbit(NamedTuple):
    """A row of `satellite_orbits`, without its fact. Angles in degrees, `mean_motion` in revolutions a day."""

    norad_id: int
    name: str
    epoch: datetime | None
    inclination: float | None
    raan: float | None
    ecc: float
    argp: float | None
    mean_anomaly: float | None
    mean_motion: float
    bstar: float | None
    period_min: float
    apogee_km: float
    perigee_km: float
    regime: str


class PlaceAsked(NamedTuple):
    """Where a fact without coordinates of its own lies, as its data say: in numbers, or by a name."""

    name: str = ""
    lat: float | None = None
    lon: float | None = None


class Derived(NamedTuple):
    """What a layer makes of one fact: how it is found, and the rows of its own tables.

    Identity rather than measurements, so that new figures of the same thing leave the row as it is. `properties` is
    not copied: one that several facts share is not to be changed.
    """

    subtitle: str = ""
    properties: Mapping[str, Any] = {}
    severity: float | None = None
    alt_m: float | None = None
    orbit: Orbit | None = None
    place: PlaceAsked | None = None


Deriver: TypeAlias = Callable[[Fact], Derived]  # total: a fact may have been typed in by hand


# --- changes and layers -----------------------------------------------------------------------------


class Operation(StrEnum):
    """What a statement did. TRUNCATE is recorded as DELETE with source None."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Strategy(StrEnum):
    """How a browser brings a layer up to date, weakest first."""

    DELTA = "delta"
    RELOAD = "reload"
    CLEAR_THEN_RELOAD = "clear_then_reload"


class Action(StrEnum):
    """Why a layer event was sent."""

    DATABASE_CHANGED = "database_changed"
    CACHE_CLEARED = "cache_cleared"
    MANUAL_REFRESH = "manual_refresh"


@dataclass(frozen=True, slots=True)
class Change:
    """One outbox row: one statement's effect on one table and source (None = every source of the table).

    Or several of one table, operation and source, added up: then `ids` names them all, `id` the first.
    """

    id: int
    table_name: str
    operation: Operation
    source: str | None
    records_processed: int
    row_ids: Sequence[str] | None
    occurred_at: datetime
    attempts: int = 0
    ids: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Hint:
    """A refresh asked for by `clear_cache` or `earth_refresh`; read by the relay like a change."""

    id: int
    layer: str | None
    source: str | None
    action: Action
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who publishes a layer's data and what it does not cover; shown to people in both languages, all four texts."""

    publisher: str
    licence: str
    coverage: str
    limits: str
    zh: Provenance | None = None


@dataclass(frozen=True, slots=True)
class LayerAdapter:
    """One layer's entry in the registry: the only place that binds source, table, cache, owned rows, refresh.

    `feeds`: (table, source or "*"). `aliases`: other spellings of a source, e.g. `celestrak_tle`.
    `stale_after_s`: age of the newest success after which the layer is shown as stale. `kind` "meta": not drawn.
    `readings_of`: sources that reach the layer through the Terminal's log; a refresh of one is a refresh of the layer.
    """

    id: str
    title: str
    title_zh: str
    group: str
    kind: str
    feeds: tuple[tuple[str, str], ...]
    cache_patterns: tuple[str, ...]
    provenance: Provenance
    owned_tables: tuple[str, ...] = ()
    default_strategy: Strategy = Strategy.RELOAD
    reload_floor_s: float = 0.0
    stale_after_s: float = 86_400.0
    aliases: Mapping[str, str] = field(default_factory=dict)
    readings_of: tuple[str, ...] = ()
    derive: Deriver | None = None  # None: the layer's things cannot be searched for

    @property
    def sources(self) -> tuple[str, ...]:
        """The named sources that feed the layer, in declaration order."""
        seen = dict.fromkeys(source for _, source in self.feeds if source != "*")
        return tuple(seen)


@dataclass(frozen=True, slots=True)
class LayerEvent:
    """One merged `earth.layer.changed`: the strongest change's scalars, and all that was merged into it."""

    layer: str
    action: Action
    source: str | None
    table: str | None
    operation: Operation | None
    strategy: Strategy
    records_processed: int
    occurred_at: datetime
    sources: tuple[str, ...]
    tables: tuple[str, ...]
    operations: tuple[str, ...]
    merged_count: int
    upsert_ids: tuple[str, ...] = ()
    remove_ids: tuple[str, ...] = ()


# --- streams ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in one log: the log's life (`epoch`) and a revision in it. Written `<epoch>-<revision>`."""

    epoch: str
    revision: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.revision}"


def parse_cursor(text: str) -> tuple[str | None, int]:
    """Epoch (None when only a number was given) and revision. Raises InputError `bad_cursor`."""
    match = _CURSOR.fullmatch(text.strip())
    if match is None:
        raise InputError(f"not a revision or <epoch>-<revision>: {text[:40]!r}", code="bad_cursor")
    return match["epoch"], int(match["revision"])


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event of a log. `body` is the JSON object as stored: the bytes that go on the wire."""

    topic: str
    revision: int
    prev_revision: int
    body: bytes


@dataclass(frozen=True, slots=True)
class BusMessage:
    """What goes out to other services. `id` stays the same when it is sent again; order is kept within a `key`."""

    id: str
    key: str
    kind: str
    body: bytes


class ResyncReason(StrEnum):
    """Why a cursor cannot be served; the client fetches a snapshot."""

    REPLAY_WINDOW_EXCEEDED = "replay_window_exceeded"
    REPLAY_FAILED = "replay_failed"
    REVISION_AHEAD = "revision_ahead"
    EPOCH_CHANGED = "epoch_changed"
    SLOW_CONSUMER = "slow_consumer"


@dataclass(frozen=True, slots=True)
class ObservationPatch:
    """One normalised reading, ready to be stored: the content of a `city_observation_patch.v1`.

    `obs_time` is aware UTC or None when the sender gave none; `payload` holds the v1 payload keys,
    temperatures in °C; `points` are (series_key, °C) pairs for the intraday history.
    """

    city: str
    source: str
    obs_time: datetime | None
    ts_ms: int
    payload: Json
    points: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of storing a patch. A duplicate gives the old revision and `duplicate` True; no event then."""

    revision: int
    duplicate: bool
    event: LogEvent | None
