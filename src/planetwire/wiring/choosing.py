"""How a setting chooses a backend: a table of what there is, by the setting's word or the scheme of its address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from planetwire.errors import SetupError

T = TypeVar("T")


def by_name(variable: str, name: str, known: Mapping[str, T]) -> T:
    """Raises SetupError, which lists what there is."""
    if name not in known:
        raise SetupError(f"{variable}={name}: there is no such backend; known are {_listed(known)}")
    return known[name]


def by_scheme(variable: str, address: str, known: Mapping[str, T], *, instead: str = "") -> T:
    """As `by_name`. Of the address its scheme alone is told: what follows may hold a password. `instead`: what may be
    set in place of an address.
    """
    scheme, separator, _ = address.partition(":")
    if not separator or scheme.lower() not in known:
        given = f"{scheme}:// is none" if separator else "this is no address"
        raise SetupError(f"{variable}: {given}; known are {instead}{_listed(f'{name}://' for name in known)}")
    return known[scheme.lower()]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
