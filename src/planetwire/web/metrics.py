"""Prometheus series of the live streams. Values are read when scraped, so counting costs the streams nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Counted(Protocol):
    """What a hub counts; see stream/hub.py."""

    live: int
    delivered: int
    lagged: int
    cut: int
    resyncs: Counter[str]

    @property
    def connections(self) -> int:
        """Subscribers, live or not."""

    @property
    def lagging(self) -> int:
        """Subscribers whose transport is full."""

    @property
    def head(self) -> int:
        """Latest revision handed out."""


class Streams(Collector):
    """Series of the hubs that were exposed."""

    def __init__(self) -> None:
        self.hubs: dict[str, Counted] = {}

    def collect(self) -> Iterator[Metric]:
        """All series, one sample a hub."""
        gauges = {
            "connections": "Subscribers, live or catching up.",
            "live": "Subscribers that have everything there is.",
            "lagging": "Subscribers whose transport is full.",
            "head": "Latest revision handed out.",
        }
        counters = {
            "delivered": "Events written to subscribers.",
            "lagged": "Times a subscriber fell behind.",
            "cut": "Subscribers cut because they took nothing.",
        }
        for name, text in gauges.items():
            gauge = GaugeMetricFamily(f"planetwire_stream_{name}", text, labels=["half"])
            for half, hub in self.hubs.items():
                gauge.add_metric([half], getattr(hub, name))
            yield gauge
        for name, text in counters.items():
            counter = CounterMetricFamily(f"planetwire_stream_{name}", text, labels=["half"])
            for half, hub in self.hubs.items():
                counter.add_metric([half], getattr(hub, name))
            yield counter
        resyncs = CounterMetricFamily("planetwire_stream_resyncs", "Resyncs asked for.", labels=["half", "reason"])
        for half, hub in self.hubs.items():
            for reason, count in hub.resyncs.items():
                resyncs.add_metric([half, str(reason)], count)
        yield resyncs


_streams = Streams()


def expose(half: str, hub: Counted) -> None:
    """Show the hub's counters in /metrics, in place of an earlier hub of the same half."""
    if not _streams.hubs:
        REGISTRY.register(_streams)
    _streams.hubs[half] = hub
