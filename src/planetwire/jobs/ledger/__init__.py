"""The ledger in PostgreSQL: the queue, the results of jobs, and the queries for people and the diagnostic."""
