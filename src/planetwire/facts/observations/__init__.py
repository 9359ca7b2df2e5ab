"""The observation store: what both engines share, and the one on PostgreSQL."""
