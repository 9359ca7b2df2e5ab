"""A secret as it may be kept."""

from __future__ import annotations

import hashlib


def fingerprint(secret: str) -> str:
    """What is kept and compared instead of a secret: its time tells nothing, and a dump of the store neither."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
