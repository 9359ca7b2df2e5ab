"""Checks for what slows the whole database down: old transactions, invalid indexes, a full NOTIFY queue."""

from __future__ import annotations

from planetwire.database.postgres import Connection
from planetwire.database.sql import queries_beside
from planetwire.model import Json
from planetwire.model.finding import Finding, step

Q = queries_beside(__file__)

LONG_TRANSACTION_S = 300.0
OLD_XMIN = 5_000_000  # transactions; at 100 a second half a day
NOTIFY_QUEUE_MAX = 0.01
ROWS_MAX = 5


async def examine_server(
    connection: Connection,
    *,
    long_s: float = LONG_TRANSACTION_S,
    old_xmin: int = OLD_XMIN,
    queue_max: float = NOTIFY_QUEUE_MAX,
) -> Json:
    """Step `server`."""
    findings = []
    for row in await connection.fetch(Q.long_transactions, long_s, ROWS_MAX):
        who = f"pid {row['pid']}, {row['who'] or 'no name'}" if row["pid"] else f"prepared {row['who']}"
        findings.append(Finding("long_transaction", f"open for {row['age_s']:.0f} s: {who}, {row['state']}"))
    oldest = await connection.fetchrow(Q.oldest_xmin)
    if oldest is not None and oldest["transactions"] > old_xmin:
        findings.append(Finding("xmin_held", f"{oldest['transactions']} transactions back: {oldest['who']}"))
    invalid = [row["name"] for row in await connection.fetch(Q.invalid_indexes, ROWS_MAX)]
    if invalid:
        findings.append(Finding("index_invalid", f"not valid: {', '.join(invalid)}"))
    usage: float = await connection.fetchval(Q.notify_queue)
    if usage > queue_max:
        findings.append(Finding("notify_queue", f"the NOTIFY queue is {usage:.1%} full"))
    held = f"oldest snapshot {oldest['transactions']} transactions back ({oldest['who']})" if oldest else "none held"
    return step("server", "Nothing slows the database down", f"{held}, NOTIFY queue {usage:.1%}", findings)
