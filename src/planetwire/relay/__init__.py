"""Takes pending change rows; gives merged layer events with dense revisions, and marks the rows consumed."""
