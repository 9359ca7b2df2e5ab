"""Prometheus series of the outlets for other services, read when scraped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class CountedOutlet(Protocol):
    """The counters of an outlet; see relay/outlet.py. On standby they keep their values of the last send."""

    term: int | None
    sent: int
    failed: int
    behind: dict[str, int]
    paused: set[str]


class Outlets(Collector):
    """Series of the outlets that were exposed."""

    def __init__(self) -> None:
        self.outlets: dict[str, CountedOutlet] = {}

    def collect(self) -> Iterator[Metric]:
        """All series; `behind` and `paused` a layer."""
        sends = GaugeMetricFamily("planetwire_outlet_sends", "Whether this process is the one.", labels=["outlet"])
        sent = CounterMetricFamily("planetwire_outlet_sent", "Events that the other side took.", labels=["outlet"])
        failed = CounterMetricFamily("planetwire_outlet_failed", "Attempts that failed.", labels=["outlet"])
        behind = GaugeMetricFamily(
            "planetwire_outlet_behind", "Revisions from the last sent event to the newest.", labels=["outlet", "layer"]
        )
        paused = GaugeMetricFamily(
            "planetwire_outlet_paused", "Layers whose next event is refused again and again.", labels=["outlet"]
        )
        for name, outlet in self.outlets.items():
            sends.add_metric([name], outlet.term is not None)
            sent.add_metric([name], outlet.sent)
            failed.add_metric([name], outlet.failed)
            paused.add_metric([name], len(outlet.paused))
            for layer, revisions in outlet.behind.items():
                behind.add_metric([name, layer], revisions)
        yield from (sends, sent, failed, behind, paused)


_outlets = Outlets()


def expose_outlet(name: str, outlet: CountedOutlet) -> None:
    """Show the outlet's counters in /metrics, in place of an earlier one of the same name."""
    if not _outlets.outlets:
        REGISTRY.register(_outlets)
    _outlets.outlets[name] = outlet
