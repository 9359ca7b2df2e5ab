"""Maps a (table, source) pair to the layers it feeds and how each one refreshes. Pure: no I/O."""
