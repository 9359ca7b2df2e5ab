"""`ObservationFeeds`: runs every observation feed at its own interval, from the request to the ingest.

Invariant: a report counts as delivered, and an answer's validators are kept, only once the ingest has accepted it.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from planetwire.collect.delivered import Delivered
from planetwire.collect.feeds import ObservationFeed, access_to, address_of, rules_of
from planetwire.collect.feedstate_file import FeedStates
from planetwire.collect.http.client import Outcome, PoliteClient
from planetwire.collect.http.slots import filled
from planetwire.collect.recent_runs import with_run
from planetwire.errors import FeedError, PlanetwireError
from planetwire.log import get_logger
from planetwire.model import FetchState, Json, Parsed, Reject
from planetwire.ports import Clock, PatchSink
from planetwire.runtime.backoff import Backoff, after_failures_s, doubled_s
from planetwire.settings import Settings
from planetwire.text import plain_json

log = get_logger()

POLL_S = 5.0  # how soon an operator's change is noticed
RECENT_HOURS = 2
FULL_HOURS = 24
OVERLAP = timedelta(minutes=10)  # reports that arrive late are still in the next answer
MAX_REQUESTS_PER_TURN = 120
BACKOFF_FIRST_S = 5.0
BACKOFF_MAX_S = 1_800.0
BACKOFF_JITTER = 0.2
PATCHES_PER_DELIVERY = 500
ERROR_CHARS = 300


@dataclass(slots=True)
class _Turn:
    """The result of one run of a feed, for the record of runs. It keeps the feed with which it began."""

    feed: ObservationFeed
    at: datetime
    hours: int
    needed_from: datetime
    requests: int = 0
    answered: bool = False  # any of the requests
    rows: int = 0
    rejects: int = 0
    delivered: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)  # of the rejects
    sample: str | None = None  # of the first reject

    def refused(self, rejects: Sequence[Reject]) -> None:
        """Count rejects; the first one's sample is kept."""
        self.rejects += len(rejects)
        self.codes.update(one.code for one in rejects)
        if rejects and self.sample is None:
            self.sample = plain_json.text(rejects[0].sample)


class ObservationFeeds:
    """Runs the feeds until cancelled. A failing feed does not delay the others."""

    def __init__(
        self,
        feeds: Mapping[str, ObservationFeed],
        client: PoliteClient,
        sink: PatchSink,
        states: FeedStates,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._feeds = feeds
        self._client = client
        self._sink = sink
        self._states = states
        self._clock = clock
        self._settings = settings
        self._changed = asyncio.Event()
        self._delivered: dict[str, Delivered] = {}
        self._validators: dict[str, dict[str, FetchState]] = {}

    async def run(self) -> None:
        """All feeds, for ever; ends when cancelled."""
        self._changed.set()
        running: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while await self._changed.wait():
                self._changed.clear()
                for source in self._feeds:
                    if source not in running or running[source].done():
                        running[source] = group.create_task(self._guarded(source), name=f"feed:{source}")

    async def renew(self, *_: object) -> None:
        """The feeds are others now: those that are new begin, those that have gone end after their turn."""
        self._changed.set()

    async def _loop(self, source: str) -> None:
        self._announce(source)
        while source in self._feeds:
            wait_s = self._wait_s(source)
            if wait_s > 0:
                await self._clock.sleep(min(wait_s, POLL_S))
            else:
                await self.turn(source)

    async def _guarded(self, source: str) -> None:
        """Restarts the loop after an unexpected error: no feed ends the process, or another feed."""
        backoff = Backoff(BACKOFF_FIRST_S, BACKOFF_MAX_S, self._clock)
        while source in self._feeds:
            began = self._clock.monotonic()
            try:
                await self._loop(source)
            except Exception as error:
                log.exception("collect.feed.crashed", source=source, error=repr(error)[:ERROR_CHARS])
            if self._clock.monotonic() - began > BACKOFF_MAX_S:
                backoff.reset()
            await backoff.pause()

    def _wait_s(self, source: str) -> float:
        """Seconds until the next run; a disabled feed is checked again later."""
        record = self._record(source)
        if not record["enabled"]:
            return POLL_S
        next_at = _time(record.get("next_run_at"))
        if next_at is None:
            return 0.0
        if not record.get("failures"):  # the interval may have been shortened since
            last_at = _time(record.get("last_run_at")) or next_at
            next_at = min(next_at, last_at + timedelta(seconds=_pause_s(record)))
        return (next_at - self._clock.now()).total_seconds()

    def _record(self, source: str) -> Json:
        """The stored record with the present settings."""
        feed, own = self._feeds[source], self._settings.feed(source)
        return self._states.read(source) | {
            "enabled": bool(address_of(feed, own)) and own.enabled is not False,
            "interval_s": feed.interval_s if own.interval_s is None else own.interval_s,
            "floor_s": feed.floor_s if own.floor_s is None else own.floor_s,
        }

    def announce(self) -> None:
        """Write a record for every feed without one, so that it is listed before its first run."""
        for source in self._feeds:
            self._announce(source)

    def _announce(self, source: str) -> None:
        record = self._record(source)
        self._states.update(source, {key: record[key] for key in ("enabled", "interval_s", "floor_s")})

    async def turn(self, source: str) -> bool:
        """One run: fetch, parse, deliver new reports. False if it failed; then it is retried later."""
        record = self._record(source)
        turn = _begin(self._feeds[source], record, self._clock.now())
        marks = self._delivered.setdefault(source, Delivered(_cursor(record.get("cursor"))))
        try:
            for chunk in turn.feed.chunks(turn.hours):
                await self._chunk(source, chunk, turn, marks)
        except PlanetwireError as error:
            self._failed(source, record, turn, error)
            return False
        except Exception as error:  # a bug of ours must not affect other feeds
            log.exception("collect.feed.crashed", source=source, error=repr(error)[:ERROR_CHARS])
            self._failed(source, record, turn, PlanetwireError(f"an error of ours: {type(error).__name__}"))
            return False
        finally:
            marks.forget(turn.at)
        self._succeeded(source, record, turn)
        return True

    async def _chunk(self, source: str, stations: Sequence[str], turn: _Turn, marks: Delivered) -> None:
        """Request some stations; a capped answer that does not reach back far enough is requested again in halves."""
        feed, own = turn.feed, self._settings.feed(source)
        url = feed.url(filled(address_of(feed, own), turn.at), stations, turn.hours)
        known = self._validators.setdefault(source, {})
        turn.requests += 1
        rules, access = rules_of(feed, own), access_to(feed, own)
        fetched = await self._client.fetch(url, known.get(url, FetchState()), rules, access)
        turn.answered |= fetched.answered
        fetched.raise_failure()
        if fetched.outcome is not Outcome.FRESH or fetched.body is None:
            return
        try:
            parsed = await asyncio.to_thread(feed.parse, fetched.body, turn.at)
            await self._deliver(feed, parsed, turn, marks)
        except FeedError as error:
            raise fetched.redacted(error) from error
        known.pop(url, None)
        known[url] = fetched.state
        while len(known) > MAX_REQUESTS_PER_TURN:
            known.pop(next(iter(known)))
        if len(stations) > 1 and _is_cut(parsed, feed.answer_max_rows, turn):
            middle = len(stations) // 2
            for half in (stations[:middle], stations[middle:]):
                await self._chunk(source, half, turn, marks)

    async def _deliver(self, feed: ObservationFeed, parsed: Parsed, turn: _Turn, marks: Delivered) -> None:
        turn.rows += len(parsed.rows)
        turn.refused(parsed.rejects)
        if parsed.rejects and not parsed.rows:
            first = parsed.rejects[0]
            raise FeedError(f"no report in the answer: {first.reason}: {first.sample[:80]!r}", code="bad_body")
        patches, skipped = feed.patches([row for row in parsed.rows if isinstance(row, dict)])
        turn.skipped.update(skipped)
        new = marks.undelivered(patches, turn.at)
        for start in range(0, len(new), PATCHES_PER_DELIVERY):
            part = new[start : start + PATCHES_PER_DELIVERY]
            turn.delivered += await self._sink.deliver(part)
            marks.mark(part)

    def _succeeded(self, source: str, record: Json, turn: _Turn) -> None:
        self._remember(
            source, record, turn, _pause_s(record), {"failures": 0, "last_error": None, "last_error_code": None}
        )
        self._states.update(source, {"last_success_at": _text(turn.at), "cooldown_until": None})
        log.info(
            "collect.feed.completed",
            source=source,
            requests=turn.requests,
            rows=turn.rows,
            rejects=turn.rejects,
            new=turn.delivered,
        )

    def _failed(self, source: str, record: Json, turn: _Turn, error: PlanetwireError) -> None:
        failures = _count(record.get("failures")) + 1
        asked_s = error.retry_after_s if isinstance(error, FeedError) else None
        pause_s = after_failures_s(failures) if isinstance(error, FeedError) else _backoff_s(failures)
        wait_s = max(_floor_left_s(record, turn), pause_s if asked_s is None else asked_s)
        until = None if asked_s is None else _text(turn.at + timedelta(seconds=asked_s))
        result = {"failures": failures, "last_error": plain_json.text(error.message), "last_error_code": error.code}
        self._remember(source, record, turn, wait_s, result | {"cooldown_until": until})
        log.warning(
            "collect.feed.failed", source=source, code=error.code, error=error.message, retry_in_s=round(wait_s, 1)
        )

    def _remember(self, source: str, record: Json, turn: _Turn, wait_s: float, result: Json) -> None:
        self._states.update(
            source,
            {
                **{key: record[key] for key in ("enabled", "interval_s", "floor_s")},
                "last_run_at": _text(turn.at),
                "answered_at": _text(turn.at) if turn.answered else record.get("answered_at"),
                "next_run_at": _text(turn.at + timedelta(seconds=wait_s)),
                "rows_last_run": turn.rows,
                "rejects_last_run": turn.rejects,
                "rejects": _count(record.get("rejects")) + turn.rejects,
                "reject_codes": dict(turn.codes),
                "sample": turn.sample,
                "recent": with_run(record.get("recent"), turn.at, turn.requests, turn.rows),
                "delivered_last_run": turn.delivered,
                "skipped_last_run": {name: count for name, count in turn.skipped.items() if count},
                "cursor": self._delivered[source].cursor,
                **result,
            },
        )


def _cursor(value: object) -> dict[str, str]:
    """The stored cursor; an edited file may hold anything."""
    return {key: at for key, at in value.items() if isinstance(at, str)} if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _begin(feed: ObservationFeed, record: Json, at: datetime) -> _Turn:
    """How far back this run has to go: a day at first and after a gap, else a little more than since the last."""
    last = _time(record.get("last_success_at"))
    if last is None or at - last > timedelta(hours=RECENT_HOURS) - OVERLAP:
        return _Turn(feed, at, FULL_HOURS, at - timedelta(hours=FULL_HOURS))
    return _Turn(feed, at, RECENT_HOURS, last - OVERLAP)


def _pause_s(record: Json) -> float:
    return float(max(record["interval_s"], record["floor_s"]))


def _floor_left_s(record: Json, turn: _Turn) -> float:
    """The rest of the floor, which counts from the last run that the provider answered."""
    answered_at = turn.at if turn.answered else _time(record.get("answered_at"))
    if answered_at is None:
        return 0.0
    return max(float(record["floor_s"]) - (turn.at - answered_at).total_seconds(), 0.0)


def _is_cut(parsed: Parsed, answer_max_rows: int, turn: _Turn) -> bool:
    """Whether the answer is full and lacks needed reports, and requests are left to split it."""
    count = len(parsed.rows) + len(parsed.rejects) + sum(parsed.notes.values())
    if count < answer_max_rows or turn.requests >= MAX_REQUESTS_PER_TURN:
        return False
    oldest = min((str(row["obs_time"]) for row in parsed.rows if isinstance(row, dict)), default="")
    return oldest > _text(turn.needed_from)


def _backoff_s(failures: int) -> float:
    """After a failed delivery, which involves only us: 5 s, doubled each time, at most half an hour, ± 20 %."""
    return doubled_s(failures, BACKOFF_FIRST_S, BACKOFF_MAX_S) * random.uniform(1 - BACKOFF_JITTER, 1 + BACKOFF_JITTER)


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(value: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return at.astimezone(UTC) if at is not None and at.tzinfo is not None else None
