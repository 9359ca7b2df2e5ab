"""The seams: Protocols of at most seven methods. Each class says what it promises, each method what it raises.

Everything waits with a bound, `aclose()` may be called twice, and only `wiring.py` chooses a backend.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

from planetwire.model import (
    Appended,
    Batch,
    BusMessage,
    Change,
    Cursor,
    DueSource,
    FetchState,
    Hint,
    Job,
    JobRequest,
    JobStatus,
    Json,
    LayerAdapter,
    LayerEvent,
    Lease,
    LogEvent,
    NextRun,
    ObservationPatch,
    Parsed,
    ResyncReason,
    Written,
)


class Clock(Protocol):
    """Time and waiting, so that tests need neither."""

    def now(self) -> datetime:
        """Aware UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellable."""


class Wakeup(Protocol):
    """A hint that something may be there. It carries nothing and may be lost: always look, never count."""

    async def wait(self, timeout_s: float) -> bool:
        """True if rung, False after the timeout. Rings between two waits collapse into one."""

    def ring(self) -> None:
        """Wake this process's waiters."""

    async def aclose(self) -> None:
        """Release the connection, if there is one."""


# --- jobs -------------------------------------------------------------------------------------------


class JobTx(Protocol):
    """The open transaction of one batch. Backends of other ports that share the database write through it."""

    connection: Any

    def progress(
        self,
        records: int,
        *,
        total: int | None = None,
        message: str | None = None,
        phase: str | None = None,
        rejects: int = 0,
        sample: str | None = None,
    ) -> None:
        """Count `records` more rows; stored in the same commit, so progress equals committed rows.

        `rejects` adds up too; of the samples, at most 200 characters of the first is kept.
        """


class JobQueue(Protocol):
    """The ledger. At most one running write job per source; a lost lease cannot commit; final is final."""

    async def submit(self, request: JobRequest) -> tuple[Job, bool]:
        """The job and True, or a queued same-type job of the source (or of the idempotency key) and False."""

    async def claim(self, worker_id: str, task_types: Sequence[str], limit: int) -> Sequence[Lease]:
        """Up to `limit` runnable jobs, FIFO by (priority, id) within a source. Never two of one source."""

    async def heartbeat(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        """Extend the leases still owned; a missing id is lost, `cancelling` asks the job to stop."""

    def batch(self, lease: Lease) -> AbstractAsyncContextManager[JobTx]:
        """One fenced transaction: rows and progress commit together, or LeaseLost and neither does."""

    async def finish(
        self,
        lease: Lease,
        status: JobStatus,
        *,
        message: str | None = None,
        error: tuple[str, str] | None = None,
        retry_after_s: float | None = None,
        sample: str | None = None,
    ) -> bool:
        """Move to a final state (or back to queued with back-off when `failed` and attempts remain).

        `error` is (code, text); `retry_after_s` is the least back-off; `sample`: what was at fault. False when the
        lease was lost: then nothing was written. Idempotent.
        """

    async def cancel(self, task_id: int) -> Job:
        """Queued → cancelled, running → cancelling; again: no change. Raises NotFound, StateError if final."""

    async def rescue(self, limit: int = 100) -> int:
        """Take back jobs whose lease ran out: requeued, failed after the last attempt, or cancelled."""


class JobUpkeep(Protocol):
    """What a worker needs beside the queue, and what operators do to it."""

    async def look(self, leases: Sequence[Lease]) -> Mapping[int, JobStatus]:
        """Status of the leases still owned, without extending them; a missing id is lost."""

    async def release(self, leases: Sequence[Lease]) -> int:
        """Give jobs back unfinished, the attempt not counted; `cancelling` ones end cancelled. How many."""

    async def open_gate(self, seconds: float) -> None:
        """Ask writers to ring the doorbell `planet_task_control` for a while (contracts §1)."""

    async def park(self) -> int:
        """Take jobs of busy and paused sources out of the way of claims; how many. 0: whatever can run is seen."""

    async def pause(self, source: str, paused: bool) -> None:
        """No write job of the source starts while it is paused; one that runs goes on. Idempotent."""

    async def sweep(self) -> int:
        """Look at some more sources for jobs that nobody sees; how many there were: must be 0."""

    async def prune(self) -> int:
        """Delete some of the finished jobs that are past their time; how many."""


class JobBoard(Protocol):
    """Read side of the ledger for people; bounded whatever the backlog."""

    async def get(self, task_id: int) -> Job:
        """Raises NotFound."""

    async def page(
        self, *, status: str | None, source: str | None, cursor: int | None, limit: int
    ) -> tuple[Sequence[Job], int | None]:
        """Newest first; the second value is the next cursor or None."""

    async def active(self) -> Sequence[Job]:
        """Running and cancelling jobs, the first 50 waiting, and jobs finished in the last 30 s."""

    async def dead(self, *, source: str | None, cursor: int | None, limit: int) -> tuple[Sequence[Job], int | None]:
        """Failed jobs that nobody has tried again, newest first; the second value is the next cursor or None."""

    async def counts(self) -> Mapping[str, int]:
        """How many are `running`, `queued` and `dead`; counted up to 10,000 and at most every 2 s."""

    async def retry(self, task_id: int) -> tuple[Job, bool]:
        """Submit the same work again, and note so. Raises NotFound, StateError while the job is active."""


class ScheduleBook(Protocol):
    """When each source runs next. All its times are the store's clock."""

    async def due(self) -> Sequence[DueSource]:
        """Enabled sources whose time has come and whose floor has passed, in name order; reading changes nothing."""

    async def settle(self, due: DueSource, then: NextRun) -> bool:
        """Fire and plan on, together or not at all; whether a new job was made. Once per tick across processes."""

    async def prune(self, limit: int) -> int:
        """Forget up to `limit` firings that are old enough; how many."""


# --- facts ------------------------------------------------------------------------------------------


class FactStore(Protocol):
    """Tables of facts. Unchanged rows are not written, so they cause no change row."""

    async def upsert(self, tx: JobTx, source: str, batch: Batch, task_id: int | None) -> Written:
        """Merge by (source, external_key). Sweeps and stores the fetch state when the batch is complete."""

    async def clear_chunk(self, tx: JobTx, table: str, source: str, limit: int) -> int:
        """Delete up to `limit` rows of the source, by key range; 0 when nothing is left."""

    async def features(self, sources: Sequence[str], limit: int | None) -> tuple[Sequence[bytes], int]:
        """Feature JSON of each fact, newest first, and how many there are in all."""

    async def fetch_state(self, source: str) -> FetchState | None:
        """None when nothing was ever fetched; `void` is True when facts of the source were deleted since."""

    async def last_success(self, sources: Sequence[str]) -> Mapping[str, datetime]:
        """When each source last finished a complete body."""


class ObjectStore(Protocol):
    """Things that people search and open. None is given out whose fact is gone, whatever became of its own row."""

    async def search(self, question: str, layer: str | None, limit: int) -> Sequence[Json]:
        """Objects of which every word of the question begins a word, best first."""

    async def card(self, object_id: str) -> Json | None:
        """All that is known of `<layer>:<source>:<key>`; None when there is no such fact."""

    async def features(self, ids: Sequence[str] | None, limit: int | None) -> tuple[Sequence[bytes], int]:
        """Feature JSON of these objects, or of all, and how many there are."""


class SourceStore(Protocol):
    """What an operator sets and sees per source: switches, schedule, next run, last error, rejects."""

    async def list(self) -> Sequence[Json]:
        """One record per known source, in name order."""

    async def change(self, source: str, wish: Json) -> Json:
        """Set `enabled`, `interval_s`, `cron`, `time_zone`, `misfire`: what is left out stays, None is the default.

        Raises NotFound, InputError for what the provider or the calendar does not allow. The record as it is then.
        """

    async def report(self, source: str, *, rejects: int, error: tuple[str, str] | None) -> None:
        """Note the end of a run."""


# --- collect ----------------------------------------------------------------------------------------


class Feed(Protocol):
    """One outside origin of facts. Parsing is pure: the same body and time give the same rows."""

    source: str
    kind: str
    default_url: str
    interval_s: float
    floor_s: float

    def parse(self, body: bytes, at: datetime) -> Parsed:
        """Rows and rejects of one body; `at` resolves partial dates. Raises FeedError `bad_body`."""


class Collector(Protocol):
    """Runs one source once, for the collect job. Knows no database."""

    def batches(self, source: str, state: FetchState | None, *, manual: bool) -> AsyncGenerator[Batch, None]:
        """Batches in order; the last is `complete` and carries the new state, or a message says why there is none.

        Raises FeedError; NotFound for an unknown source. Closing the generator drops the connection.
        """


class BodyStore(Protocol):
    """The last verified body of each source, kept on disk so that it can be applied again without a request."""

    def save(self, source: str, body: bytes) -> None:
        """Atomic replace."""

    def load(self, source: str) -> bytes | None:
        """None when there is none."""


class PatchSink(Protocol):
    """Where an observation feed delivers its patches: our own ingest, in this process or over HTTP."""

    async def deliver(self, patches: Sequence[Json]) -> int:
        """How many were new. Raises BackendError when the ingest cannot be reached."""


# --- observations -----------------------------------------------------------------------------------


class ObservationStore(Protocol):
    """History and patch events, written in one transaction; an acknowledged revision survives a power cut."""

    async def append(self, patches: Sequence[ObservationPatch]) -> Sequence[Appended]:
        """In order, all or none. Raises BackendError (LogWriteFailed when the log refused); then nothing was stored.

        Events reach whoever listens in revision order before this returns.
        """

    async def history(self, city: str, since: datetime) -> Sequence[tuple[str, str, datetime, float]]:
        """(series_key, source, obs_time, °C) rising by time."""

    async def latest(self, cities: Iterable[str] | None = None) -> Mapping[str, Sequence[Json]]:
        """Newest stored reading of every series of each city that has any; all cities when None.

        Keys: series_key, source, obs_time (aware UTC), temp, max_so_far, station_code, station_label, revision.
        """

    async def highs(self, since: Mapping[str, datetime]) -> Mapping[str, tuple[float, datetime]]:
        """Highest headline °C of each city from its time on, and when it was first reached; absent without one."""

    async def prune(self) -> int:
        """Drop events past the window and history past 14 days; returns how many events went."""

    async def aclose(self) -> None:
        """Finish what was accepted, then close."""


class EventLog(Protocol):
    """Read side of a durable log. Revisions rise in commit order within an epoch and are never reused."""

    epoch: str

    async def head(self) -> int:
        """The latest revision; never decreases, also after everything expired."""

    async def heads(self, topics: Iterable[str]) -> Mapping[str, int]:
        """Latest revision of each topic, 0 when it never had one."""

    async def check(self, topics: Sequence[str], after: int, limit: int) -> ResyncReason | None:
        """Why events after the cursor cannot all be served: pruned, ahead of the head, more than `limit`."""

    async def page(self, topics: Sequence[str], after: int, limit: int) -> Sequence[LogEvent]:
        """Events of these topics above `after`, oldest first, at most `limit`."""


# --- live delivery


class FrameSink(Protocol):
    """The outgoing side of one connection, as the hub sees it. Called on the event loop; nothing here waits."""

    def write(self, frame: bytes, /) -> None:
        """Hand over one frame. May call `Subscription.pause` from within, when the buffer is full."""

    def write_many(self, frames: Sequence[bytes], /) -> None:
        """Hand over several at once, all of them taken; may then call `Subscription.pause`."""

    def resync(self, reason: ResyncReason, /) -> None:
        """Tell the client that its cursor cannot be served; the stream goes on live."""

    def pending_bytes(self) -> int:
        """Bytes the transport still holds; a reader that makes progress lets this fall."""

    def cut(self) -> None:
        """Drop the connection and what it still holds, at once. Idempotent."""


class Subscription(Protocol):
    """One connection's place in a live stream: live, or catching up from its cursor."""

    @property
    def cursor(self) -> int:
        """Every event of this subscription up to this revision was handed to the sink."""

    def resume(self) -> None:
        """The sink has room: replay, then live. Also the start; nothing is delivered before it."""

    def pause(self) -> None:
        """The sink is full: nothing more until `resume`; what comes meanwhile is read later, from the cursor."""

    def close(self) -> None:
        """Leave. Idempotent."""


class LiveStream(Protocol):
    """One log fanned out to the connections of this process. No gap and no double between replay and live."""

    @property
    def epoch(self) -> str:
        """The log's life."""

    @property
    def head(self) -> int:
        """The latest revision that was fanned out."""

    def heads(self, topics: Sequence[str]) -> Mapping[str, int]:
        """Per topic, a revision that is at least its latest fanned-out one and at most `head`."""

    async def locate(
        self, topics: Sequence[str], since: tuple[str | None, int] | None, limit: int
    ) -> int | ResyncReason | None:
        """Where to begin: the revision to replay after, why that is impossible, or None for live only.

        `limit` bounds the replay in events. Raises BackendError only when the log was never reachable.
        """

    def join(self, topics: Sequence[str], start: int | ResyncReason | None, sink: FrameSink) -> Subscription:
        """Register at the start; delivery begins with `resume`, and what is published in between is not missed."""


# --- outbox, relay ----------------------------------------------------------------------------------


class ChangeLog(Protocol):
    """The outbox and the log behind it, as the relay sees them. Fenced by the leader's term."""

    async def lead(self, holder: str, ttl_s: float) -> int | None:
        """Take or renew leadership; the term, or None while another holds it."""

    async def resign(self, holder: str, term: int) -> None:
        """Give leadership up, if still held."""

    async def pending(
        self,
        limit: int,
        *,
        held: Sequence[int] = (),
        held_hints: Sequence[int] = (),
        singly: bool = False,
        after: int = 0,
    ) -> tuple[Sequence[Change], Sequence[Hint]]:
        """Unconsumed rows that are due and not `held`, oldest first.

        Ids are not commit order: `after` an id only to go on where the page before ended, never to begin. Rows that
        differ in their numbers only come added up, unless asked for `singly`.
        """

    async def publish(
        self,
        term: int,
        events: Sequence[LayerEvent],
        *,
        consumed: Sequence[int],
        hints: Sequence[int],
        skipped: Mapping[int, str],
    ) -> Sequence[LogEvent]:
        """Append the events and mark the rows, in one transaction. Raises LeaseLost when the term is over."""

    async def defer(self, ids: Sequence[int], error: str, *, hints: Sequence[int] = ()) -> None:
        """Back the rows off alone; after five attempts they wait until retried by hand."""

    async def lag(self) -> Json:
        """Backlog count and age, quarantined rows, unmapped pairs."""

    async def open_gate(self, seconds: float) -> None:
        """Ask writers to ring the doorbell for a while (contracts §1)."""


class DataChangeBus(Protocol):
    """The relay's second way out, to other services: at least once, an id that repeats keep, order within a key."""

    async def send(self, message: BusMessage) -> None:
        """Returns once the other side has it for good. Raises BusError; then it may or may not have it."""

    async def aclose(self) -> None:
        """Close the connections."""


class Cache(Protocol):
    """Encoded snapshots. A reader that began before an invalidation may not fill the cache afterwards.

    Nothing raises because a shared store is away: then this process's own memory is all there is.
    """

    def generation(self, layer: str) -> int:
        """Rises with every invalidation of the layer in this process."""

    async def get(self, layer: str, variant: str) -> bytes | None:
        """The body of the present generation that this process holds, or None."""

    async def find(self, layer: str, variant: str, cursor: Cursor) -> bytes | None:
        """After a miss: what any process stored for exactly this cursor, or None."""

    async def put(self, layer: str, variant: str, generation: int, cursor: Cursor, body: bytes) -> bool:
        """Store, unless the generation moved on; then False. `cursor` was read before the rows of the body."""

    async def invalidate(self, layer: str) -> int:
        """Drop the layer's bodies in this process; the new generation."""

    async def aclose(self) -> None:
        """Wait for nothing, leave nothing behind."""


class LayerRegistry(Protocol):
    """`EarthLayerAdapterRegistry`: source, table, layer, cache, owned rows, strategy. Pure."""

    def layers_of(self, table: str, source: str | None) -> Sequence[str]:
        """Layers fed by the pair; empty when unmapped. Source None: every layer fed by the table."""

    def layers_of_source(self, source: str | None) -> Sequence[str]:
        """Layers fed by the source from whatever table, or through the Terminal; None: all layers."""

    def adapter(self, layer: str) -> LayerAdapter:
        """Raises NotFound."""

    def all(self) -> Sequence[LayerAdapter]:
        """Every layer, in the order of declaration."""

    def sources_of(self, layer: str) -> Sequence[str]:
        """Sources whose facts the layer shows, other spellings included. Raises NotFound."""

    def owned_tables(self, source: str) -> Sequence[str]:
        """Derived tables from which `clear_data` of the source deletes."""
