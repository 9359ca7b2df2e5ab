"""The simulated providers, each in the format of the real one."""
