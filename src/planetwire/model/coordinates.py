"""Where on the Earth, in degrees. Pure."""

from __future__ import annotations

LAT_MAX, LON_MAX = 90.0, 360.0  # a longitude may be counted from 0 to 360 or from -180 to 180


def wrapped(lon: float) -> float:
    """The same meridian in -180 ... 180."""
    return lon if -180.0 <= lon <= 180.0 else (lon + 540.0) % 360.0 - 180.0


def on_earth(lat: float | None, lon: float | None) -> tuple[float, float] | None:
    """Both, the longitude wrapped; None where one is missing or off the Earth. Finite numbers."""
    if lat is None or lon is None or not (-LAT_MAX <= lat <= LAT_MAX and -LON_MAX <= lon <= LON_MAX):
        return None
    return lat, wrapped(lon)
