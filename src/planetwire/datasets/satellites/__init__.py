"""Satellites: elements of orbits, from which the browser computes where they are."""
