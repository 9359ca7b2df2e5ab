"""The audit log in PostgreSQL, or in files without a database."""
