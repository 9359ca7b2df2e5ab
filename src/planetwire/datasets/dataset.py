"""What one folder declares."""

from __future__ import annotations

from dataclasses import dataclass

from planetwire.collect.feeds import FactFeed, ObservationFeed
from planetwire.model import LayerAdapter


@dataclass(frozen=True, slots=True)
class Dataset:
    """One layer of facts and the feeds behind it. `rank`: its place among the layers as the page lists them.

    `city_facts`: the source of its facts, if they are the newest reading of each city, which no feed brings.
    """

    layer: LayerAdapter
    rank: int
    fact_feeds: tuple[FactFeed, ...] = ()
    observation_feeds: tuple[ObservationFeed, ...] = ()
    city_facts: str | None = None
