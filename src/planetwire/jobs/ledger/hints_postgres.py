"""Refresh hints for the relay, written in the transaction of the job's progress."""

from __future__ import annotations

from planetwire.database.sql import queries_beside
from planetwire.model import Action
from planetwire.ports import JobTx

Q = queries_beside(__file__)


async def write_hint(tx: JobTx, layer: str | None, source: str | None, action: Action) -> None:
    """Ask the relay for one refresh; `layer` and `source` both None mean every layer."""
    await tx.connection.execute(Q.insert_hint, layer, source, action)
