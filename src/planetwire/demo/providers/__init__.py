"""The simulated providers, each in the real format of what it stands for."""
