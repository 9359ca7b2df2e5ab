"""Sanitises text and JSON from outside for display and storage. Pure."""
