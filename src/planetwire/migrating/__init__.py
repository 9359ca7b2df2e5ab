"""Applies the schema in order, predicts what that locks, and bounds how long it waits for locks."""
