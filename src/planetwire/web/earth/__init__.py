"""Routes of the Earth page: layers, objects, jobs, sources."""
