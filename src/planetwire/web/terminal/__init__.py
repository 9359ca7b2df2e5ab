"""Routes of the Terminal page: cities and pushed observations."""
