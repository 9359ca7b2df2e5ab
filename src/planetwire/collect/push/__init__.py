"""Observations pushed by others or by our own feeds: normalised, then appended to the store."""
