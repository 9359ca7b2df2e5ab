"""The outlet for other services, put together from the settings; off unless `PLANETWIRE_CHANGES_BUS` names one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from planetwire.database.postgres import Pool
from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.ports import EventLog, Wakeup
from planetwire.relay.bus_webhook import WebhookBus, checked_address
from planetwire.relay.outlet import Outlet
from planetwire.relay.outlet_postgres import PostgresOutletBook
from planetwire.runtime.clock import SystemClock
from planetwire.settings import Settings
from planetwire.web.outlet_metrics import expose_outlet

NONE = "none"
WEBHOOK = "webhook"  # its name in the database, whatever the address: a receiver that moves goes on where it was


def check_changes_bus(settings: Settings) -> None:
    """Raises SetupError for an address that no outlet takes."""
    if settings.changes_bus != NONE:
        checked_address(settings.changes_bus)


def add_outlet(
    loops: dict[str, Callable[[], Awaitable[None]]],
    settings: Settings,
    secret: str,
    pool: Pool,
    event_log: EventLog,
    bell: Wakeup,
) -> None:
    """A loop in each process that may lead; among themselves they agree who sends. Nothing when it is off."""
    if settings.changes_bus == NONE:
        return
    clock = SystemClock()
    outlet = Outlet(
        WebhookBus(settings.changes_bus, secret, clock),
        PostgresOutletBook(pool, WEBHOOK),
        event_log,
        [adapter.id for adapter in EarthLayerAdapterRegistry().all()],
        bell,
        clock,
        ttl_s=settings.relay.leader_ttl_s,
    )
    loops["outlet"] = outlet.run
    expose_outlet(WEBHOOK, outlet)
