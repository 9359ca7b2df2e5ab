"""The ledger in PostgreSQL: the queue, how jobs end, and what people and the diagnostic read of it."""
