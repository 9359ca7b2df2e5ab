"""Lists the fixture modules; fixtures live in `fix_*.py`, by what they need."""

import pytest
from hypothesis import HealthCheck, settings

import inherited

inherited.put_right()

# How long an example takes says how busy the machine is; speed is measured in bench/.
settings.register_profile("planetwire", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("planetwire")

pytest_plugins = [
    "fix_browser",
    "fix_earth",
    "fix_feeds",
    "fix_installation",
    "fix_missing",
    "fix_observations",
    "fix_pgbouncer",
    "fix_postgres",
    "fix_proxies",
    "fix_roles",
    "fix_valkey",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: their driver keeps an event loop in the main thread, where no other can run then."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture(autouse=True)
def _logging_of_the_process_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command run inside the test process sets up logging once and for all: loggers are cached at their first use."""
    monkeypatch.setattr("planetwire.supervise.command.configure_logging", lambda *_, **__: None)
