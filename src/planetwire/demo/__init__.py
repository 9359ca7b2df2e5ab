"""A separate program: simulated feeds in the real formats over loopback HTTP. No stage imports it."""
