"""Our own TLS: the web process's certificate, and how our other processes verify it."""

from __future__ import annotations

import ssl
from pathlib import Path

from planetwire.errors import SetupError
from planetwire.settings import Settings

NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python does not define
CERTIFICATE_END = "-----END CERTIFICATE-----"


def server_context(settings: Settings) -> ssl.SSLContext | None:
    """The server's context; None: plain HTTP. Raises SetupError, naming the file."""
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise SetupError("PLANETWIRE_TLS_CERT and PLANETWIRE_TLS_KEY go together: set both, or neither")
    _read(certificate, "PLANETWIRE_TLS_CERT")
    _read(key, "PLANETWIRE_TLS_KEY")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise SetupError(f"PLANETWIRE_TLS_CERT {certificate} with PLANETWIRE_TLS_KEY {key}: {reason}") from error
    return context


def own_trust(certificate: Path | None) -> ssl.SSLContext | None:
    """For requests to our own web process at any address: its certificate is pinned, so neither name nor expiry is
    checked. Nothing else is trusted: of a chain, only the first certificate.
    """
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(NO_CHECK_TIME)
    first, end, _ = _read(certificate, "PLANETWIRE_TLS_CERT").partition(CERTIFICATE_END)
    try:
        context.load_verify_locations(cadata=first[max(first.find("-----BEGIN CERTIFICATE"), 0) :] + end)
    except (ssl.SSLError, ValueError) as error:
        raise SetupError(f"PLANETWIRE_TLS_CERT {certificate}: no certificate (PEM) in it") from error
    return context


def scheme_of(settings: Settings) -> str:
    """The scheme of our own address."""
    return "http" if settings.tls_cert is None else "https"


def _read(file: Path, name: str) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise SetupError(f"{name} {file} cannot be read: {error.strerror}") from error


def _no_password() -> bytes:
    """Otherwise OpenSSL would prompt on the terminal."""
    raise ValueError("the key is protected by a password; give one without")
