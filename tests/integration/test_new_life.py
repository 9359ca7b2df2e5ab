"""What a database that was brought back from a backup begins with."""

from __future__ import annotations

import pytest

from planetwire.database.postgres import Pool
from planetwire.errors import SetupError
from planetwire.outbox.upkeep.backup_postgres import begin_new_life


async def test_its_log_has_another_epoch_and_forgets_its_events(pg_pool: Pool) -> None:
    """Contracts §7: no page takes old events for new ones."""
    before = await pg_pool.fetchrow("select epoch, revision from earth_log_head")
    async with pg_pool.acquire() as connection:
        await begin_new_life(connection, "anotherepoch", "thirdepoch12")
    after = await pg_pool.fetchrow("select epoch, revision from earth_log_head")
    assert (before["epoch"] != after["epoch"], after["epoch"]) == (True, "anotherepoch")
    assert after["revision"] >= before["revision"]
    assert await pg_pool.fetchval("select count(*) from earth_broadcasts") == 0


async def test_a_database_of_others_is_refused(pg_pool: Pool) -> None:
    async with pg_pool.acquire() as connection:
        await connection.execute("set search_path = pg_catalog")
        with pytest.raises(SetupError, match="no database of Planetwire"):
            await begin_new_life(connection, "anotherepoch", "thirdepoch12")
