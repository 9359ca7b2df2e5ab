"""Turns pending change rows into merged layer events with dense revisions, and marks the rows consumed."""
