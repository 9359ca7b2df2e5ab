"""What is made of facts: how they are found, and the rows of tables of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from planetwire.model.facts import Fact
from planetwire.model.tables import OwnedTable


class PlaceAsked(NamedTuple):
    """Where a fact without coordinates of its own lies, as its data say: in numbers, or by a name."""

    name: str = ""
    lat: float | None = None
    lon: float | None = None


class Derived(NamedTuple):
    """What a layer makes of one fact: how it is found, and the rows of its own tables.

    Identity rather than measurements, so that new figures of the same thing leave the row as it is. `properties` is
    not copied: one that several facts share is not to be changed. `rows`: by the name of a table that the layer owns,
    the values of this fact's row in the order of the table's columns; a table that is not named has none of it.
    """

    subtitle: str = ""
    properties: Mapping[str, Any] = {}
    severity: float | None = None
    alt_m: float | None = None
    rows: Mapping[str, Sequence[object]] = {}
    place: PlaceAsked | None = None


Deriver: TypeAlias = Callable[[Fact], Derived]  # total: a fact may have been typed in by hand


class Derivation(NamedTuple):
    """How a layer derives: what it makes of a fact, and the tables of its own that it fills."""

    layer: str
    derive: Deriver
    tables: tuple[OwnedTable, ...] = ()
