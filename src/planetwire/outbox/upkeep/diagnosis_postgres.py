"""Checks of a change's path in the database: facts, triggers, backlog, unmapped pairs, leader.

Steps in the order in which a person on call would check. Every query is bounded; only the canary writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from planetwire.database.postgres import Connection, behind_pooler
from planetwire.database.sql import queries_beside
from planetwire.model import Json
from planetwire.model.finding import Finding, step
from planetwire.outbox.changelog_postgres import CHANGES_CHANNEL, read_lag
from planetwire.outbox.upkeep.canary_postgres import Canary
from planetwire.outbox.upkeep.triggers_postgres import Triggers, read_triggers

Q = queries_beside(__file__)

COUNT_MAX = 20_000  # facts counted per source
SOURCES_MAX = 200
NAMED_MAX = 20  # triggers and pairs named
PAIRS_MAX = 100
UNMAPPED_S = 600.0  # a pair outside the fact table that was written within this time counts as still written
BACKLOG_AGE_S = 30.0  # older than this, the relay has stopped consuming
SEARCH_LATE_S = 60.0  # a load of a million rows takes longer, and is worth reporting too
SILENT_S = 20.0  # a listener tests itself every 10 s and waits 5 s for the answer


async def examine(
    connection: Connection, tables: Sequence[str], canary: Canary | None = None, *, silent_s: float = SILENT_S
) -> list[Json]:
    """Steps `facts`, `triggers`, `outbox`, `adapter`, `listener`, each with its findings. `tables`: watched."""
    lag = await read_lag(connection)
    return [
        await _facts(connection, canary),
        _triggers(await read_triggers(connection, tables), canary),
        await _outbox(connection, lag, canary),
        _adapter(await connection.fetch(Q.unmapped_now, PAIRS_MAX, UNMAPPED_S), canary),
        await _listener(connection, lag["leader"], silent_s),
    ]


async def _facts(connection: Connection, canary: Canary | None) -> Json:
    """An empty table is no fault: a source may be new, cleared, or switched off. A failed run is one."""
    rows = await connection.fetch(Q.newest_facts, COUNT_MAX, SOURCES_MAX)
    parts, failed = [], []
    ended = {row["source"]: row for row in await connection.fetch(Q.failed_collects, SOURCES_MAX)}
    for row in rows:
        newest = row["newest_at"]
        when = f"newest {newest.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z" if newest else "none yet"
        many = "+" if row["facts"] == COUNT_MAX else ""
        parts.append(f"{row['source']} {row['facts']}{many} ({when})")
        code, text = row["last_error_code"], row["last_error"]
        if not code and (job := ended.get(row["source"])) is not None:
            code, text = job["error_code"] or "failed", job["error"]
        if code:
            failed.append(Finding("feed_failed", f"{row['source']}: {code} {(text or '')[:200]}"))
    waits_s = await connection.fetchval(Q.oldest_underived)
    if (waits_s or 0) > SEARCH_LATE_S:
        failed.append(Finding("search_late", f"facts written by hand wait for search, the oldest for {waits_s:.0f} s"))
    if canary is not None and canary.refused:
        failed.insert(0, Finding("canary_refused", f"a fact could not be written: {canary.refused}"))
    return step("facts", "Feeds bring facts", "; ".join(parts) or "no source yet", failed)


def _triggers(found: Triggers, canary: Canary | None) -> Json:
    faults: list[Finding] = []
    for lacks, words in (("missing", "missing"), ("disabled", "not ALWAYS"), ("wrong", "not ours")):
        names = [f"{fault.trigger} on {fault.relation}" for fault in found.faults if fault.lacks == lacks]
        if names:
            faults.append(Finding(f"trigger_{lacks}", f"{words}: {_listed(names)}"))
    if canary is not None and canary.silent:
        because = faults[0].code if faults else ""
        faults.append(Finding("canary_unwritten", f"no change row for {', '.join(canary.silent)}", because))
    if found.leaves and not found.followed:
        faults.append(Finding("partitions_unfollowed", f"{found.leaves} partitions, new ones are not followed"))
    timings = {} if canary is None else {"trigger_ms": canary.trigger_ms}
    leaves = f" on {found.leaves} partitions and their tables" if found.leaves else ""
    detail = f"{found.right} in place{leaves}{_took(timings)}"
    return step("triggers", "Every fact and derived table has its triggers", detail, faults, timings=timings)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _took(timings: Json) -> str:
    """Appended to the detail: how long the canary took."""
    parts = [f"{name.removesuffix('_ms')} {value:.1f} ms" for name, value in timings.items() if value is not None]
    return f"; canary: {', '.join(parts)}" if parts else ""


async def _outbox(connection: Connection, lag: Json, canary: Canary | None) -> Json:
    leaderless = "" if lag["leader"]["held"] else "relay_absent"
    hints = await connection.fetchval(Q.hints_quarantined)
    findings = []
    if lag["oldest_age_s"] > BACKLOG_AGE_S and lag["pending"] > lag["quarantined"]:
        findings.append(Finding("outbox_late", f"the oldest waits for {lag['oldest_age_s']:.0f} s", leaderless))
    if lag["quarantined"] or hints:
        findings.append(Finding("outbox_quarantined", f"{lag['quarantined'] + hints} rows failed five times and wait"))
    timings: Json = {}
    if canary is not None:
        timings = {"published_ms": canary.published_ms, "revision": canary.revision}
        if canary.ids and canary.published_ms is None:
            why = f": {canary.error}" if canary.error else ""
            findings.append(Finding("canary_unpublished", f"the canary was not consumed{why}", leaderless))
    took = _took({"published_ms": canary.published_ms}) if canary else ""
    detail = f"{lag['pending']} pending, oldest {lag['oldest_age_s']:.1f} s, {lag['quarantined']} quarantined{took}"
    return step("outbox", "Changes are consumed", detail, findings, timings=timings)


def _adapter(unmapped: Sequence[Mapping[str, Any]], canary: Canary | None) -> Json:
    pairs = [f"{row['table']}/{row['source']} ({row['changes']})" for row in unmapped]
    findings = [Finding("pair_unmapped", _listed(pairs))] if pairs else []
    if canary is not None and canary.published_ms is not None and canary.revision is None:
        findings.insert(0, Finding("canary_unmapped", f"the canary was skipped: {canary.skipped}"))
    return step(
        "adapter", "Every changed pair of table and source has a layer", "" if pairs else "all mapped", findings
    )


async def _listener(connection: Connection, leader: Json, silent_s: float) -> Json:
    """Polling behind a pooler is slower, not broken: advice without a fault."""
    rows = await connection.fetch(Q.listeners)
    silent = [row for row in rows if (row["silent_s"] or 0) > silent_s]
    alive = len(rows) - len(silent)
    findings = [] if leader["held"] else [Finding("relay_absent", "no relay holds the term")]
    polls = not rows and await behind_pooler(connection)
    if polls:
        findings.append(Finding("listener_polls", "behind a pooler changes and jobs are polled for, a second later"))
    elif silent:
        named = ", ".join(f"pid {row['pid']} for {row['silent_s']:.0f} s" for row in silent)
        findings.append(Finding("listener_silent", f"a listener does not answer: {named}"))
    elif not rows:
        findings.append(Finding("listener_absent", "nobody listens", "" if leader["held"] else "relay_absent"))
    detail = f"{await _leader_text(connection, leader)}, {alive} listening"
    return step("listener", "A relay leads and listens", detail, findings)


async def _leader_text(connection: Connection, leader: Json) -> str:
    gate, since = await connection.fetchval(Q.gate, CHANGES_CHANNEL), await connection.fetchval(Q.term_age)
    door = f"open for {gate:.0f} s" if gate and gate > 0 else "shut"
    held = f" for {since:.0f} s" if since is not None and leader["held"] else ""
    return (
        f"leader {leader['holder'] or 'none'}{held}, term {leader['term']}, revision {leader['revision']}, gate {door}"
    )
