"""A setting whose backend is not there stops the start; nothing is silently kept in a weaker place."""

from __future__ import annotations

from pathlib import Path

import pytest

from planetwire.errors import SetupError
from planetwire.settings import Settings
from planetwire.wiring import check_supported


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"bus": "redis"}, "PLANETWIRE_BUS"),
        ({"bus": "postgres"}, "PLANETWIRE_BUS"),
        ({"changes_bus": "kafka://127.0.0.1"}, "PLANETWIRE_CHANGES_BUS"),
        ({"observations_url": "postgresql://127.0.0.1/weather"}, "PLANETWIRE_OBSERVATIONS_URL"),
    ],
)
def test_a_backend_that_is_not_there_is_refused_by_name(tmp_path: Path, changes: dict[str, str], named: str) -> None:
    """S14, S213: no queue in Redis, and no second web process that would not hear the first."""
    with pytest.raises(SetupError, match=named):
        check_supported(Settings(data_dir=tmp_path, **changes))


def test_what_is_set_by_default_is_all_there(tmp_path: Path) -> None:
    """S106, S109, S212: SQLite, the bus of this process, no Redis."""
    settings = Settings(data_dir=tmp_path)
    check_supported(settings)
    assert (settings.bus, settings.redis_url, settings.changes_bus) == ("memory", None, "none")
    assert settings.observations_location.startswith("sqlite:///")
