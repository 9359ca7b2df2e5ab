"""What web processes keep and share: a backend a file, each behind its port."""
