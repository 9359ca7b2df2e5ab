"""Tools for long-running tasks: clock, loop, back-off, shutdown, and failpoints for crash tests."""
