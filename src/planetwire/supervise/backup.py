"""`backup` and `restore`: an installation in one folder, taken while it runs, brought back anywhere.

What one part says of another is older than that other: the database, whose cursors point into the observation log, is
taken first, the observation file after it. So a cursor never points beyond the log that was saved with it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import shutil
import string
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planetwire import __version__
from planetwire.diagnosing import follow_tables
from planetwire.errors import SetupError
from planetwire.facts import backup_sqlite
from planetwire.log import get_logger
from planetwire.migrate import migrations
from planetwire.outbox.backup_postgres import begin_new_life, is_empty
from planetwire.postgres import connect
from planetwire.settings import PREFIX, Settings
from planetwire.storing import DATABASE, FILE
from planetwire.supervise.datadir import DataDir, write_private
from planetwire.supervise.embedded_postgres import SUPERUSER, EmbeddedPostgres, dsn_of, find_binaries
from planetwire.supervise.installation import migrate

log = get_logger()

FORMAT = 1
MANIFEST, DUMP, READINGS = "manifest.json", "database.dump", "observations.db"
SECRETS = ("admin.token", "ingest.token", "session.key", "changes.bus.secret")
TOKENS = "tokens.json"
FOLDERS = ("feeds", "bodies", "audit")  # what feeds know, their last bodies, and who did what without a database
SEED_PREFIX = "POLYWEATHER_"
EPOCH_CHARS = 12
DUMP_TIMEOUT_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Told:
    """What was saved or brought back: files and their bytes, and settings of then that are not set now."""

    files: dict[str, int]
    unset: tuple[str, ...] = ()


def save(settings: Settings, folder: Path) -> Told:
    """Everything of the installation, running or not, into a folder that is new or empty. Raises SetupError."""
    _check_new(folder)
    data = DataDir(settings.data_dir)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.chmod(folder, 0o700)
    if settings.earth:
        with _database(settings) as dsn:
            _run_tool(settings, "pg_dump", "--format=custom", "--schema=public", "--file", folder / DUMP, dsn)
    readings = _readings(settings)
    if readings is not None and readings.exists():
        backup_sqlite.copy_file(readings, folder / READINGS)
    _copy_kept(data, folder)
    environment = {name: text for name, text in sorted(os.environ.items()) if name.startswith((PREFIX, SEED_PREFIX))}
    write_private(folder / "settings.json", json.dumps(environment, indent=2))
    files = _inventory(folder)
    if not {DUMP, READINGS} & files.keys():
        raise SetupError(f"there is nothing to save in {settings.data_dir}")
    _write_manifest(settings, data, folder, files)
    return Told({name: entry["bytes"] for name, entry in files.items()})


def bring_back(settings: Settings, folder: Path) -> Told:
    """A saved installation into this data dir (and database), which must be empty. Raises SetupError."""
    manifest = _read_manifest(folder)
    data = DataDir(settings.data_dir)
    readings = _readings(settings)
    if data.is_running():
        raise SetupError(f"Planetwire runs on {settings.data_dir}; stop it first")
    for kept in (data.path / "postgres", data.path / "observations.db", *([readings] if readings else [])):
        if kept.exists():
            raise SetupError(f"{kept} is there already; restore goes into an empty data dir")
    data.prepare()
    data.check_kind(simulated=bool(manifest["simulated"]))
    if (folder / DUMP).exists():
        _restore_database(settings, folder)
    if readings is not None and (folder / READINGS).exists():
        _restore_readings(folder, readings)
    _bring_kept(data, folder)
    then = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    unset = tuple(name for name in then if name not in os.environ and not name.endswith("_DATA_DIR"))
    return Told({name: entry["bytes"] for name, entry in manifest["files"].items()}, unset)


# --- the database -------------------------------------------------------------------------------------


@contextmanager
def _database(settings: Settings) -> Iterator[str]:
    """Its address; an embedded server that does not run is started for as long as this takes."""
    data = DataDir(settings.data_dir)
    running = data.runtime() if data.is_running() else None
    if settings.database_url is not None:
        yield settings.database_direct_url or settings.database_url
    elif running and running.get("database_url"):
        yield str(running["database_url"])
    else:
        with _embedded(settings) as postgres:
            yield postgres.dsn


@contextmanager
def _embedded(settings: Settings) -> Iterator[EmbeddedPostgres]:
    postgres = EmbeddedPostgres(settings.data_dir, settings.pg_bin)
    postgres.start()
    try:
        yield postgres
    finally:
        postgres.stop()


def _restore_database(settings: Settings, folder: Path) -> None:
    if settings.database_url is not None:
        _load(settings, folder, settings.database_direct_url or settings.database_url)
        return
    with _embedded(settings) as postgres:
        _load(settings, folder, postgres.dsn)
        asyncio.run(follow_tables(dsn_of(postgres.socket_dir, SUPERUSER)))


def _load(settings: Settings, folder: Path, dsn: str) -> None:
    """The dump into an empty database, its new epoch, and the migrations that this version has more."""
    asyncio.run(_refuse_filled(dsn))
    listed = _run_tool(settings, "pg_restore", "--list", folder / DUMP)
    wanted = "\n".join(line for line in listed.splitlines() if " SCHEMA - public " not in line)
    order = folder / ".order"
    write_private(order, wanted)
    try:
        flags = ("--no-owner", "--no-privileges", "--exit-on-error", "--use-list", order)
        _run_tool(settings, "pg_restore", *flags, "--dbname", dsn, folder / DUMP)
    finally:
        order.unlink(missing_ok=True)
    asyncio.run(migrate(dsn))
    asyncio.run(_renew(dsn))


async def _refuse_filled(dsn: str) -> None:
    connection = await connect(dsn, application="restore")
    try:
        if not await is_empty(connection):
            raise SetupError("the database is not empty; restore goes into an empty one")
    finally:
        await connection.close()


async def _renew(dsn: str) -> None:
    connection = await connect(dsn, application="restore")
    try:
        await begin_new_life(connection, _epoch(), _epoch())
    finally:
        await connection.close()


def _run_tool(settings: Settings, name: str, *arguments: str | Path) -> str:
    tool = find_binaries(settings.pg_bin) / name
    if not tool.exists():
        raise SetupError(f"{name} is not beside the PostgreSQL binaries; PLANETWIRE_PG_BIN names a folder that has it")
    done = subprocess.run(
        [tool, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=DUMP_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise SetupError(f"{name} failed: {done.stderr.strip()[-500:]}")
    return done.stdout


# --- readings and small files -------------------------------------------------------------------------


def _readings(settings: Settings) -> Path | None:
    """The observation file; None where readings lie in PostgreSQL."""
    location = settings.observations_location
    if location.startswith(FILE):
        return Path(location.removeprefix(FILE))
    if settings.earth and location == settings.database_url:
        return None
    assert location.startswith(DATABASE)
    raise SetupError("readings lie in a database of their own: save that one with pg_dump, beside this")


def _restore_readings(folder: Path, readings: Path) -> None:
    readings.parent.mkdir(parents=True, exist_ok=True)
    building = readings.with_name(f".{readings.name}.restored")
    shutil.copyfile(folder / READINGS, building)
    os.chmod(building, 0o600)
    backup_sqlite.begin_new_life(building, _epoch())
    building.replace(readings)


def _copy_kept(data: DataDir, folder: Path) -> None:
    for name in SECRETS:
        kept = data.kept_secret(name)
        if kept is not None:
            write_private(folder / name, kept + "\n")
    if (data.path / TOKENS).exists():
        write_private(folder / TOKENS, (data.path / TOKENS).read_text(encoding="utf-8"))
    for name in FOLDERS:
        for file in sorted((data.path / name).glob("*")):
            if file.is_file() and not file.name.startswith("."):
                (folder / name).mkdir(exist_ok=True, mode=0o700)
                shutil.copy(file, folder / name / file.name)


def _bring_kept(data: DataDir, folder: Path) -> None:
    for name in SECRETS:
        if (folder / name).exists():
            write_private(data.path / name, (folder / name).read_text(encoding="ascii"))
    if (folder / TOKENS).exists():
        write_private(data.path / TOKENS, (folder / TOKENS).read_text(encoding="utf-8"))
    for name in FOLDERS:
        for file in sorted((folder / name).glob("*")):
            (data.path / name).mkdir(exist_ok=True, mode=0o700)
            shutil.copy(file, data.path / name / file.name)


# --- what the folder says of itself -------------------------------------------------------------------


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SetupError(f"{folder} is there already and not empty; a backup goes into a new folder")


def _inventory(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        file.relative_to(folder).as_posix(): {"bytes": file.stat().st_size, "sha256": _digest(file)}
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != MANIFEST
    }


def _digest(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _write_manifest(settings: Settings, data: DataDir, folder: Path, files: dict[str, dict[str, Any]]) -> None:
    said = {
        "format": FORMAT,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "halves": settings.halves,
        "simulated": (data.path / "simulated").exists(),
        "migrations": [migration.name for migration in migrations("postgres")],
        "files": files,
    }
    write_private(folder / MANIFEST, json.dumps(said, indent=2))


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Raises SetupError for what is no backup, for one of a newer version, and for one whose files changed."""
    try:
        said: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SetupError(f"{folder} holds no backup: {error}") from error
    known = {migration.name for migration in migrations("postgres")}
    if said.get("format") != FORMAT or not set(said.get("migrations", ())) <= known:
        raise SetupError(f"{folder} was made by a newer version ({said.get('version')}); upgrade first")
    now = {name: entry["sha256"] for name, entry in _inventory(folder).items()}
    then = {name: entry["sha256"] for name, entry in said["files"].items()}
    if now != then:
        wrong = sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
        raise SetupError(f"the backup is damaged: {', '.join(wrong[:5])} differ from what was saved")
    return said


def _epoch() -> str:
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(EPOCH_CHARS))
