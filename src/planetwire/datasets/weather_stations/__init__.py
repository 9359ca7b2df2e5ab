"""Weather stations: one point a city with its newest temperature, and the feeds of readings behind it."""
