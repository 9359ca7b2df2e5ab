"""The outlet for other services, put together from the settings; off unless `PLANETWIRE_CHANGES_BUS` names one.

Which it is says the scheme of the address. Another outlet is its file in `relay/` and an entry in `OUTLETS`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from planetwire.database.postgres import Pool
from planetwire.ports import Clock, DataChangeBus, EventLog, Wakeup
from planetwire.relay.bus_webhook import WebhookBus, checked_address
from planetwire.relay.outlet import Outlet
from planetwire.relay.outlet_postgres import PostgresOutletBook
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings
from planetwire.web.outlet_metrics import expose_outlet
from planetwire.wiring.choosing import by_scheme

NONE = "none"


@dataclass(frozen=True, slots=True)
class OutletKind:
    """`name`: in the database, whatever the address: a receiver that moves goes on where it was. `check(address)` and
    `open(address, secret, clock)` raise SetupError.
    """

    name: str
    check: Callable[[str], object]
    open: Callable[[str, str, Clock], DataChangeBus]


WEBHOOK = OutletKind("webhook", checked_address, WebhookBus)
OUTLETS: Mapping[str, OutletKind] = {"https": WEBHOOK, "http": WEBHOOK}


def outlet_kind(settings: Settings) -> OutletKind | None:
    """None: it is off. Raises SetupError for an address that no outlet takes."""
    if settings.changes_bus == NONE:
        return None
    kind = by_scheme("PLANETWIRE_CHANGES_BUS", settings.changes_bus, OUTLETS, instead=f"{NONE}, ")
    kind.check(settings.changes_bus)
    return kind


def add_outlet(
    loops: dict[str, Callable[[], Awaitable[None]]],
    settings: Settings,
    secret: str,
    pool: Pool,
    event_log: EventLog,
    bell: Wakeup,
    layers: Sequence[str],
) -> None:
    """A loop in each process that may lead; among themselves they agree who sends. Nothing when it is off."""
    kind = outlet_kind(settings)
    if kind is None:
        return
    clock = SystemClock()
    outlet = Outlet(
        kind.open(settings.changes_bus, secret, clock),
        PostgresOutletBook(pool, kind.name),
        event_log,
        layers,
        bell,
        clock,
        ttl_s=settings.relay.leader_ttl_s,
    )
    loops["outlet"] = outlet.run
    expose_outlet(kind.name, outlet)
