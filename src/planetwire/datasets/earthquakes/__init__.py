"""Earthquakes: points with magnitude and depth."""
