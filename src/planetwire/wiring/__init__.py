"""Settings → backends → stages: the only room that names backends."""
