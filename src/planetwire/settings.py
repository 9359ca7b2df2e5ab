"""Settings from the environment: `PLANETWIRE_*`, nested with `__`. A misspelt variable fails the start."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from planetwire.errors import SetupError
from planetwire.model import Lane, TaskType
from planetwire.setting_texts import HEADER, is_loopback, networks, role_mapping, secret_fault
from planetwire.text.masks import masked

PREFIX = "PLANETWIRE_"
SERVICE_LINK = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_.*)?$|_PORT_\d+_(TCP|UDP)(_.*)?$")


def default_data_dir() -> Path:
    """`$XDG_DATA_HOME/planetwire`, normally `~/.local/share/planetwire`."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "planetwire"


class Section(BaseModel):
    """A group of settings; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FeedSettings(Section):
    """One feed. Unset values fall back to the feed's own declaration."""

    url: str | None = Field(
        None, description="Address to fetch from instead of the provider's own; required for a feed without one."
    )
    interval_s: float | None = Field(None, gt=0, description="Seconds between two scheduled runs.")
    floor_s: float | None = Field(None, ge=0, description="Minimum seconds between two requests; the provider's rule.")
    enabled: bool | None = Field(None, description="Whether the feed is scheduled.")
    token: SecretStr | None = Field(
        None, description="Key for the provider, sent as the feed declares; to a URL of your own as a Bearer token."
    )
    deadline_s: float | None = Field(
        None, gt=0, le=3_600, description="Longest fetch, from connecting to the last byte; unset: 300."
    )
    max_body_bytes: int | None = Field(
        None, ge=1, le=2**30, description="Largest body, as sent and unpacked; unset: 16 MiB. Memory grows with it."
    )
    max_rows_per_s: float | None = Field(None, gt=0, description="Limits writes, to spare a small database.")


class RelaySettings(Section):
    """The relay's merge window and timing."""

    merge_window_ms: float = Field(200.0, ge=0, le=10_000, description="Minimum time between two events of a layer.")
    poll_s: float = Field(1.0, gt=0, le=60, description="How often pending changes are polled without a wake-up.")
    leader_ttl_s: float = Field(10.0, ge=2, le=60, description="Without renewal for this long, a standby takes over.")


class JobSettings(Section):
    """The worker."""

    lease_s: float = Field(30.0, ge=1, le=600, description="How long a silent worker keeps its jobs.")
    heartbeat_s: float = Field(10.0, gt=0, le=200, description="How often leases are extended.")
    concurrency: int = Field(4, ge=1, le=1_000, description="Jobs run at once by one work process.")
    batch_rows: int = Field(5_000, ge=1, le=50_000, description="Rows one transaction of a collect job commits.")
    poll_s: float = Field(1.0, gt=0, le=60, description="How often jobs are polled without a wake-up.")
    collect_deadline_s: float = Field(21_600.0, ge=1, description="A collection that runs longer is ended.")
    clear_deadline_s: float = Field(21_600.0, ge=1, description="A clearing that runs longer is ended.")
    refresh_deadline_s: float = Field(300.0, ge=1, description="A cache or refresh job that runs longer is ended.")
    keep_days: float = Field(14.0, gt=0, description="How long finished jobs are kept.")
    log_hours: float = Field(24.0, gt=0, le=720, description="How long the last lines of a job's log are kept.")

    def deadline_s(self, task_type: TaskType) -> float:
        """The maximum run time of a job."""
        match task_type.lane:
            case Lane.FILL:
                return self.collect_deadline_s
            case Lane.CLEAR:
                return self.clear_deadline_s
            case Lane.FREE:
                return self.refresh_deadline_s


class MigrationSettings(Section):
    """Time limits of migrations of PostgreSQL's schema."""

    timeout_s: float = Field(3_600.0, gt=0, le=604_800, description="A migration that takes longer is rolled back.")
    lock_timeout_s: float = Field(
        5.0, gt=0, le=600, description="How long one try waits for a table in use; others queue behind it."
    )
    lock_wait_s: float = Field(
        300.0, ge=0, le=86_400, description="For how long a migration blocked by a table in use is retried."
    )


class StreamSettings(Section):
    """Live connections."""

    heartbeat_s: float = Field(30.0, gt=0, le=300, description="Seconds between heartbeats on every connection.")
    max_connections: int = Field(12_000, ge=1, description="Live connections in total.")
    max_per_address: int = Field(200, ge=1, description="Live connections per address.")
    stall_s: float = Field(20.0, gt=0, description="A reader without progress for this long is cut.")


PLAIN_OFF = (  # where PLAIN_HTTP is set
    "no time limits for heads and bodies, no limit while a head comes, no place kept for health when descriptors run"
    " out, no bound of kernel memory for each reader; streams and pushes cost more"
)


class RequestSettings(Section):
    """Limits on the size and duration of a request, enforced before it is handled."""

    header_bytes: int = Field(32 * 1024, ge=1024, le=1024 * 1024, description="Request line and headers together.")
    header_lines: int = Field(128, ge=16, le=1_000, description="Header lines of a request.")
    url_bytes: int = Field(8 * 1024, ge=256, le=64 * 1024, description="Path and query of a request.")
    body_bytes: int = Field(64 * 1024, ge=1024, le=1024 * 1024, description="A body, but for pushed readings (2 MiB).")
    header_s: float = Field(10.0, gt=0, le=600, description="From the connection to the end of the headers.")
    body_s: float = Field(30.0, gt=0, le=3_600, description="From the end of the headers to the end of the body.")
    idle_s: float = Field(60.0, gt=0, le=3_600, description="How long a connection may stay idle.")
    reserved_descriptors: int = Field(16, ge=4, le=1_000, description="Reserved for health checks and accepted work.")


class LimitSettings(Section):
    """Rate limits per address; web processes that share a Redis count together."""

    sign_in_failures: int = Field(10, ge=1, description="Wrong secrets and login codes per address and minute.")
    ingest_per_minute: int = Field(120_000, ge=1, description="Pushes of observations per address and minute.")
    openings_per_minute: int = Field(1_200, ge=1, description="Live connections opened per address and minute.")


class Settings(BaseSettings):
    """All settings with their effective values."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,  # as compose files leave them: an empty address means none, not the default server
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    data_dir: Path = Field(default_factory=default_data_dir, description="Folder of all data of this installation.")
    database_url: str | None = Field(None, description="Own PostgreSQL 15 or newer; unset: embedded, in the data dir.")
    database_direct_url: str | None = Field(
        None, description="If DATABASE_URL leads to PgBouncer: the server itself, for LISTEN and migrations."
    )
    observations_url: str | None = Field(None, description="sqlite:///path or postgresql://…; unset: in the data dir.")
    redis_url: SecretStr | None = Field(
        None, description="Optional: shares snapshots, sessions, login codes and limits between web processes."
    )
    bus: str = Field("memory", description="Connects several web processes: redis or postgres; memory: a single one.")
    bus_required: bool = Field(
        False, description="While the bus is down: true refuses observations (503), false delivers within 1 s."
    )
    web_workers: int = Field(1, ge=1, le=64, description="Web processes of `up`, on one port; several need a bus.")
    changes_bus: str = Field(
        "none", description="none, or the https:// address of a webhook that receives every change of a layer."
    )
    changes_bus_secret: SecretStr | None = Field(None, description="Signs those requests; unset: generated.")
    sources_private: bool = Field(
        False, description="Whether a declared source may be asked at an address of this machine or a private network."
    )
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    allowed_hosts: str = Field(
        "",
        description="Host names that browsers use, comma-separated, `*.example.org` for all subdomains;"
        " loopback names and IP addresses always work.",
    )
    tls_cert: Path | None = Field(None, description="Certificate chain (PEM), to serve HTTPS directly; with TLS_KEY.")
    tls_key: Path | None = Field(None, description="Its private key (PEM), without a password.")
    plain_http: bool = Field(
        False, description="Serves with uvicorn's own protocol: slower, fewer limits, independent of its internals."
    )
    log_format: Literal["console", "json"] = Field("console", description="Format of log lines.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Minimum level logged.")
    public_reads: bool = Field(True, description="Whether reading needs no sign-in.")
    public_diagnostics: bool | None = Field(
        None, description="Whether diagnostics, metrics and error texts need no sign-in; unset: on a loopback HOST."
    )
    admin_token: SecretStr | None = Field(None, description="Role admin; unset: generated into the data dir.")
    operator_token: SecretStr | None = Field(None, description="Role operator (jobs, sources); unset: none.")
    viewer_token: SecretStr | None = Field(None, description="Role viewer, for reads that need a sign-in; unset: none.")
    ingest_token: SecretStr | None = Field(None, description="For pushed observations; unset: generated.")
    trusted_proxies: str = Field(
        "", description="Addresses and networks of reverse proxies whose X-Forwarded-For is trusted, comma-separated."
    )
    proxy_user_header: str | None = Field(
        None, description="Header in which a trusted proxy names the signed-in user, such as Remote-User."
    )
    proxy_role_header: str | None = Field(
        None, description="Header with the user's groups or role; unset: PROXY_ROLES maps users."
    )
    proxy_roles: str = Field(
        "", description="Roles of those users or groups: `alice=admin, ops=operator, *=viewer`; others: viewer."
    )
    audit_keep_days: float = Field(90.0, ge=1, description="How long audit log entries are kept.")
    disk_budget_gb: float | None = Field(
        None,
        gt=0,
        description="Size limit of the data dir, in GB; near it, all but the facts is kept for less time. Unset: none.",
    )
    simulated: bool = Field(False, description="Set by `demo`: the page shows that feeds are simulated.")
    halves: Literal["all", "earth", "terminal"] = Field("all", description="Which halves run.")
    failpoint: str | None = Field(None, description="Crash tests only: name of the point at which to crash.")
    pg_bin: Path | None = Field(None, description="Folder of PostgreSQL binaries, instead of the packaged ones.")
    patch_event_retention_hours: float = Field(
        6.0,
        gt=0,
        validation_alias=AliasChoices(
            "POLYWEATHER_PATCH_EVENT_RETENTION_HOURS", "PLANETWIRE_PATCH_EVENT_RETENTION_HOURS"
        ),
        description="How long patch events can be replayed.",
    )
    polyweather_db_path: Path | None = Field(
        None, validation_alias=AliasChoices("POLYWEATHER_DB_PATH"), description="Older name of the observation file."
    )
    feeds: dict[str, FeedSettings] = Field(default_factory=dict, description="Per feed, by source name.")
    jobs: JobSettings = Field(default_factory=JobSettings)
    relay: RelaySettings = Field(default_factory=RelaySettings)
    stream: StreamSettings = Field(default_factory=StreamSettings)
    migration: MigrationSettings = Field(default_factory=MigrationSettings)
    requests: RequestSettings = Field(default_factory=RequestSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)

    @field_validator("admin_token", "operator_token", "viewer_token", "ingest_token", "changes_bus_secret")
    @classmethod
    def _long_enough(cls, secret: SecretStr | None) -> SecretStr | None:
        fault = secret_fault(secret.get_secret_value()) if secret is not None else None
        if fault is not None:
            raise ValueError(fault)
        return secret

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, text: str) -> str:
        networks(text)
        return text

    @field_validator("proxy_roles")
    @classmethod
    def _are_roles(cls, text: str) -> str:
        role_mapping(text)
        return text

    @field_validator("proxy_user_header", "proxy_role_header")
    @classmethod
    def _is_header(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name is not None and not HEADER.fullmatch(name.strip()):
            raise ValueError("this is no name of a header")
        if name is not None and not info.data.get("trusted_proxies"):
            raise ValueError("it is believed from PLANETWIRE_TRUSTED_PROXIES alone, which is unset")
        return name

    @property
    def diagnostics_are_public(self) -> bool:
        """If unset, depends on whether only this machine can connect."""
        return is_loopback(self.host) if self.public_diagnostics is None else self.public_diagnostics

    def feed(self, source: str) -> FeedSettings:
        """Settings of one feed; all unset if none was given."""
        return self.feeds.get(source, FeedSettings())

    @property
    def earth(self) -> bool:
        """Whether the Earth half runs."""
        return self.halves in ("all", "earth")

    @property
    def terminal(self) -> bool:
        """Whether the Terminal half runs."""
        return self.halves in ("all", "terminal")

    @property
    def tokens_file(self) -> Path:
        """The file of named tokens."""
        return self.data_dir / "tokens.json"

    @property
    def observations_location(self) -> str:
        """The observation store's address. Raises SetupError when two settings differ."""
        file_url = f"sqlite:///{self.polyweather_db_path}" if self.polyweather_db_path else None
        if self.observations_url and file_url and self.observations_url != file_url:
            raise SetupError(
                "PLANETWIRE_OBSERVATIONS_URL and POLYWEATHER_DB_PATH name different places; set only one of them"
            )
        return self.observations_url or file_url or f"sqlite:///{self.data_dir / 'observations.db'}"


def plain(secret: SecretStr | None) -> str | None:
    """The secret's text."""
    return secret.get_secret_value() if secret is not None else None


def variable_names() -> list[str]:
    """Every environment variable that a setting reads, including sections (`FEEDS__*` as a prefix)."""
    names: list[str] = []
    for name, field in Settings.model_fields.items():
        if isinstance(field.validation_alias, AliasChoices):
            names += [str(choice) for choice in field.validation_alias.choices]
        elif isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            names += [f"{PREFIX}{name}__{key}".upper() for key in field.annotation.model_fields]
        else:
            names.append(f"{PREFIX}{name}".upper())
    return names


def _is_feed_variable(name: str) -> bool:
    source, _, key = name.removeprefix(f"{PREFIX}FEEDS__").partition("__")
    return name.startswith(f"{PREFIX}FEEDS__") and bool(source) and key.lower() in FeedSettings.model_fields


def _is_service_link(name: str, value: str) -> bool:
    return bool(SERVICE_LINK.search(name)) or (name == f"{PREFIX}PORT" and value.startswith("tcp://"))


def check_environment(environ: Mapping[str, str]) -> list[str]:
    """Names of ignored service-link variables. Raises SetupError for an unknown `PLANETWIRE_*` variable."""
    known = {name.upper() for name in variable_names()}
    links: list[str] = []
    for name, value in environ.items():
        upper = name.upper()
        if not upper.startswith(PREFIX):
            continue
        if _is_service_link(upper, value):
            links.append(name)
        elif upper not in known and not _is_feed_variable(upper):
            raise SetupError(f"unknown setting {name}{_nearest(upper, known)}")
    return links


def _nearest(name: str, known: Iterable[str]) -> str:
    if name.startswith(f"{PREFIX}FEEDS__"):
        source = name.removeprefix(f"{PREFIX}FEEDS__").partition("__")[0]
        known = [f"{PREFIX}FEEDS__{source}__{field}".upper() for field in FeedSettings.model_fields]
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)
    return f"; did you mean {close[0]}?" if close else ""


def load_settings(environ: Mapping[str, str] | None = None, **overrides: Any) -> tuple[Settings, list[str]]:
    """Settings and the ignored service-link names. Raises SetupError naming the invalid variable."""
    links = check_environment(os.environ if environ is None else environ)
    if f"{PREFIX}PORT" in links:
        overrides.setdefault("port", 8000)
    try:
        return Settings(**overrides), links
    except ValidationError as error:
        first = error.errors()[0]
        where = "__".join(str(part) for part in first["loc"]).upper()
        where = where if where.startswith((PREFIX, "POLYWEATHER_")) else PREFIX + where
        raise SetupError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None  # it would show the value


def flat(settings: Settings, *, show_secrets: bool) -> dict[str, Any]:
    """One flat object of lower-case names with effective values; secrets and passwords masked unless requested."""
    out: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, BaseModel):
            for key in type(value).model_fields:
                walk(f"{prefix}__{key}" if prefix else key, getattr(value, key))
        elif isinstance(value, dict):
            for key, item in value.items():
                walk(f"{prefix}__{key}", item)
        elif isinstance(value, SecretStr):
            out[prefix] = value.get_secret_value() if show_secrets else "***"
        else:
            out[prefix] = str(value) if isinstance(value, Path) else value

    walk("", settings)
    out["observations_url"] = settings.observations_location
    if not show_secrets:
        out = {name: masked(value) if isinstance(value, str) else value for name, value in out.items()}
    return out
