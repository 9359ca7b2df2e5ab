"""Prometheus series of the live streams, the relay and the database.

Counters of this process are read when scraped; the database is queried twice a minute, whether scraped or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Protocol

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from planetwire.errors import BackendError
from planetwire.ports import Clock

SIGNALS_EVERY_S = 30.0


class Counted(Protocol):
    """The counters of a hub; see stream/hub.py."""

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
        """Subscribers whose send buffer is full."""

    @property
    def head(self) -> int:
        """Latest revision given out."""


class Streams(Collector):
    """Series of the hubs that were exposed."""

    def __init__(self) -> None:
        self.hubs: dict[str, Counted] = {}
        self.joined: Callable[[], bool] | None = None

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
        if self.joined is not None:
            name, text = "planetwire_stream_bus_connected", "Whether rings of other web processes are heard."
            yield GaugeMetricFamily(name, text, value=self.joined())


_streams = Streams()


def expose(half: str, hub: Counted) -> None:
    """Show the hub's counters in /metrics, in place of an earlier hub of the same half."""
    if not _streams.hubs:
        REGISTRY.register(_streams)
    _streams.hubs[half] = hub


def expose_bus(connected: Callable[[], bool] | None) -> None:
    """Show whether the bus between web processes is there; None where there is none."""
    _streams.joined = connected


class Room(Protocol):
    """The state of a disk budget; see budget.py."""

    @property
    def budget_bytes(self) -> int:
        """Bytes that may be used."""

    @property
    def used_bytes(self) -> int:
        """Bytes in use."""

    @property
    def level(self) -> int:
        """Number of steps taken."""


class Disk(Collector):
    """Series of the disk budget, from the last check of the process that enforces it."""

    def __init__(self) -> None:
        self.room: Room | None = None

    def collect(self) -> Iterator[Metric]:
        """None without a budget, or if another process enforces it."""
        if self.room is None:
            return
        texts = {
            "used_bytes": "What the data dir takes, without room inside its files.",
            "budget_bytes": "What it may take.",
            "level": "How many steps of the budget are taken.",
        }
        for name, text in texts.items():
            yield GaugeMetricFamily(f"planetwire_disk_{name}", text, value=getattr(self.room, name))


_disk = Disk()


def expose_disk(room: Room) -> None:
    """Show it in /metrics."""
    if _disk.room is None:
        REGISTRY.register(_disk)
    _disk.room = room


class CountedFront(Protocol):
    """The counters of a front; see web/http/front.py."""

    refused: Counter[str]
    shed: int


class Refused(Collector):
    """Series of refused requests and connections."""

    def __init__(self, front: CountedFront) -> None:
        self.front = front

    def collect(self) -> Iterator[Metric]:
        """By the code of the answer."""
        text = "Requests refused before they were looked at."
        refused = CounterMetricFamily("planetwire_requests_refused", text, labels=["code"])
        for code, count in self.front.refused.items():
            refused.add_metric([code], count)
        yield refused
        text = "Connections without a request, closed because descriptors ran out."
        yield CounterMetricFamily("planetwire_connections_shed", text, value=self.front.shed)


_refused: list[Refused] = []


def expose_front(front: CountedFront) -> None:
    """Show its counters in /metrics, in place of an earlier one's."""
    while _refused:
        REGISTRY.unregister(_refused.pop())
    _refused.append(Refused(front))
    REGISTRY.register(_refused[0])


class CountedRelay(Protocol):
    """The counters of a relay; see relay/relay.py."""

    counts: Counter[str]

    @property
    def is_leader(self) -> bool:
        """Whether it leads."""


class CountedSnapshots(Protocol):
    """The durations of layer reads; see web/earth/layer_snapshots.py."""

    read_s: dict[str, float]


RELAYED = {
    "changes": "Change rows consumed by this process.",
    "events": "Layer events that they were merged into.",
    "skipped": "Change rows that no layer takes.",
    "deferred": "Change rows put off after a failure.",
}
GAUGES = {
    "outbox_pending": "Change rows that wait, counted up to 100,000.",
    "outbox_oldest_age_seconds": "How long the oldest of them has waited.",
    "database_bytes": "Size of the database.",
    "database_longest_transaction_seconds": "How long the oldest open transaction has been so.",
    "table_rows": "Rows, as the planner estimates them.",
    "table_bytes": "Size with indexes.",
}
WRITTEN = "Rows inserted, updated and deleted."


class Earth(Collector):
    """Series of the relay and the database behind it; `samples` as `read_signals` gives them."""

    def __init__(self, relay: CountedRelay, snapshots: CountedSnapshots) -> None:
        self.relay = relay
        self.snapshots = snapshots
        self.samples: Mapping[str, Mapping[str, float]] = {}

    def collect(self) -> Iterator[Metric]:
        """All series with a known value."""
        yield GaugeMetricFamily("planetwire_relay_leads", "Whether this process leads.", value=self.relay.is_leader)
        for name, text in RELAYED.items():
            yield CounterMetricFamily(f"planetwire_relay_{name}", text, value=self.relay.counts[name])
        read = GaugeMetricFamily("planetwire_snapshot_read_seconds", "Last reading of a layer.", labels=["layer"])
        for layer, seconds in self.snapshots.read_s.items():
            read.add_metric([layer], seconds)
        yield read
        for name, text in GAUGES.items():
            labels = ["table"] if name.startswith("table_") else []
            gauge = GaugeMetricFamily(f"planetwire_{name}", text, labels=labels)
            for table, value in self.samples.get(name, {}).items():
                gauge.add_metric([table] if labels else [], value)
            yield gauge
        written = CounterMetricFamily("planetwire_table_written", WRITTEN, labels=["table"])
        for table, value in self.samples.get("table_written", {}).items():
            written.add_metric([table], value)
        yield written


_earth: list[Earth] = []


def expose_earth(
    relay: CountedRelay,
    snapshots: CountedSnapshots,
    read: Callable[[], Awaitable[Mapping[str, Mapping[str, float]]]],
    clock: Clock,
) -> Callable[[], Awaitable[None]]:
    """Show these in /metrics, in place of earlier ones; gives the loop that asks the database."""
    while _earth:
        REGISTRY.unregister(_earth.pop())
    shown = Earth(relay, snapshots)
    REGISTRY.register(shown)
    _earth.append(shown)

    async def run() -> None:
        while True:
            try:
                shown.samples = await read()
            except BackendError:
                shown.samples = {}  # no value rather than a stale one
            await clock.sleep(SIGNALS_EVERY_S)

    return run
