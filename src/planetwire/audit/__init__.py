"""The audit log in PostgreSQL, or in a file where no database is."""
