"""The seismic zones of the simulated Earth: plate boundaries as lines, their reporting networks, nearby towns."""

from __future__ import annotations

import math
from dataclasses import dataclass

KM_PER_DEG = 111.195
_COMPASS = ("N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW")

Town = tuple[str, float, float]


@dataclass(frozen=True, slots=True)
class Belt:
    """A seismic belt: `line` of (lon, lat), `width_km` either side, depths falling off from `shallow_km`.

    `least_mag` is the smallest that its network detects; `weight` its share of all events; `slab` whether deep events
    occur.
    """

    net: str
    weight: float
    least_mag: float
    width_km: float
    line: tuple[tuple[float, float], ...]
    towns: tuple[Town, ...]
    slab: bool = False
    sea: bool = False


BELTS = (
    Belt("ci", 22, 0.6, 25, ((-115.4, 32.4), (-116.5, 33.6), (-118.2, 34.8), (-119.6, 35.3)), (
        ("Ridgecrest, CA", 35.62, -117.67), ("Anza, CA", 33.56, -116.67), ("Brawley, CA", 32.98, -115.53),
        ("Cabazon, CA", 33.92, -116.79), ("Frazier Park, CA", 34.82, -118.94), ("Ocotillo Wells, CA", 33.14, -116.13),
    )),
    Belt("nc", 14, 0.7, 20, ((-120.4, 35.9), (-121.5, 36.8), (-122.4, 37.7), (-123.5, 39.4), (-124.4, 40.4)), (
        ("The Geysers, CA", 38.77, -122.75), ("Pinnacles, CA", 36.53, -121.15), ("Parkfield, CA", 35.90, -120.43),
        ("Petrolia, CA", 40.33, -124.29), ("San Ramon, CA", 37.78, -121.98), ("Mammoth Lakes, CA", 37.65, -118.97),
    )),
    Belt("nn", 7, 0.8, 60, ((-117.8, 37.3), (-118.3, 38.6), (-119.6, 40.2)), (
        ("Mina, Nevada", 38.39, -118.11), ("Tonopah, Nevada", 38.07, -117.23), ("Reno, Nevada", 39.53, -119.81),
    )),
    Belt("ak", 18, 1.0, 90, ((-178.0, 51.5), (-168.0, 53.0), (-158.0, 55.8), (-152.0, 58.5), (-149.0, 61.5),
                             (-147.0, 63.5)), (
        ("Adak, Alaska", 51.88, -176.66), ("Nikolski, Alaska", 52.94, -168.86), ("Sand Point, Alaska", 55.34, -160.5),
        ("Ninilchik, Alaska", 60.05, -151.67), ("Susitna North, Alaska", 62.16, -149.92),
        ("Cantwell, Alaska", 63.39, -148.95),
    ), slab=True),
    Belt("hv", 8, 1.2, 12, ((-155.6, 19.2), (-155.28, 19.4), (-155.1, 19.35)), (
        ("Pāhala, Hawaii", 19.2, -155.48), ("Volcano, Hawaii", 19.44, -155.23),
        ("Fern Forest, Hawaii", 19.47, -155.13),
    )),
    Belt("pr", 5, 1.8, 40, ((-67.3, 17.9), (-66.8, 18.0), (-65.0, 18.9)), (
        ("Guánica, Puerto Rico", 17.97, -66.91), ("Hatillo, Puerto Rico", 18.49, -66.79),
        ("Cruz Bay, U.S. Virgin Islands", 18.33, -64.79),
    ), sea=True),
    Belt("uw", 4, 0.7, 50, ((-122.9, 45.2), (-122.2, 47.3), (-122.4, 48.7)), (
        ("Ashford, Washington", 46.76, -122.03), ("Mount Vernon, Washington", 48.42, -122.33),
        ("Amboy, Washington", 45.91, -122.45),
    )),
    Belt("us", 3, 4.0, 80, ((141.0, 35.0), (142.5, 38.0), (144.5, 41.5), (150.0, 45.0), (156.0, 50.0)), (
        ("Ōfunato, Japan", 39.07, 141.72), ("Hasaki, Japan", 35.73, 140.83), ("Nemuro, Japan", 43.33, 145.58),
        ("Kuril’sk, Russia", 45.23, 147.88), ("Severo-Kuril’sk, Russia", 50.67, 156.12),
    ), slab=True, sea=True),
    Belt("us", 2, 4.0, 70, ((122.0, 24.5), (121.6, 22.8), (126.5, 9.0), (126.8, 6.0)), (
        ("Hualien City, Taiwan", 23.98, 121.6), ("Hinatuan, Philippines", 8.37, 126.34),
        ("Pondaguitan, Philippines", 6.36, 126.2),
    ), slab=True, sea=True),
    Belt("us", 3, 4.1, 90, ((94.0, 5.5), (98.5, 0.5), (102.0, -4.5), (108.0, -9.0), (118.0, -10.5), (128.0, -7.0)), (
        ("Sinabang, Indonesia", 2.48, 96.38), ("Bengkulu, Indonesia", -3.8, 102.27),
        ("Sumbawa Besar, Indonesia", -8.49, 117.42), ("Tual, Indonesia", -5.67, 132.75),
    ), slab=True, sea=True),
    Belt("us", 3, 4.2, 90, ((147.0, -5.5), (152.5, -5.5), (155.5, -7.5), (162.0, -11.0), (167.0, -15.0),
                            (169.5, -20.0)), (
        ("Kokopo, Papua New Guinea", -4.35, 152.26), ("Panguna, Papua New Guinea", -6.32, 155.48),
        ("Lata, Solomon Islands", -10.73, 165.83), ("Port-Olry, Vanuatu", -15.04, 167.07),
        ("Isangel, Vanuatu", -19.55, 169.27),
    ), slab=True, sea=True),
    Belt("us", 3, 4.2, 110, ((-173.5, -15.5), (-174.5, -20.0), (-177.0, -26.0), (-178.5, -31.0)), (
        ("Hihifo, Tonga", -15.95, -173.77), ("Pangai, Tonga", -19.8, -174.35),
        ("Kermadec Islands, New Zealand", -29.25, -177.92), ("Levuka, Fiji", -17.68, 178.83),
    ), slab=True, sea=True),
    Belt("us", 3, 4.1, 80, ((-70.8, -18.0), (-71.0, -24.0), (-72.2, -32.0), (-74.0, -38.0)), (
        ("Iquique, Chile", -20.22, -70.14), ("Calama, Chile", -22.46, -68.93), ("Illapel, Chile", -31.63, -71.17),
        ("Lebu, Chile", -37.61, -73.65), ("San Antonio de los Cobres, Argentina", -24.22, -66.32),
    ), slab=True, sea=True),
    Belt("us", 2, 4.0, 60, ((-105.5, 19.0), (-98.5, 16.3), (-93.0, 14.6), (-87.5, 12.2), (-83.5, 8.8)), (
        ("Ometepec, Mexico", 16.69, -98.41), ("Puerto Madero, Mexico", 14.72, -92.42),
        ("Corinto, Nicaragua", 12.48, -87.17), ("Burica, Panama", 8.04, -82.87),
    ), slab=True, sea=True),
    Belt("us", 2, 4.1, 120, ((22.0, 37.0), (27.5, 37.5), (38.5, 38.0), (45.0, 37.0), (51.0, 31.0), (57.0, 27.5)), (
        ("Methóni, Greece", 36.82, 21.7), ("Bodrum, Turkey", 37.04, 27.43), ("Doğanyol, Turkey", 38.31, 39.04),
        ("Khowy, Iran", 38.55, 44.95), ("Bandar Abbas, Iran", 27.19, 56.28),
    )),
    Belt("us", 2, 4.1, 150, ((69.5, 36.5), (73.0, 39.0), (78.0, 35.0), (86.0, 28.5), (95.0, 27.5)), (
        ("Ashkāsham, Afghanistan", 36.68, 71.53), ("Murghob, Tajikistan", 38.17, 73.97),
        ("Hotan, China", 37.1, 79.93), ("Lobuche, Nepal", 27.96, 86.79),
    ), slab=True),
    Belt("us", 2, 4.4, 60, ((-33.0, 35.0), (-43.0, 23.0), (-30.0, 0.0), (-14.0, -15.0), (-13.0, -35.0)), (
        ("northern Mid-Atlantic Ridge", 29.0, -42.0), ("central Mid-Atlantic Ridge", -1.0, -24.0),
        ("southern Mid-Atlantic Ridge", -28.0, -13.5),
    ), sea=True),
    Belt("us", 2, 4.4, 60, ((-27.0, -56.0), (-25.5, -58.5), (-27.0, -60.5)), (
        ("South Sandwich Islands region", -57.8, -26.5), ("Bristol Island, South Sandwich Islands", -59.05, -26.5),
    ), slab=True, sea=True),
)  # fmt: skip

_TOTAL = sum(belt.weight for belt in BELTS)


def belt_at(share: float) -> Belt:
    """The belt that a share in [0, 1) of all events falls on."""
    left = share * _TOTAL
    for belt in BELTS:
        left -= belt.weight
        if left < 0:
            return belt
    return BELTS[-1]


def point_on(belt: Belt, along: float, across_km: float) -> tuple[float, float]:
    """(lat, lon) at a fraction along the belt's line and a distance to its side; lon in [-180, 180)."""
    legs = len(belt.line) - 1
    leg = min(int(along * legs), legs - 1)
    (lon_a, lat_a), (lon_b, lat_b) = belt.line[leg], belt.line[leg + 1]
    part = along * legs - leg
    lat, lon = lat_a + (lat_b - lat_a) * part, lon_a + (lon_b - lon_a) * part
    heading = math.atan2((lon_b - lon_a) * math.cos(math.radians(lat)), lat_b - lat_a) + math.pi / 2
    lat += across_km * math.cos(heading) / KM_PER_DEG
    lon += across_km * math.sin(heading) / KM_PER_DEG / math.cos(math.radians(lat))
    return lat, (lon + 180) % 360 - 180


def place_of(belt: Belt, lat: float, lon: float) -> str:
    """In the bulletin's wording: distance and bearing from the nearest town, or the region if far from all."""

    def offset(town: Town) -> tuple[float, float]:
        east = ((lon - town[2] + 180) % 360 - 180) * math.cos(math.radians(lat)) * KM_PER_DEG
        return east, (lat - town[1]) * KM_PER_DEG

    town = min(belt.towns, key=lambda candidate: math.hypot(*offset(candidate)))
    east_km, north_km = offset(town)
    distance_km = round(math.hypot(east_km, north_km))
    if distance_km == 0 or town[0].endswith((" Ridge", " region")):
        return town[0]
    if distance_km > 300:
        return town[0].rpartition(", ")[2] + " region"
    bearing = math.degrees(math.atan2(east_km, north_km)) % 360
    return f"{distance_km} km {_COMPASS[round(bearing / 22.5) % 16]} of {town[0]}"
