"""One polite, bounded, verified GET over hostile networks."""
