"""Takes an outside feed or a pushed patch; gives validated facts and observations, and counts rejects."""
