"""Commits validated facts and observations, and reads them back for snapshots."""
