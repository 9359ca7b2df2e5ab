"""Observations that others push, or that we push to ourselves: normalised, then handed to the store."""
