"""The sources and layers there are at present: those that are shipped, and those that were declared as data."""
