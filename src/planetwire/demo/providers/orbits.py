"""The simulated satellite fleet: the objects in orbit at a time, and their mean elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from planetwire.demo.providers.noise import bits, gauss, spread

UPDATE_S = 7_200
"""New elements are issued this often, at whole multiples of it."""

REFERENCE_S = 1_767_225_600.0
"""2026-01-01: the time at which every orbit's angles are drawn."""

LAUNCH_ERA_S = 1_577_836_800.0
LAUNCH_EVERY_S = 21_600
LAUNCH_LIFE_S = 20 * 86_400
LAUNCH_SIZE = 5
LAUNCH_FIRST_ID = 110_001

_MU_KM3_S2 = 398_600.8
_EARTH_KM = 6_378.135
_J2 = 1.082616e-3
_LOWEST_KM = 300.0
_DAY_S = 86_400.0
_SIDEREAL_DAY_S = 86_164.0905


@dataclass(frozen=True, slots=True)
class Shell:
    """A family of similar orbits. `planes` 0 scatters the objects; `slots` keeps them over fixed longitudes."""

    family: str
    name: str
    count: int
    inclination_deg: float
    perigee_km: float
    apogee_km: float
    planes: int = 0
    first_id: int = 0
    first_year: int = 2015
    years: int = 10
    perigee_spread_km: float = 3.0
    inclination_spread_deg: float = 0.05
    argument_deg: float | None = None
    bstar: float = 1e-4
    slots: bool = False


SHELLS = (
    Shell("starlink", "STARLINK-{:d}", 1584, 53.05, 547, 549, 72, 44_714, 2019, 3, bstar=2.5e-4),
    Shell("starlink", "STARLINK-{:d}", 1584, 53.22, 539, 541, 72, 50_001, 2022, 2, bstar=3e-4),
    Shell("starlink", "STARLINK-{:d}", 720, 70.0, 569, 571, 36, 53_001, 2022, 1, bstar=2e-4),
    Shell("starlink", "STARLINK-{:d}", 508, 97.65, 559, 561, 10, 54_001, 2022, 1, bstar=2e-4),
    Shell("starlink", "STARLINK-{:d}", 1920, 43.0, 529, 531, 48, 55_001, 2023, 2, bstar=3.5e-4),
    Shell("starlink", "STARLINK-{:d}", 1180, 53.16, 484, 486, 28, 100_001, 2026, 1, bstar=6e-4),
    Shell("oneweb", "ONEWEB-{:04d}", 648, 87.9, 1198, 1202, 12, 47_001, 2020, 4, bstar=1e-4),
    Shell("kuiper", "KUIPER-{:05d}", 340, 51.9, 629, 631, 17, 62_001, 2025, 1, bstar=1.5e-4),
    Shell("kuiper", "KUIPER-{:05d}", 260, 33.0, 589, 591, 13, 101_201, 2026, 1, bstar=1.5e-4),
    Shell("qianfan", "QIANFAN-{:d}", 126, 89.0, 1078, 1082, 7, 61_001, 2024, 2, bstar=1e-4),
    Shell("qianfan", "QIANFAN-{:d}", 216, 89.0, 1078, 1082, 12, 101_501, 2026, 1, bstar=1e-4),
    Shell("iridium-NEXT", "IRIDIUM {:d}", 75, 86.4, 776, 780, 6, 41_917, 2017, 2, bstar=3e-5),
    Shell("globalstar", "GLOBALSTAR M{:03d}", 48, 52.0, 1413, 1415, 8, 31_571, 2007, 6, bstar=-1e-6),
    Shell("sso", "FLOCK 4-{:d}", 160, 97.5, 470, 490, 4, 52_601, 2022, 3, 8, bstar=6e-4),
    Shell("sso", "LEMUR-2-{:d}", 110, 97.6, 505, 535, 0, 52_801, 2018, 7, 12, 0.2, bstar=4e-4),
    Shell("sso", "JILIN-1 {:02d}", 130, 97.55, 530, 545, 6, 43_101, 2017, 8, 6, bstar=2e-4),
    Shell("sso", "YAOGAN-{:d}", 190, 98.1, 600, 690, 0, 36_001, 2009, 15, 30, 0.4, bstar=6e-5),
    Shell("sso", "POLAR {:d}", 260, 98.7, 780, 840, 0, 25_730, 1999, 25, 25, 0.3, bstar=5e-5),
    Shell("sso", "SMALLSAT {:d}", 520, 97.4, 480, 590, 0, 57_001, 2023, 3, 35, 0.25, bstar=4e-4),
    Shell("sso", "TRANSIT-{:d}", 280, 97.7, 500, 560, 0, 102_001, 2026, 1, 30, 0.2, bstar=4e-4),
    Shell("stations", "ISS CUBESAT {:d}", 60, 51.63, 395, 410, 0, 58_601, 2024, 2, 8, 0.02, bstar=5e-4),
    Shell("gps-ops", "NAVSTAR {:d} (USA)", 31, 55.0, 20_170, 20_195, 6, 24_877, 1997, 28, 5, 1.0, bstar=0.0),
    Shell("glo-ops", "COSMOS {:d} (GLONASS)", 24, 64.8, 19_125, 19_135, 3, 32_394, 2007, 17, 4, 0.5, bstar=0.0),
    Shell("galileo", "GALILEO {:02d}", 28, 56.0, 23_220, 23_226, 3, 37_847, 2011, 13, 3, 0.6, bstar=0.0),
    Shell("beidou", "BEIDOU-3 M{:d}", 24, 55.0, 21_525, 21_531, 3, 43_002, 2017, 3, 3, 0.4, bstar=0.0),
    Shell("o3b", "O3B FM{:d}", 26, 0.05, 8_060, 8_066, 1, 39_188, 2013, 11, 2, 0.02, bstar=0.0),
    Shell("geo", "COMSAT {:d}", 430, 0.04, 35_776, 35_797, 0, 27_500, 2002, 23, 2, 0.03, bstar=0.0, slots=True),
    Shell("geo", "SKYBIRD {:d}", 130, 4.5, 35_770, 35_803, 0, 23_600, 1995, 10, 4, 2.5, bstar=0.0, slots=True),
    Shell("beidou", "BEIDOU-3 IGSO-{:d}", 6, 55.0, 35_700, 35_873, 0, 44_204, 2019, 2, 3, 0.5, bstar=0.0, slots=True),
    Shell("molniya", "MOLNIYA {:d}-T", 42, 63.4, 900, 39_450, 6, 28_163, 2001, 18, 60, 0.8, 270.0, 0.0),
    Shell("gto", "ARIANE 5 R/B {:d}", 110, 6.5, 420, 35_600, 0, 29_270, 2006, 17, 150, 3.0, None, 2e-4),
    Shell("debris", "FENGYUN 1C DEB", 420, 98.8, 700, 950, 0, 29_711, 1999, 1, 140, 0.6, None, 4e-4),
    Shell("debris", "COSMOS 2251 DEB", 300, 74.0, 680, 860, 0, 33_757, 1993, 1, 110, 0.2, None, 4e-4),
    Shell("debris", "IRIDIUM 33 DEB", 120, 86.4, 690, 800, 0, 35_001, 1997, 1, 70, 0.2, None, 5e-4),
    Shell("debris", "SL-8 R/B", 220, 82.9, 880, 1_020, 0, 12_100, 1981, 15, 90, 0.3, None, 6e-5),
    Shell("debris", "DELTA 1 DEB", 180, 100.6, 900, 1_500, 0, 7_600, 1974, 6, 250, 1.5, None, 5e-4),
)


@dataclass(frozen=True, slots=True)
class Orbit:
    """One object. Angles in degrees at REFERENCE_S, rates in degrees a day; `slot_deg` fixes the longitude instead."""

    family: str
    name: str
    designator: str
    norad_id: int
    motion_rev_day: float
    eccentricity: float
    inclination_deg: float
    node_deg: float
    argument_deg: float
    anomaly_deg: float
    node_rate: float
    argument_rate: float
    bstar: float
    motion_dot: float
    launched_s: float
    period_updates: int
    slot_deg: float | None = None


def motion_of(semi_major_km: float) -> float:
    """Revolutions per day for a semi-major axis."""
    return math.sqrt(_MU_KM3_S2 / semi_major_km**3) * _DAY_S / (2 * math.pi)


def drift_of(motion_rev_day: float, eccentricity: float, inclination_deg: float) -> tuple[float, float]:
    """Drift of node and perigee due to the Earth's oblateness, degrees per day."""
    semi_major_km = (_MU_KM3_S2 * (_DAY_S / (2 * math.pi * motion_rev_day)) ** 2) ** (1 / 3)
    pull = 0.75 * _J2 * (_EARTH_KM / (semi_major_km * (1 - eccentricity**2))) ** 2 * motion_rev_day * 360
    cosine = math.cos(math.radians(inclination_deg))
    return -2 * pull * cosine, pull * (5 * cosine * cosine - 1)


def sidereal_deg(at_s: float) -> float:
    """Greenwich sidereal angle, degrees."""
    days = at_s / _DAY_S - 10_957.5
    return (280.46061837 + 360.98564736629 * days) % 360


def designator_of(year: int, number: int, piece: int) -> str:
    """International designator such as 2022-114AB; pieces count A…Z, AA…, without I and O."""
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    text = ""
    piece += 1
    while piece:
        piece, digit = divmod(piece - 1, len(letters))
        text = letters[digit] + text
    return f"{year}-{number:03d}{text}"


def _anomaly_and_node(shell: Shell, index: int, *keys: int) -> tuple[float, float]:
    if not shell.planes:
        return spread(0, 360, *keys, 1), spread(0, 360, *keys, 2)
    plane, place = index % shell.planes, index // shell.planes
    per_plane = -(-shell.count // shell.planes)
    fan_deg = 180 if 85 < shell.inclination_deg < 92 else 360
    anomaly = 360 * place / per_plane + 360 * plane / shell.count + gauss(*keys, 3) * 0.05
    return anomaly % 360, (fan_deg * plane / shell.planes + gauss(*keys, 4) * 0.05) % 360


def _orbit(shell: Shell, index: int, serial: int, seed: int) -> Orbit:
    keys = (seed, shell.first_id, index)
    lift_km = max(-2.5, min(2.5, gauss(*keys, 5))) * shell.perigee_spread_km
    perigee, apogee = shell.perigee_km + lift_km, shell.apogee_km + lift_km
    if not shell.slots and shell.apogee_km - shell.perigee_km > 20 and shell.apogee_km < 3_000:
        perigee, apogee = sorted((spread(perigee, apogee, *keys, 6), spread(perigee, apogee, *keys, 7)))
    perigee = max(perigee, _LOWEST_KM)
    axis_km = _EARTH_KM + (perigee + apogee) / 2
    eccentricity = max((apogee - perigee) / (2 * axis_km), spread(5e-5, 2.5e-4, *keys, 8))
    inclination = abs(shell.inclination_deg + max(-2.5, min(2.5, gauss(*keys, 9))) * shell.inclination_spread_deg)
    motion = 86_400 / _SIDEREAL_DAY_S if shell.slots else motion_of(axis_km)
    node_rate, argument_rate = drift_of(motion, eccentricity, inclination)
    anomaly, node = _anomaly_and_node(shell, index, *keys)
    year = shell.first_year + index * shell.years // shell.count
    bstar = shell.bstar * spread(0.4, 1.8, *keys, 10)
    return Orbit(
        shell.family,
        shell.name.format(serial),
        "" if bits(*keys, 11) % 1500 == 0 else designator_of(year, 1 + index // 56 % 180, index % 56),
        shell.first_id + index,
        motion,
        eccentricity,
        inclination,
        node,
        spread(0, 360, *keys, 12) if shell.argument_deg is None else shell.argument_deg + gauss(*keys, 12) * 3,
        anomaly,
        node_rate,
        argument_rate,
        bstar,
        bstar * 0.3 if apogee < 700 else 0.0,
        REFERENCE_S - (2026 - min(year, 2025)) * 365.25 * _DAY_S,
        1 + bits(*keys, 13) % 6,
        spread(-180, 180, *keys, 14) if shell.slots else None,
    )


def _station(name: str, designator: str, norad_id: int, inclination_deg: float, height_km: float, seed: int) -> Orbit:
    motion = motion_of(_EARTH_KM + height_km)
    node_rate, argument_rate = drift_of(motion, 0.0005, inclination_deg)
    angles = [spread(0, 360, seed, norad_id, which) for which in (1, 2, 3)]
    born = REFERENCE_S - (2026 - int(designator[:4])) * 365.25 * _DAY_S
    return Orbit(
        "stations", name, designator, norad_id, motion, 0.0005, inclination_deg, angles[0], angles[1], angles[2],
        node_rate, argument_rate, 2.4e-4, 1.2e-4, born, 1,
    )  # fmt: skip


@lru_cache(maxsize=4)
def fleet(seed: int) -> tuple[Orbit, ...]:
    """Every permanent object, by ascending id; the same for the same seed."""
    orbits = [
        _station("ISS (ZARYA)", "1998-067A", 25_544, 51.63, 417, seed),
        _station("CSS (TIANHE)", "2021-035A", 48_274, 41.47, 386, seed),
    ]
    serials: dict[str, int] = {}
    for shell in SHELLS:
        for index in range(shell.count):
            serials[shell.name] = serials.get(shell.name, 1_000 if shell.name == "STARLINK-{:d}" else 0) + 1
            orbits.append(_orbit(shell, index, serials[shell.name], seed))
    return tuple(sorted(orbits, key=lambda orbit: orbit.norad_id))


def visitors(seed: int, issued_s: float) -> Iterator[Orbit]:
    """Short-lived objects of recent launches in orbit at `issued_s`: each appears, decays and is gone in 20 days."""
    newest = int((issued_s - LAUNCH_ERA_S) // LAUNCH_EVERY_S)
    oldest = int((issued_s - LAUNCH_LIFE_S - LAUNCH_ERA_S) // LAUNCH_EVERY_S) + 1
    for launch in range(max(0, oldest), newest + 1):
        for piece in range(LAUNCH_SIZE):
            yield _visitor(seed, launch, piece)


def _visitor(seed: int, launch: int, piece: int) -> Orbit:
    born_s = LAUNCH_ERA_S + launch * LAUNCH_EVERY_S
    inclination = (51.63, 53.2, 97.4, 43.0)[bits(seed, 77, launch) % 4]
    motion = motion_of(_EARTH_KM + 330 + 2 * piece)
    node_rate, argument_rate = drift_of(motion, 0.0008, inclination)
    year = 2020 + int((born_s - LAUNCH_ERA_S) // (365.25 * _DAY_S))
    number = int((born_s - LAUNCH_ERA_S) % (365.25 * _DAY_S) // LAUNCH_EVERY_S) % 900 + 100
    norad_id = LAUNCH_FIRST_ID + launch * LAUNCH_SIZE + piece
    return Orbit(
        "visitors", f"OBJECT {'ABCDE'[piece]}", designator_of(year, number, piece), norad_id, motion, 0.0008,
        inclination, spread(0, 360, seed, 78, launch), 90.0, 12.0 * piece, node_rate, argument_rate, 8e-4, 3.6e-3,
        born_s, 1,
    )  # fmt: skip
