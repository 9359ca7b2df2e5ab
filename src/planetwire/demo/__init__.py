"""A separate program: simulated feeds in the real formats over loopback HTTP. The product never imports it."""
