"""Settings from the environment: `PLANETWIRE_*`, nested with `__`. A misspelt variable stops the start."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from planetwire.errors import SetupError
from planetwire.model import TaskType

PREFIX = "PLANETWIRE_"
SERVICE_LINK = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_.*)?$|_PORT_\d+_(TCP|UDP)(_.*)?$")


def default_data_dir() -> Path:
    """`$XDG_DATA_HOME/planetwire`, normally `~/.local/share/planetwire`."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "planetwire"


class Section(BaseModel):
    """A group of settings; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FeedSettings(Section):
    """One feed. Everything unset falls back to what the feed itself declares."""

    url: str | None = Field(None, description="Where to fetch from, instead of the provider's own address.")
    interval_s: float | None = Field(None, gt=0, description="Seconds between two scheduled runs.")
    floor_s: float | None = Field(None, ge=0, description="Least seconds between two requests; the provider's rule.")
    enabled: bool | None = Field(None, description="Whether the schedule runs it.")
    token: SecretStr | None = Field(None, description="Key or password of the provider.")
    max_rows_per_s: float | None = Field(None, gt=0, description="Slows writing down to spare a small database.")


class RelaySettings(Section):
    """The relay's merge window and patience."""

    merge_window_ms: float = Field(200.0, ge=0, le=10_000, description="Least time between two events of a layer.")
    poll_s: float = Field(1.0, gt=0, le=60, description="How often pending changes are looked for without a wake-up.")
    leader_ttl_s: float = Field(10.0, ge=2, le=60, description="After this long without renewal a standby takes over.")


class JobSettings(Section):
    """The worker."""

    lease_s: float = Field(30.0, ge=1, le=600, description="How long a silent worker keeps its jobs.")
    heartbeat_s: float = Field(10.0, gt=0, le=200, description="How often leases are extended.")
    concurrency: int = Field(4, ge=1, le=1_000, description="Jobs run at once by one work process.")
    batch_rows: int = Field(5_000, ge=1, le=50_000, description="Rows one transaction of a collect job commits.")
    poll_s: float = Field(1.0, gt=0, le=60, description="How often work is looked for without a wake-up.")
    collect_deadline_s: float = Field(21_600.0, ge=1, description="A collection that runs longer is ended.")
    clear_deadline_s: float = Field(21_600.0, ge=1, description="A clearing that runs longer is ended.")
    refresh_deadline_s: float = Field(300.0, ge=1, description="A cache or refresh job that runs longer is ended.")
    keep_days: float = Field(14.0, gt=0, description="How long finished jobs are kept.")
    log_hours: float = Field(24.0, gt=0, le=720, description="How long the last lines of a job's log are kept.")

    def deadline_s(self, task_type: TaskType) -> float:
        """The longest run of a job."""
        if task_type is TaskType.COLLECT:
            return self.collect_deadline_s
        return self.clear_deadline_s if task_type is TaskType.CLEAR_DATA else self.refresh_deadline_s


class StreamSettings(Section):
    """Live connections."""

    heartbeat_s: float = Field(30.0, gt=0, le=300, description="Seconds between heartbeats on every connection.")
    max_connections: int = Field(12_000, ge=1, description="Live connections in all.")
    max_per_address: int = Field(200, ge=1, description="Live connections of one address.")
    stall_s: float = Field(20.0, gt=0, description="A reader without progress for this long is cut.")


class Settings(BaseSettings):
    """All settings with their effective values."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,  # as compose files leave them: an empty address is none, not the default server
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    data_dir: Path = Field(default_factory=default_data_dir, description="Everything this installation keeps.")
    database_url: str | None = Field(None, description="Own PostgreSQL 15 or newer; unset: embedded, in the data dir.")
    database_direct_url: str | None = Field(
        None, description="Beside a DATABASE_URL that leads to PgBouncer: the server itself, to LISTEN and to migrate."
    )
    observations_url: str | None = Field(None, description="sqlite:///path or postgresql://…; unset: in the data dir.")
    redis_url: SecretStr | None = Field(
        None, description="Optional: what several web processes share – snapshots, failed sign-ins, login codes."
    )
    bus: Literal["memory", "postgres", "redis"] = Field(
        "memory", description="What joins several web processes; memory is one alone."
    )
    bus_required: bool = Field(
        False, description="While the bus is away: true refuses observations (503), false delivers within 1 s."
    )
    web_workers: int = Field(1, ge=1, le=64, description="Web processes of `up`, on one port; several need a bus.")
    changes_bus: str = Field(
        "none", description="none, or the https:// address of a webhook that gets every change of a layer."
    )
    changes_bus_secret: SecretStr | None = Field(None, description="Signs those requests; unset: generated.")
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    log_format: Literal["console", "json"] = Field("console", description="How log lines look.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level logged.")
    public_reads: bool = Field(True, description="Whether reading needs no sign-in.")
    admin_token: SecretStr | None = Field(None, description="For writes; unset: generated into the data dir.")
    ingest_token: SecretStr | None = Field(None, description="For pushed observations; unset: generated.")
    audit_keep_days: float = Field(90.0, ge=1, description="How long the audit log keeps who did what.")
    simulated: bool = Field(False, description="Set by `demo`: the page says that feeds are simulated.")
    halves: Literal["all", "earth", "terminal"] = Field("all", description="Which halves run.")
    failpoint: str | None = Field(None, description="Crash tests only: name of the point at which to die.")
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

    def feed(self, source: str) -> FeedSettings:
        """Settings of one feed, all unset when it was not mentioned."""
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
    def observations_location(self) -> str:
        """The observation store's address. Raises SetupError when two settings differ."""
        file_url = f"sqlite:///{self.polyweather_db_path}" if self.polyweather_db_path else None
        if self.observations_url and file_url and self.observations_url != file_url:
            raise SetupError(
                "PLANETWIRE_OBSERVATIONS_URL and POLYWEATHER_DB_PATH name different places; set only one of them"
            )
        return self.observations_url or file_url or f"sqlite:///{self.data_dir / 'observations.db'}"


def variable_names() -> list[str]:
    """Every variable of the environment that a setting reads, sections included (`FEEDS__*` as a prefix)."""
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
    """Settings and the ignored service-link names. Raises SetupError naming the variable at fault."""
    links = check_environment(os.environ if environ is None else environ)
    if f"{PREFIX}PORT" in links:
        overrides.setdefault("port", 8000)
    try:
        return Settings(**overrides), links
    except ValidationError as error:
        first = error.errors()[0]
        where = "__".join(str(part) for part in first["loc"]).upper()
        where = where if where.startswith((PREFIX, "POLYWEATHER_")) else PREFIX + where
        raise SetupError(f"{where}: {first['msg']}") from error


def flat(settings: Settings, *, show_secrets: bool) -> dict[str, Any]:
    """One flat object of lower-case names with effective values; secrets masked unless asked for."""
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
    return out
