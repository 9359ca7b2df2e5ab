"""Settings that cannot work stop the start; nothing is silently kept in a weaker place."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from planetwire.errors import SetupError
from planetwire.relay.bus_webhook import WebhookBus
from planetwire.settings import Settings
from planetwire.stream.bus import Bus
from planetwire.stream.bus_memory import MemoryBus
from planetwire.wiring import buses, outlets
from planetwire.wiring.buses import BusKind, Joining
from planetwire.wiring.observations import open_observations
from planetwire.wiring.outlets import OutletKind, outlet_kind
from planetwire.wiring.shared import open_shared
from planetwire.wiring.work import check_supported


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"bus": "redis"}, "PLANETWIRE_REDIS_URL"),
        ({"bus": "postgres", "halves": "terminal"}, "PLANETWIRE_OBSERVATIONS_URL"),
        ({"bus_required": True}, "PLANETWIRE_BUS"),
        ({"web_workers": 2}, "PLANETWIRE_BUS"),
        ({"web_workers": 2, "observations_url": "postgresql://127.0.0.1/weather"}, "PLANETWIRE_BUS"),
        ({"changes_bus": "kafka://127.0.0.1"}, "PLANETWIRE_CHANGES_BUS"),
        ({"observations_url": "mysql://127.0.0.1/weather"}, "PLANETWIRE_OBSERVATIONS_URL"),
    ],
)
def test_what_cannot_work_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    """S14, S213, F35: no queue in Redis, and no second web process that would not hear the first."""
    with pytest.raises(SetupError, match=named):
        check_supported(Settings(data_dir=tmp_path, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"observations_url": "postgresql://127.0.0.1/weather"},
        {"observations_url": "postgresql://127.0.0.1/weather", "bus": "postgres", "web_workers": 3},
        {"bus": "redis", "redis_url": "redis://127.0.0.1/0", "web_workers": 2, "bus_required": True},
        {"bus": "postgres", "web_workers": 2},
        {"halves": "earth", "web_workers": 2},
    ],
)
def test_what_works_together_is_taken(tmp_path: Path, changes: dict[str, Any]) -> None:
    """S106, S168, S169; the globe's processes follow their log in PostgreSQL whatever the bus."""
    check_supported(Settings(data_dir=tmp_path, **changes))


def test_what_is_set_by_default_is_all_there(tmp_path: Path) -> None:
    """S106, S109, S212: SQLite, the bus of this process, no Redis."""
    settings = Settings(data_dir=tmp_path)
    check_supported(settings)
    assert (settings.bus, settings.redis_url, settings.changes_bus) == ("memory", None, "none")
    assert settings.observations_location.startswith("sqlite:///")


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        ({"bus": "nats"}, "PLANETWIRE_BUS=nats: .*memory, postgres, redis$"),
        ({"observations_url": "mysql://me:word@host/weather"}, "mysql:// is none; known are sqlite://, postgresql://,"),
        ({"observations_url": "weather.db"}, "this is no address; known are sqlite://"),
        ({"observations_url": "sqlite://weather.db"}, "sqlite:///<path>"),
        ({"changes_bus": "kafka://me:word@host"}, "kafka:// is none; known are none, https://, http://$"),
    ],
)
def test_what_is_unknown_is_told_what_there_is_and_no_password(
    tmp_path: Path, changes: dict[str, Any], listed: str
) -> None:
    with pytest.raises(SetupError, match=listed) as refused:
        check_supported(Settings(data_dir=tmp_path, **changes))
    assert "word" not in refused.value.message


async def test_an_address_of_what_is_no_redis_is_told_so(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, redis_url="memcached://me:word@host")  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="memcached:// is none; known are redis://, rediss://, unix://"):
        await open_shared(AsyncExitStack(), settings, b"key", None)


async def test_a_bus_is_added_by_its_entry_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is asked of several web processes, and of the store that they share."""
    joined: list[Joining] = []

    async def join(joining: Joining) -> Bus:
        joined.append(joining)
        return MemoryBus(joining.ring)

    def lacks(settings: Settings) -> str | None:
        return None if settings.web_workers > 1 else "company"

    monkeypatch.setitem(buses.BUSES, "pigeons", BusKind(join, lacks))  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="PLANETWIRE_BUS=pigeons needs company"):
        check_supported(Settings(data_dir=tmp_path, bus="pigeons"))
    settings = Settings(data_dir=tmp_path, bus="pigeons", web_workers=2, bus_required=True)
    check_supported(settings)
    async with AsyncExitStack() as stack, AsyncExitStack() as another:
        one = await open_observations(stack, settings, None)
        two = await open_observations(another, settings, None)
        assert isinstance(one.bus, MemoryBus) and two.required
    assert joined[0].channel == joined[1].channel, "of one store"


def test_an_outlet_is_added_by_its_entry_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    kind = OutletKind("pigeons", checked.append, WebhookBus)
    monkeypatch.setitem(outlets.OUTLETS, "pigeon", kind)  # type: ignore[arg-type]
    settings = Settings(data_dir=tmp_path, changes_bus="pigeon://roof")
    check_supported(settings)
    assert outlet_kind(settings) is kind
    assert set(checked) == {"pigeon://roof"}
