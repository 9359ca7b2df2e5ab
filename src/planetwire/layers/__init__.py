"""Takes a (table, source) pair; gives the layers it feeds and how each one refreshes. Pure: no I/O."""
