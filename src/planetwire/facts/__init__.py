"""Takes validated facts and observations; gives committed rows, and reads them back for snapshots."""
