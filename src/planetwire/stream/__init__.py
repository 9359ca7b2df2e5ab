"""Takes events with revisions; gives every subscriber replay, then live events, without gaps or duplicates."""
