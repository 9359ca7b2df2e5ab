"""The tokens and keys of this installation: from its settings, else from its data dir."""

from __future__ import annotations

from planetwire.errors import SetupError
from planetwire.settings import Settings, plain
from planetwire.supervise.datadir import DataDir
from planetwire.web.stores.tokens_file import FileTokens
from planetwire.wiring.secrets import Secrets


def secrets_of(settings: Settings) -> Secrets:
    """Tokens from the settings, else from the data dir, made at the first start."""
    data = DataDir(settings.data_dir)
    data.prepare()
    secrets = Secrets(
        admin_token=plain(settings.admin_token) or data.secret("admin.token"),
        ingest_token=plain(settings.ingest_token) or data.secret("ingest.token"),
        session_key=data.secret("session.key").encode(),
        changes_bus=plain(settings.changes_bus_secret) or data.secret("changes.bus.secret"),
    )
    _check_different(settings, secrets)
    FileTokens(settings.tokens_file).records()
    return secrets


def _check_different(settings: Settings, secrets: Secrets) -> None:
    """Raises SetupError if two roles share a token: the holder of the lesser role would have the greater."""
    tokens = {
        "ADMIN_TOKEN": secrets.admin_token,
        "OPERATOR_TOKEN": plain(settings.operator_token),
        "VIEWER_TOKEN": plain(settings.viewer_token),
        "INGEST_TOKEN": secrets.ingest_token,
    }
    seen: dict[str, str] = {}
    for name, token in tokens.items():
        if token is not None and seen.setdefault(token, name) != name:
            raise SetupError(f"PLANETWIRE_{seen[token]} and PLANETWIRE_{name} are the same; give each role its own")
