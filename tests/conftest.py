"""Lists the fixture modules; fixtures live in `fix_*.py`, by what they need."""

pytest_plugins = ["fix_browser", "fix_feeds", "fix_installation", "fix_observations", "fix_postgres"]
