"""Parses senders' temperatures: numbers or numeric text, °C or °F, always stored as °C. Pure."""

from __future__ import annotations

import re

from planetwire.collect.formats.shown import shown
from planetwire.errors import InputError

LEAST_C = -90.0
GREATEST_C = 60.0
DECIMALS = 2

_NUMBER = re.compile(r"[+-]?\d{1,4}(\.\d{1,12})?", re.ASCII)
_UNITS = {"c": False, "°c": False, "celsius": False, "f": True, "°f": True, "fahrenheit": True}


def is_fahrenheit(unit: object) -> bool:
    """Whether `unit` is Fahrenheit; an absent one is Celsius. Raises InputError `invalid_unit`."""
    if unit is None or unit == "":
        return False
    name = unit.strip().lower() if isinstance(unit, str) else None
    if name not in _UNITS:
        raise InputError(f"unknown temperature unit: {shown(unit)}", code="invalid_unit")
    return _UNITS[name]


def read_celsius(raw: object, *, fahrenheit: bool) -> float:
    """°C with two decimals, −0.0 as 0.0. Raises InputError `invalid_temp` unless it is a number in −90…+60 °C."""
    number = _number(raw)
    if number is not None:
        celsius = (number - 32.0) / 1.8 if fahrenheit else number
        if LEAST_C <= celsius <= GREATEST_C:
            return round(celsius, DECIMALS) + 0.0
    raise InputError(f"not a temperature between -90 and +60 °C: {shown(raw)}", code="invalid_temp")


def celsius_or_none(raw: object, *, fahrenheit: bool) -> float | None:
    """As `read_celsius`, but None for an invalid temperature: for values with a fallback."""
    try:
        return read_celsius(raw, fahrenheit=fahrenheit)
    except InputError:
        return None


def _number(raw: object) -> float | None:
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int):
        return float(raw) if -10_000 < raw < 10_000 else None
    if isinstance(raw, str):
        return float(raw) if _NUMBER.fullmatch(raw := raw.strip()) else None
    return raw if isinstance(raw, float) else None
