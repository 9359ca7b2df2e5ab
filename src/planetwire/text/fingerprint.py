"""The form in which a secret is stored."""

from __future__ import annotations

import hashlib


def fingerprint(secret: str) -> str:
    """Stored and compared in place of the secret: neither timing nor a dump of the store reveals it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
