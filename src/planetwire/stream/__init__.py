"""Delivers events with revisions to every subscriber: replay, then live, without gaps or duplicates."""
