"""Checks of the ledger: expired leases not rescued, waiting jobs not claimed, jobs that failed for good."""

from __future__ import annotations

from planetwire.database.postgres import Connection
from planetwire.database.sql import queries_beside
from planetwire.model import Json
from planetwire.model.finding import Finding, step

Q = queries_beside(__file__)

ROWS_MAX = 1_000
SWEPT_SOURCES = 200
EXPIRED_S = 15.0  # a rescue comes within 5 s
WAITING_S = 600.0


async def examine_ledger(connection: Connection) -> Json:
    """Step `ledger`."""
    expired = await connection.fetchrow(Q.expired, ROWS_MAX)
    front = [await connection.fetchrow(query, ROWS_MAX) for query in (Q.waiting, Q.waiting_keyless)]
    oldest_s = max(row["oldest_s"] for row in front if row)
    waiting = sum(row["jobs"] for row in front if row)
    dead = await connection.fetchval(Q.dead, ROWS_MAX)
    unseen = await _unseen(connection)
    assert expired is not None
    findings = []
    if expired["oldest_s"] > EXPIRED_S:
        findings.append(
            Finding("lease_expired", f"{expired['jobs']} leases ran out, the oldest {expired['oldest_s']:.0f} s ago")
        )
    if unseen:
        findings.append(Finding("jobs_unseen", f"{unseen} sources wait and no claim sees them"))
    if oldest_s > WAITING_S:
        findings.append(Finding("jobs_waiting", f"a job that could run waits for {oldest_s:.0f} s"))
    if dead:
        findings.append(Finding("jobs_dead", f"{_count(dead)} jobs failed for good"))
    running, paused = await connection.fetchval(Q.running, ROWS_MAX), await connection.fetchval(Q.paused, ROWS_MAX)
    detail = f"{_count(running)} running, {_count(waiting)} could run, oldest {oldest_s:.0f} s, {paused} sources paused"
    return step("ledger", "Jobs are taken up and come to an end", detail, findings)


def _count(number: int) -> str:
    return f"{number}{'+' if number >= ROWS_MAX else ''}"


async def _unseen(connection: Connection) -> int:
    """How many of the first sources the worker's sweep would repair; the transaction is rolled back."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        return int(await connection.fetchval(Q.unseen, SWEPT_SOURCES) or 0)
    finally:
        await transaction.rollback()
