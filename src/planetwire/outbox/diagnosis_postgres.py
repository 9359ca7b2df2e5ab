"""What the database can say about the path of a change: triggers, facts, backlog, unmapped pairs, leader.

Steps in the order in which a person on call asks. Reading only; every query is bounded.
"""

from __future__ import annotations

from datetime import UTC

from planetwire.model import Json
from planetwire.outbox.changelog_postgres import read_lag
from planetwire.outbox.tables import WATCHED, trigger_names
from planetwire.outbox.wakeup_postgres import DIRECT_URL
from planetwire.postgres import Connection, behind_pooler
from planetwire.sql import queries_beside

Q = queries_beside(__file__)

COUNT_MAX = 200_000  # facts counted per source
PAIRS_SHOWN = 20
BACKLOG_AGE_S = 30.0  # older than this, somebody has stopped consuming
LONG_TRANSACTION_S = 300.0


def _step(name: str, title: str, ok: bool, detail: str, advice: str = "") -> Json:
    return {"step": name, "title": title, "ok": ok, "detail": detail, "advice": "" if ok else advice}


async def examine(connection: Connection) -> list[Json]:
    """Steps `triggers`, `facts`, `outbox`, `adapter`, `listener`, each ok or with advice."""
    lag = await read_lag(connection)
    return [
        await _triggers(connection),
        await _facts(connection),
        await _outbox(connection, lag),
        _adapter(lag),
        await _listener(connection, lag["leader"]),
    ]


async def _triggers(connection: Connection) -> Json:
    wanted = {name for table in WATCHED for name in trigger_names(table.name)}
    rows = {row["name"]: row["always"] for row in await connection.fetch(Q.triggers_enabled)}
    missing = sorted(name for name in wanted if not rows.get(name))
    detail = f"missing or not ALWAYS: {', '.join(missing)}" if missing else f"{len(wanted)} in place"
    advice = "run `planetwire migrate`; a trigger that was dropped by hand must be made again from the migration"
    return _step("triggers", "Every fact and derived table has its triggers", not missing, detail, advice)


async def _facts(connection: Connection) -> Json:
    """An empty table is no fault by itself: a source may be new, cleared, or switched off. A failed run is."""
    rows = await connection.fetch(Q.newest_facts, COUNT_MAX)
    parts, failed = [], []
    for row in rows:
        newest = row["newest_at"]
        when = f"newest {newest.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z" if newest else "none yet"
        parts.append(f"{row['source']} {row['facts']} ({when})")
        if row["last_error_code"]:
            failed.append(f"{row['source']}: {row['last_error_code']} {row['last_error']}")
    detail = "; ".join(parts) or "no source yet"
    advice = "look at the failed run: `planetwire jobs ls --status failed`; facts stay until a whole body replaces them"
    return _step("facts", "Feeds bring facts", not failed, "; ".join([*failed, detail]), advice)


async def _outbox(connection: Connection, lag: Json) -> Json:
    late = lag["oldest_age_s"] > BACKLOG_AGE_S and lag["pending"] > lag["quarantined"]
    ok = not late and not lag["quarantined"]
    detail = f"{lag['pending']} pending, oldest {lag['oldest_age_s']:.1f} s, {lag['quarantined']} quarantined"
    slow = await connection.fetch(Q.long_transactions, LONG_TRANSACTION_S)
    if slow:
        detail += f"; longest open transaction {slow[0]['age_s']:.0f} s (pid {slow[0]['pid']})"
    advice = "no relay consumes, or rows fail: look at the next steps, at last_error in earth_data_change_events"
    return _step("outbox", "Changes are consumed", ok, detail, advice)


def _adapter(lag: Json) -> Json:
    pairs = [f"{row['table']}/{row['source']} ({row['changes']})" for row in lag["unmapped"][:PAIRS_SHOWN]]
    advice = "no layer declares these pairs: add the source to a layer's `feeds`, or ignore them if that is meant"
    title = "Every changed pair of table and source has a layer"
    return _step("adapter", title, not pairs, ", ".join(pairs) or "all mapped", advice)


async def _listener(connection: Connection, leader: Json) -> Json:
    """Polling behind a pooler is slower, not broken: advice without a fault."""
    listeners = await connection.fetchval(Q.listeners)
    detail = f"leader {leader['holder'] or 'none'}, term {leader['term']}, revision {leader['revision']}"
    advice = "start `planetwire up` (or `web`, or `relay`); without LISTEN everything still arrives, a second later"
    step = _step("listener", "A relay leads and listens", leader["held"], f"{detail}, {listeners} listening", advice)
    if listeners == 0 and await behind_pooler(connection):
        step["detail"] += ": behind a pooler changes and jobs are polled for, up to a second later"
        step["advice"] = step["advice"] or f"for wake-ups name the server's own address in {DIRECT_URL}"
    return step
