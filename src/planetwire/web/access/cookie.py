"""The session cookie: a random id and its signature, so that only what we gave out is looked up."""

from __future__ import annotations

import hashlib
import secrets

from itsdangerous import BadSignature, Signer

COOKIE = "planetwire_session"
ID_BYTES = 32
LENGTH_MAX = 200  # of a cookie that is looked at
SALT = "planetwire.session"


def new_cookie(key: bytes) -> str:
    """A session's secret; `session_key` is what may be kept of it."""
    return _signer(key).sign(secrets.token_urlsafe(ID_BYTES)).decode("ascii")


def session_key(key: bytes, cookie: str | None) -> str | None:
    """Under which name the session of this cookie is kept; None for a cookie that is none of ours."""
    if not cookie or len(cookie) > LENGTH_MAX or not cookie.isascii():
        return None
    try:
        secret = _signer(key).unsign(cookie)
    except BadSignature:
        return None
    return hashlib.sha256(secret).hexdigest()


def _signer(key: bytes) -> Signer:
    return Signer(key, salt=SALT, digest_method=hashlib.sha256)
