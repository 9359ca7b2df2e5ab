"""Runs the parts of one installation: data dir, embedded PostgreSQL, and a child process for each role."""
