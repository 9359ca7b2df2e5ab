"""`collect`: runs one feed once and commits its rows, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from planetwire.errors import BackendError, FeedError, LeaseLost, NotFound, PlanetwireError
from planetwire.jobs.telling import Tell, silent
from planetwire.log import get_logger
from planetwire.model import Batch, ClaimedJob, Lease, Written
from planetwire.ports import Clock, Collector, FactStore, JobQueue, SourceStore
from planetwire.runtime.failpoint import failpoint
from planetwire.text import plain_json

log = get_logger()

REASONS_LOGGED = 5
BATCH_TRIES = 3  # of a batch that deadlocked with SQL run by hand


def _last_try(job: ClaimedJob) -> bool:
    """Whether a failure now is final; the ledger retries all earlier ones by itself."""
    return job.attempts >= job.max_attempts


def unlimited(source: str) -> float | None:
    """No throttle for any source."""
    return None


@dataclass(frozen=True, slots=True)
class CollectTask:
    """Handler of `collect` jobs. `rows_per_s` gives the operator's throttle of a source, None for none.

    `tell` takes lines for the job's log.
    """

    queue: JobQueue
    collector: Collector
    facts: FactStore
    sources: SourceStore
    clock: Clock
    rows_per_s: Callable[[str], float | None] = unlimited
    tell: Tell = silent

    async def __call__(self, lease: Lease) -> str | None:
        """Raises FeedError and NotFound as the collector does; what was committed before stays."""
        source = lease.job.source or ""
        rejects = batches_done = 0
        asked = False
        fault: tuple[str, str] | None = None
        self.tell(lease.job.id, "fetch", f"asks the feed of {source}")
        try:
            state = await self.facts.fetch_state(source)
            manual = not lease.job.payload.get("scheduled")
            async with aclosing(self.collector.batches(source, state, manual=manual)) as batches:
                async for batch in batches:
                    written = await self._commit(lease, source, batch)
                    rejects += len(batch.rejects)
                    asked |= bool(batch.facts) or batch.state is not None
                    fault = batch.fault or fault
                    batches_done += 1
                    self._log_batch(lease.job.id, batches_done, batch, written)
                    failpoint("jobs.collect.after_batch")
                    await self._throttle(lease.job.id, source, len(batch.facts))
        except LeaseLost:
            raise  # the job is another's, or is being cancelled: nothing is wrong with the source
        except Exception as error:
            await self._report_failure(lease.job, rejects, error)
            raise
        # A run inside a floor or a cooldown sent no request: it proves nothing about the provider.
        await self.sources.report(source, rejects=rejects, error=fault, answered=asked, soon=False if asked else None)
        return None

    async def _report_failure(self, job: ClaimedJob, rejects: int, error: Exception) -> None:
        """Record the error with its source, where the diagnostic finds it; without a database it stays with the job."""
        source, code, text = job.source or "", "internal", f"an error of ours: {type(error).__name__}"
        if isinstance(error, PlanetwireError):
            code, text = error.code, error.message
        answered = not isinstance(error, NotFound)
        soon: bool | None = False
        if isinstance(error, FeedError):
            answered, soon = error.answered, _last_try(job) or None if error.passing else False
        failure = (code, plain_json.text(text).replace("\x00", ""))
        try:
            await self.sources.report(source, rejects=rejects, error=failure, answered=answered, soon=soon)
        except BackendError as unreported:
            log.warning("data_job.report.failed", source=source, code=code, error=unreported.message)

    def _log_batch(self, task_id: int, number: int, batch: Batch, written: Written) -> None:
        if batch.facts:
            of = f" of {batch.total_hint:,}" if batch.total_hint is not None else ""
            rows = f"{len(batch.facts):,}{of} records"
            new = f"{written.inserted:,} new, {written.updated:,} changed, {written.unchanged:,} as they were"
            self.tell(task_id, "batch", f"batch {number} committed: {rows}; {new}")
        if batch.rejects:
            reasons = Counter(reject.reason for reject in batch.rejects).most_common(REASONS_LOGGED)
            listed = ", ".join(f"{reason} ({count:,})" for reason, count in reasons)
            first = batch.rejects[0].offset
            self.tell(
                task_id, "rejects", f"{len(batch.rejects):,} records refused: {listed}; the first is record {first}"
            )
        if batch.message:
            self.tell(task_id, "note", batch.message)

    async def _commit(self, lease: Lease, source: str, batch: Batch) -> Written:
        for attempt in range(1, BATCH_TRIES + 1):
            try:
                async with self.queue.batch(lease) as tx:
                    tx.progress(
                        len(batch.facts),
                        total=batch.total_hint,
                        message=batch.message,
                        phase="write",
                        rejects=len(batch.rejects),
                        sample=batch.rejects[0].sample if batch.rejects else None,
                    )
                    return await self.facts.upsert(tx, source, batch, lease.job.id)
            except BackendError as error:
                if error.code != "deadlock" or attempt == BATCH_TRIES:
                    raise
                log.warning("data_job.batch.repeated", task_id=lease.job.id, source=source, attempt=attempt)
                self.tell(lease.job.id, "repeat", "the batch met another transaction's locks and is written again")
        raise AssertionError("the last try returns or raises")

    async def _throttle(self, task_id: int, source: str, rows: int) -> None:
        rate = self.rows_per_s(source)
        if rate is not None and rows:
            self.tell(task_id, "wait", f"waits {rows / rate:.1f} s: at most {rate:g} rows a second")
            await self.clock.sleep(rows / rate)
