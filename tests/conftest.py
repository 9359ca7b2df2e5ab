"""Lists the fixture modules; fixtures live in `fix_*.py`, by what they need."""

import pytest

pytest_plugins = [
    "fix_browser",
    "fix_earth",
    "fix_feeds",
    "fix_installation",
    "fix_observations",
    "fix_pgbouncer",
    "fix_postgres",
    "fix_roles",
    "fix_valkey",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: their driver keeps an event loop in the main thread, where no other can run then."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
