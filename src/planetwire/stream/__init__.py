"""Takes events with revisions; gives every subscriber replay, then live, without a gap or a double."""
