"""What providers do, one case a function, and what a feed has to do then. Each fails with an AssertionError in words.

The stages are the product's own; a case looks at what is in the database afterwards.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from planetwire.collect.feeds import FactFeed
from planetwire.demo.script import Step
from planetwire.errors import FeedError
from planetwire.model import Fact, Parsed
from planetwire.testing.said import expect, parsed, raising_feed_errors_only, shown
from planetwire.testing.stage import Stage

HTML = b"<!doctype html>\n<html><head><title>Sorry</title></head><body><h1>Down for maintenance</h1></body></html>\n"
SENTENCE = b"Service temporarily unavailable, please try again later.\n"
NO_DATA = ((HTML, "text/html; charset=utf-8"), (HTML, "application/json"), (SENTENCE, "text/plain"))
CUTS = (0.25, 0.5, 0.75)
BATCHES_KEPT = 2
ROWS_LEAST = BATCHES_KEPT + 1

Bodies = Mapping[str, bytes]
Case = Callable[[Stage, Bodies], Awaitable[None]]


def keys_of(stage: Stage, bodies: Bodies, name: str) -> list[str]:
    """Of the facts that the feed makes of an example, in order."""
    return [fact.external_key for fact in _parsed(stage, bodies, name).rows if isinstance(fact, Fact)]


def _parsed(stage: Stage, bodies: Bodies, name: str) -> Parsed:
    return parsed(stage.feed, name, bodies[name], datetime.now(UTC))


def _full(stage: Stage, bodies: Bodies) -> set[str]:
    keys = set(keys_of(stage, bodies, "full"))
    expect(len(keys) >= ROWS_LEAST, f"the example `full` gives {len(keys)} facts: at least {ROWS_LEAST} are needed")
    return keys


async def fresh(stage: Stage, bodies: Bodies) -> None:
    """A first body: each of its facts is a row, and one request was enough."""
    keys = _full(stage, bodies)
    rows = await stage.fresh(bodies["full"])
    expect(rows.keys() == keys, f"`parse` gives facts that are not stored: {shown(keys ^ rows.keys())}")
    expect(stage.asked.requests == 1, f"a run sends one request, not {stage.asked.requests}")


async def not_modified(stage: Stage, bodies: Bodies) -> None:
    """304: nothing is written, nobody is told."""
    rows = await stage.fresh(bodies["full"])
    changes = await stage.changes()
    ran = await stage.collect()
    expect(
        stage.asked.not_modified == 1,
        "the second request was not conditional: a body that was read to its end has `complete=True`, else its ETag is"
        " not remembered and the provider sends it all again each time",
    )
    expect(ran.code is None and ran.message == "not modified", f"304 is no failure: {ran.error or ran.message}")
    expect(await stage.rows() == rows and await stage.changes() == changes, "304 wrote rows")


async def changed(stage: Stage, bodies: Bodies) -> None:
    """Another body: its facts are there, and what it no longer lists has gone if and only if the feed sweeps."""
    full, before = _full(stage, bodies), set(keys_of(stage, bodies, "minimal"))
    stage.serve(bodies["minimal"])
    ran = await stage.collect()
    expect(ran.code is None, f"the body `minimal` was not collected: {ran.error}")
    rows = await stage.fresh(bodies["full"])
    gone = _parsed(stage, bodies, "full").tombstones
    meant = full if stage.feed.sweeps else full | (before - gone)
    expect(
        rows.keys() == meant,
        f"after another body these differ: {shown(rows.keys() ^ meant)}; `sweeps` is {stage.feed.sweeps}, which says"
        " whether a body lists everything, so that what is missing from it is gone",
    )


async def truncated(stage: Stage, bodies: Bodies) -> None:
    """Half a body, cut on the way or sent as a whole: it deletes nothing and is not remembered."""
    rows, body = await stage.fresh(bodies["full"]), bodies["full"]
    stage.once(Step(cut_at_byte=len(body) // 2, gzip=False, validators=False))
    ran = await stage.collect()
    expect(ran.code == "truncated" and await stage.rows() == rows, "a broken connection changed facts")
    for share in CUTS:
        cut = cut_at(body, share)
        expect(
            not _read_whole(stage.feed, cut),
            f"the first {len(cut)} bytes of `full` are read as a complete body: `complete` is True only when the end of"
            " the format was seen (json_records and its neighbours tell), else half a body deletes the other half",
        )
        stage.serve(cut)
        ran = await stage.collect()
        left = await stage.rows()
        expect(rows.keys() <= left.keys(), f"half a body deleted {shown(rows.keys() - left.keys())}")
        expect((await stage.collect()).message != "not modified", "half a body was remembered: the rest never comes")
    stage.serve(body)
    ran = await stage.collect()
    expect(
        ran.code is None and (await stage.rows()).keys() == rows.keys(), "after half a body the whole one is not read"
    )


def cut_at(body: bytes, share: float) -> bytes:
    """The beginning of a body, to within a record: where formats have lines, to the first character of one."""
    at = int(len(body) * share)
    line = body.rfind(b"\n", 0, at) + 1
    start = line + len(body[line:]) - len(body[line:].lstrip())
    return body[: start + 1] if line > 0 and start + 1 < len(body) else body[:at]


def _read_whole(feed: FactFeed, body: bytes) -> bool:
    try:
        with raising_feed_errors_only():
            return feed.parse(body, datetime.now(UTC)).complete
    except FeedError:
        return False


async def html(stage: Stage, bodies: Bodies) -> None:
    """Status 200 and a page of HTML, or a sentence: a failure, and no fact changes."""
    rows = await stage.fresh(bodies["full"])
    for body, kind in NO_DATA:
        stage.once(Step(status=200, body=body, content_type=kind, validators=False))
        ran = await stage.collect()
        expect(
            ran.code is not None,
            f'{body[:24]!r}… with status 200 was taken for data: `rules = FetchRules(first_bytes=b"[")` says how a'
            " body begins, and `parse` raises FeedError(code='bad_body') for what is none of the feed's",
        )
        expect(await stage.rows() == rows, f"{body[:24]!r}… with status 200 changed facts")


async def too_many(stage: Stage, bodies: Bodies) -> None:
    """429 with Retry-After: facts stay, and the provider is left alone until then."""
    rows = await stage.fresh(bodies["full"])
    stage.once(Step(status=429, headers={"Retry-After": "3600"}))
    ran = await stage.collect()
    expect(ran.code == "transient" and await stage.rows() == rows, f"429 changed facts: {ran.error or ran.message}")
    asked = stage.asked.requests
    ran = await stage.collect()
    expect(stage.asked.requests == asked, "the provider was asked again before the time that it gave with 429")
    expect(ran.message.startswith("cooldown until "), f"the job says why nothing was asked, not {ran.message!r}")


async def refused(stage: Stage, bodies: Bodies) -> None:
    """403: facts stay; a failure, unless the feed's rules know it for "nothing new"."""
    rows = await stage.fresh(bodies["full"])
    stage.once(Step(status=403, body=b"Forbidden"))
    ran = await stage.collect()
    expect(await stage.rows() == rows, "403 changed facts")
    if stage.feed.rules.refusal_cooldown_s is None:
        expect(ran.code == "auth_refused", f"403 is `auth_refused`, not {ran.code}")
    else:
        expect(ran.code is None, f"`refusal_cooldown_s` says that 403 is no failure: {ran.error}")


async def cancelled(stage: Stage, bodies: Bodies) -> None:
    """A job that is cancelled after its second batch: these two stay, the third is not there, nothing is remembered."""
    order, minimal = keys_of(stage, bodies, "full"), set(keys_of(stage, bodies, "minimal"))
    full = _full(stage, bodies)
    stage.serve(bodies["minimal"])
    await stage.collect()
    stage.serve(bodies["full"])
    ran = await stage.collect(cancel_after=BATCHES_KEPT)
    expect(
        ran.code == "lease_lost",
        "the body came in too few batches: `pieces(body, at, rows)` gives pieces of `rows` facts, the last of which"
        f" alone has an `end` (in_pieces does); the job ended {ran.code or ran.message!r}",
    )
    kept = (await stage.rows()).keys()
    expect(minimal <= kept, f"a cancelled job deleted {shown(minimal - kept)}")
    meant = minimal | set(order[:BATCHES_KEPT])
    expect(kept == meant, f"after {BATCHES_KEPT} batches of one fact these differ: {shown(kept ^ meant)}")
    ran = await stage.collect()
    expect(
        ran.code is None and full <= (await stage.rows()).keys(),
        f"the run after a cancelled one does not bring the rest: {ran.error or ran.message}",
    )


async def duplicate(stage: Stage, bodies: Bodies) -> None:
    """The same bytes again, known by their sum or read anew: no row is written a second time."""
    rows = await stage.fresh(bodies["full"])
    changes = await stage.changes()
    stage.once(Step(validators=False))
    ran = await stage.collect()
    expect(ran.message == "not modified" and await stage.rows() == rows, f"the same bytes were news: {ran.message}")
    await stage.forget()
    ran = await stage.collect()
    now = await stage.rows()
    written = [key for key in rows if now.get(key) != rows[key]]
    expect(
        ran.code is None and not written and await stage.changes() == changes,
        f"the same body, read again, is other facts: {shown(written)}; `parse` is pure: no time of reading, no random"
        " number, no order of a set in a fact",
    )


async def shrunk(stage: Stage, bodies: Bodies) -> None:
    """A body with less than half of what there was: nothing is deleted, and a feed that sweeps says so."""
    rows = await stage.fresh(bodies["full"])
    gone = _parsed(stage, bodies, "minimal").tombstones
    for name in ("minimal", "empty"):
        stage.serve(bodies[name])
        ran = await stage.collect()
        left = (await stage.rows()).keys()
        expect(rows.keys() - gone <= left, f"`{name}` after `full` deleted {shown(rows.keys() - gone - left)}")
        said = "suspicious_shrink" in ran.message
        expect(ran.code is None, f"`{name}` is a good body: {ran.error}")
        expect(said or not stage.feed.sweeps, f"`{name}` after `full` is suspicious, and the job says {ran.message!r}")


CASES: Mapping[str, Case] = {
    "fresh": fresh,
    "not_modified": not_modified,
    "changed": changed,
    "truncated": truncated,
    "html": html,
    "too_many": too_many,
    "refused": refused,
    "cancelled": cancelled,
    "duplicate": duplicate,
    "shrunk": shrunk,
}
# A batch a fact, so that a job has more than two.
BATCH_ROWS = {"cancelled": 1}
