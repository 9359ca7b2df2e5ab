"""Self-signed certificates, created on demand."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from missing import program


@dataclass(frozen=True)
class Made:
    """A self-signed certificate and its key."""

    cert: Path
    key: Path

    @property
    def settings(self) -> dict[str, str]:
        return {"PLANETWIRE_TLS_CERT": str(self.cert), "PLANETWIRE_TLS_KEY": str(self.key)}

    def trust(self) -> ssl.SSLContext:
        """A client's context like a browser's: checks the name, and trusts only this certificate."""
        return ssl.create_default_context(cafile=str(self.cert))


def self_signed(folder: Path, name: str = "localhost", *, expired: bool = False, password: str | None = None) -> Made:
    """Made with openssl, as operators do. Without it the test is skipped, but not in CI."""
    openssl = program("openssl")
    made = Made(folder / f"{name}.pem", folder / f"{name}.key")
    lock = ["-passout", f"pass:{password}"] if password else ["-noenc"]
    arguments = [
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-days", "1", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"),
        *(*lock, "-keyout", str(made.key), "-out", str(made.cert)),
    ]
    subprocess.run([openssl, *arguments], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    if expired:
        again = ["x509", "-in", str(made.cert), "-signkey", str(made.key), "-days", "-1", "-out", str(made.cert)]
        subprocess.run([openssl, *again], check=True, capture_output=True)
    return made
