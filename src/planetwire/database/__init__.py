"""The drivers: PostgreSQL and SQLite for asyncio, and the SQL that lies beside its modules."""
