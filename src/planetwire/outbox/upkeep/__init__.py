"""The outbox as operators and the diagnostic see it, and what keeps it small."""
