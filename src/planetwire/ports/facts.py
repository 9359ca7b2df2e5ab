"""Facts and their origins: stores, feeds, bodies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from planetwire.errors import PlanetwireError
from planetwire.model import Actor, Batch, FetchState, Json, Parsed, Written
from planetwire.model.facts import Declaration
from planetwire.ports.jobs import JobTx


class FactStore(Protocol):
    """Tables of facts. Unchanged rows are not written, so they cause no change row."""

    async def upsert(self, tx: JobTx, source: str, batch: Batch, task_id: int | None) -> Written:
        """Merge by (source, external_key). Sweeps and stores the fetch state when the batch is complete."""

    async def clear_chunk(self, tx: JobTx, table: str, source: str, limit: int) -> int:
        """Delete up to `limit` rows of the source, by key range; 0 when nothing is left."""

    async def count_rows(self, tables: Sequence[str], source: str) -> Mapping[str, int]:
        """The number of rows of the source in each of the tables, which clearing would delete."""

    async def features(self, sources: Sequence[str], limit: int | None) -> tuple[Sequence[bytes], int]:
        """Feature JSON of each fact, newest first, and their total number."""

    async def fetch_state(self, source: str) -> FetchState | None:
        """None if nothing was ever fetched; `void` is True if facts of the source were deleted since."""

    async def last_success(self, sources: Sequence[str]) -> Mapping[str, datetime]:
        """When each source last finished a complete body."""


class ObjectStore(Protocol):
    """Objects that people search and open. None is returned without its fact, even if its own row still exists."""

    async def search(self, question: str, layer: str | None, limit: int) -> Sequence[Json]:
        """Objects that have, for every word of the query, a word with this prefix; best first."""

    async def card(self, object_id: str) -> Json | None:
        """The card of `<layer>:<source>:<key>`; None if there is no such fact."""

    async def features(self, ids: Sequence[str] | None, limit: int | None) -> tuple[Sequence[bytes], int]:
        """Feature JSON of these objects, or of all, and their number."""


class SourceStore(Protocol):
    """What an operator sets and sees per source: switches, schedule, next run, last error, rejects."""

    async def list(self) -> Sequence[Json]:
        """One record per known source, in name order."""

    async def change(self, source: str, wish: Json, by: Actor | None = None) -> Json:
        """Set `enabled`, `interval_s`, `cron`, `time_zone`, `misfire`: what is left out stays, None is the default.

        Raises NotFound, InputError for what the provider or the calendar does not allow. The record as it is then.
        `by`: who asks, for the audit log, in the same transaction; None: no person.
        """

    async def report(
        self,
        source: str,
        *,
        rejects: int,
        error: tuple[str, str] | None,
        answered: bool = True,
        soon: bool | None = False,
    ) -> None:
        """Note the end of a run. `answered`: whether the provider said anything, from which the floor counts.

        `soon`: the next job comes after 1, 2, 5, then every 15 minutes instead of as scheduled; None: as it was.
        """


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
    """The last verified body of each source, on disk, so that it can be processed again without a request."""

    def save(self, source: str, body: bytes) -> None:
        """Atomic replace."""

    def load(self, source: str) -> bytes | None:
        """None when there is none."""


class PatchSink(Protocol):
    """The destination of an observation feed's patches: our own ingest, in this process or over HTTP."""

    async def deliver(self, patches: Sequence[Json]) -> int:
        """Returns how many were new. Raises BackendError if the ingest cannot be reached."""


class SourceDesk(Protocol):
    """Declared sources, as people read and change them. Each change and its audit row are one transaction."""

    async def get(self, name: str) -> Declaration:
        """Raises NotFound."""

    def fault(self, name: str) -> PlanetwireError | None:
        """Why it cannot be used, if it is stored and cannot."""

    async def put(
        self,
        by: Actor,
        name: str,
        text: str,
        *,
        expected: int | None,
        enabled: bool = True,
        confirm: bool = False,
    ) -> Declaration:
        """Store it. `expected`: the revision that is replaced; None: there is none of this name yet.

        Raises InputError with all that is wrong with the text, Outdated, StateError, and ConfirmNeeded where it deletes
        facts unless `confirm` says that this is meant.
        """

    async def remove(self, by: Actor, name: str, *, expected: int | None, clear: bool) -> None:
        """`expected` None: whatever its revision. `clear`: a job deletes its facts. Raises NotFound, Outdated."""
