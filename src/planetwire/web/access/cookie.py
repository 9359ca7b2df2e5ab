"""The session cookie: a random id and its signature, so that only cookies we issued are looked up."""

from __future__ import annotations

import hashlib
import secrets

from itsdangerous import BadSignature, Signer

COOKIE = "planetwire_session"
ID_BYTES = 32
LENGTH_MAX = 200  # of a cookie; longer ones are ignored
SALT = "planetwire.session"


def new_cookie(key: bytes) -> str:
    """A new session's secret; only its `session_key` is stored."""
    return _signer(key).sign(secrets.token_urlsafe(ID_BYTES)).decode("ascii")


def session_key(key: bytes, cookie: str | None) -> str | None:
    """The key of this cookie's session in the store; None if we did not issue the cookie."""
    if not cookie or len(cookie) > LENGTH_MAX or not cookie.isascii():
        return None
    try:
        secret = _signer(key).unsign(cookie)
    except BadSignature:
        return None
    return hashlib.sha256(secret).hexdigest()


def _signer(key: bytes) -> Signer:
    return Signer(key, salt=SALT, digest_method=hashlib.sha256)
