"""Snapshots as bytes: built once, encoded once, kept and shared."""
