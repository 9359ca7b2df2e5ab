"""Settings that cannot work stop the start; nothing is silently kept in a weaker place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planetwire.errors import SetupError
from planetwire.settings import Settings
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
