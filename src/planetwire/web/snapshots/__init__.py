"""Snapshots as bytes: built once, encoded once, cached and shared."""
