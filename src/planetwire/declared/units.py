"""Units of measurement: a small table, exact as decimals, of what publishers of Earth data write.

A library for units reads expressions of its own language and takes longer to load than all of ours; here a unit is a
word, and a conversion is one multiplication that was worked out beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

DECIMALS = 12  # kept of a converted value: what is behind them is noise of binary fractions


class Unit(NamedTuple):
    """`value * scale + zero` is the value in the unit of the quantity that we keep."""

    quantity: str
    scale: Fraction
    zero: Fraction = Fraction(0)


OURS = {
    "temperature": "degC",
    "speed": "m/s",
    "pressure": "hPa",
    "length": "m",
    "angle": "deg",
    "time": "s",
    "share": "%",
    "field": "nT",
    "number": "1",
    "flux": "W/m2",
    "power": "MW",
    "mass": "kg",
}


def _unit(quantity: str, scale: str, zero: str = "0") -> Unit:
    return Unit(quantity, Fraction(scale), Fraction(zero))


UNITS: dict[str, Unit] = {
    "degC": _unit("temperature", "1"),
    "degF": Unit("temperature", Fraction(5, 9), Fraction(-160, 9)),
    "K": _unit("temperature", "1", "-273.15"),
    "ddegC": _unit("temperature", "0.1"),
    "m/s": _unit("speed", "1"),
    "km/h": Unit("speed", Fraction(5, 18)),
    "km/s": _unit("speed", "1000"),
    "kt": Unit("speed", Fraction(1852, 3600)),
    "mph": _unit("speed", "0.44704"),
    "ft/min": Unit("speed", Fraction(3048, 600_000)),
    "hPa": _unit("pressure", "1"),
    "mb": _unit("pressure", "1"),
    "Pa": _unit("pressure", "0.01"),
    "kPa": _unit("pressure", "10"),
    "inHg": _unit("pressure", "33.8638866667"),
    "m": _unit("length", "1"),
    "km": _unit("length", "1000"),
    "mm": _unit("length", "0.001"),
    "cm": _unit("length", "0.01"),
    "ft": _unit("length", "0.3048"),
    "in": _unit("length", "0.0254"),
    "mi": _unit("length", "1609.344"),
    "nmi": _unit("length", "1852"),
    "deg": _unit("angle", "1"),
    "s": _unit("time", "1"),
    "ms": _unit("time", "0.001"),
    "min": _unit("time", "60"),
    "h": _unit("time", "3600"),
    "%": _unit("share", "1"),
    "ratio": _unit("share", "100"),
    "nT": _unit("field", "1"),
    "T": _unit("field", "1000000000"),
    "1": _unit("number", "1"),
    "W/m2": _unit("flux", "1"),
    "MW": _unit("power", "1"),
    "kW": _unit("power", "0.001"),
    "kg": _unit("mass", "1"),
    "t": _unit("mass", "1000"),
}
OTHER_NAMES = {
    "C": "degC", "°C": "degC", "celsius": "degC", "F": "degF", "°F": "degF", "fahrenheit": "degF", "kelvin": "K",
    "dC": "ddegC", "kn": "kt", "knots": "kt", "kmh": "km/h", "km_h-1": "km/h", "m_s-1": "m/s", "mps": "m/s",
    "mbar": "mb", "°": "deg", "degree_(angle)": "deg", "percent": "%",
}  # fmt: skip
"""Further names of these units, the words of `wmoUnit:` among them."""


def named(word: str) -> str | None:
    """The unit's name in the table, of any of its names; `wmoUnit:degC` and `unit:degC` are `degC`."""
    plain = word.strip().rpartition(":")[2]
    plain = OTHER_NAMES.get(plain, plain)
    return plain if plain in UNITS else None


def ours(word: str) -> str:
    """The unit in which we keep what has this one."""
    return OURS[UNITS[word].quantity]


def conversion(given: str, wanted: str) -> Callable[[float], float] | None:
    """From one unit of the table to another; None where they measure different things."""
    one, other = UNITS[given], UNITS[wanted]
    if one.quantity != other.quantity:
        return None
    scale = one.scale / other.scale
    # The zero of `given` is taken off first: of the freezing point nothing is left that could be off.
    start = float(-one.zero / one.scale)
    zero = float(-other.zero / other.scale)
    times, by = float(scale.numerator), float(scale.denominator)
    if one.zero == other.zero and scale == 1:
        return lambda value: round(value, DECIMALS)
    return lambda value: round((value - start) * times / by + zero, DECIMALS) + 0.0
