"""`backup` and `restore`: saves a running installation to one folder, and restores it on any machine.

A part is copied before the parts that it refers to. First the feeds' records of delivered readings and the acts not yet
in the database; then the database, whose cursors point into the observation log; then that log. So no cursor points
beyond the log that was saved with it, and nothing counts as delivered that is missing.

An incomplete copy is never taken for a complete one: a backup without `manifest.json` is invalid, and a data dir with
the mark of an unfinished restore does not start.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import string
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from planetwire.database.postgres import connect, connected
from planetwire.errors import PlanetwireError, SetupError
from planetwire.facts.sqlite import backup_sqlite
from planetwire.log import get_logger
from planetwire.migrating.migrate import applied_postgres, applied_sqlite
from planetwire.outbox.upkeep.backup_postgres import begin_new_life, is_empty
from planetwire.private import write_private
from planetwire.runtime.failpoint import arm, failpoint
from planetwire.settings import PREFIX, Settings
from planetwire.supervise.backup_manifest import inventory, read_manifest, write_manifest
from planetwire.supervise.databases import database_while, embedded_while, follow_tables, has_database, saved_file
from planetwire.supervise.datadir import DataDir
from planetwire.supervise.embedded_postgres import SUPERUSER, dsn_of, find_binaries
from planetwire.supervise.installation import migrate

log = get_logger()

DUMP, READINGS = "database.dump", "observations.db"
SECRETS = ("admin.token", "ingest.token", "session.key", "changes.bus.secret")
TOKENS = "tokens.json"
FOLDERS = ("feeds", "bodies", "audit")  # state of the feeds, their last bodies, and the audit log without a database
SEED_PREFIX = "POLYWEATHER_"
EPOCH_CHARS = 12
DUMP_TIMEOUT_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Report:
    """What was saved or restored: files with their sizes, and settings of the backup that are not set now."""

    files: dict[str, int]
    unset: tuple[str, ...] = ()


def save(settings: Settings, folder: Path) -> Report:
    """Save the installation, running or not, to a new or empty folder. Raises SetupError."""
    arm(settings.failpoint)
    _check_new(folder)
    DataDir(settings.data_dir).check_whole()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.chmod(folder, 0o700)
    try:
        return _save(settings, DataDir(settings.data_dir), folder)
    except BaseException:  # a full disk, say: the partial copy is useless and would block the next try
        _remove(list(folder.iterdir()))
        raise


def _save(settings: Settings, data: DataDir, folder: Path) -> Report:
    readings = saved_file(settings)
    _copy_folders(data.path, folder, ("feeds", "audit"))
    migrated: dict[str, list[str]] = {"postgres": [], "sqlite": []}
    if settings.earth and has_database(settings):
        with database_while(settings) as dsn:
            migrated["postgres"] = asyncio.run(_applied(dsn))
            _run_tool(settings, "pg_dump", "--format=custom", "--schema=public", "--file", folder / DUMP, dsn)
    failpoint("backup.dumped")
    if readings is not None and readings.exists():
        backup_sqlite.copy_file(readings, folder / READINGS)
        migrated["sqlite"] = sorted(applied_sqlite(folder / READINGS))
    _copy_kept(data, folder)
    environment = {name: text for name, text in sorted(os.environ.items()) if name.startswith((PREFIX, SEED_PREFIX))}
    write_private(folder / "settings.json", json.dumps(environment, indent=2))
    files = inventory(folder)
    if not {DUMP, READINGS} & files.keys():
        raise SetupError(f"there is nothing to save in {settings.data_dir}")
    simulated = (data.path / "simulated").exists()
    write_manifest(folder, files, migrated, halves=settings.halves, simulated=simulated)
    return Report({name: entry["bytes"] for name, entry in files.items()})


async def _applied(dsn: str) -> list[str]:
    async with connected(dsn, application="backup") as connection:
        return sorted(await applied_postgres(connection))


def bring_back(settings: Settings, folder: Path) -> Report:
    """Restore a backup into this data dir (and database), which must be empty. Raises SetupError."""
    arm(settings.failpoint)
    manifest = read_manifest(folder)
    data = DataDir(settings.data_dir)
    data.check_whole()
    readings = saved_file(settings)
    if data.is_running():
        raise SetupError(f"Planetwire runs on {settings.data_dir}; stop it first")
    for kept in (data.path / "postgres", data.path / "observations.db", *([readings] if readings else [])):
        if kept.exists():
            raise SetupError(f"{kept} is there already; restore goes into an empty data dir")
    if (folder / DUMP).exists() and settings.database_url is not None:
        asyncio.run(_refuse_filled(settings.database_direct_url or settings.database_url))
    data.prepare()
    before = _files(data, readings)
    data.check_kind(simulated=bool(manifest["simulated"]))
    data.restoring.touch(0o600)
    try:
        if (folder / DUMP).exists():
            _restore_database(settings, folder)
        if readings is not None and (folder / READINGS).exists():
            _restore_readings(folder, readings)
        failpoint("restore.filled")
        _bring_kept(data, folder)
    except BaseException:
        if _is_as_it_was(settings):  # else the mark stays: an external database must be emptied by its owner
            _remove(_files(data, readings) - before)
            data.restoring.unlink()
        raise
    data.restoring.unlink()
    then = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    unset = tuple(name for name in then if name not in os.environ and not name.endswith("_DATA_DIR"))
    return Report({name: entry["bytes"] for name, entry in manifest["files"].items()}, unset)


def _files(data: DataDir, readings: Path | None) -> set[Path]:
    """Existing files that a restore may have created."""
    named = {data.path / name for name in (*SECRETS, TOKENS, "postgres", "simulated")}
    named |= {file for name in FOLDERS for file in (data.path / name).glob("*")}
    named |= {readings, _building(readings)} if readings is not None else set()
    return {path for path in named if path.exists()}


def _is_as_it_was(settings: Settings) -> bool:
    """Whether an external database is still empty: it is unless a step after the dump's one transaction failed."""
    if settings.database_url is None:
        return True
    try:
        asyncio.run(_refuse_filled(settings.database_direct_url or settings.database_url))
    except PlanetwireError:
        return False
    return True


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


# --- the database -------------------------------------------------------------------------------------


def _restore_database(settings: Settings, folder: Path) -> None:
    if settings.database_url is not None:
        _load(settings, folder, settings.database_direct_url or settings.database_url)
        return
    with embedded_while(settings) as postgres:
        _load(settings, folder, postgres.dsn)
        asyncio.run(follow_tables(dsn_of(postgres.socket_dir, SUPERUSER)))


def _load(settings: Settings, folder: Path, dsn: str) -> None:
    """Load the dump into an empty database, set a new epoch, and apply migrations that are newer than the dump."""
    asyncio.run(_refuse_filled(dsn))
    listed = _run_tool(settings, "pg_restore", "--list", folder / DUMP)
    wanted = "\n".join(line for line in listed.splitlines() if " SCHEMA - public " not in line)
    order = DataDir(settings.data_dir).run / "restore-order"  # not next to the dump: its folder may be read-only
    write_private(order, wanted)
    try:
        flags = ("--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction", "--use-list", order)
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


def _restore_readings(folder: Path, readings: Path) -> None:
    readings.parent.mkdir(parents=True, exist_ok=True)
    building = _building(readings)
    shutil.copyfile(folder / READINGS, building)
    os.chmod(building, 0o600)
    backup_sqlite.begin_new_life(building, _epoch())
    building.replace(readings)


def _building(readings: Path) -> Path:
    return readings.with_name(f".{readings.name}.restored")


def _copy_kept(data: DataDir, folder: Path) -> None:
    for name in SECRETS:
        kept = data.kept_secret(name)
        if kept is not None:
            write_private(folder / name, kept + "\n")
    if (data.path / TOKENS).exists():
        write_private(folder / TOKENS, (data.path / TOKENS).read_text(encoding="utf-8"))
    _copy_folders(data.path, folder, ("bodies",))


def _copy_folders(source: Path, target: Path, names: Sequence[str]) -> None:
    for name in names:
        for file in sorted((source / name).glob("*")):
            if file.is_file() and not file.name.startswith("."):
                (target / name).mkdir(exist_ok=True, mode=0o700)
                shutil.copy(file, target / name / file.name)


def _bring_kept(data: DataDir, folder: Path) -> None:
    for name in SECRETS:
        if (folder / name).exists():
            write_private(data.path / name, (folder / name).read_text(encoding="ascii"))
    if (folder / TOKENS).exists():
        write_private(data.path / TOKENS, (folder / TOKENS).read_text(encoding="utf-8"))
    _copy_folders(folder, data.path, FOLDERS)


# --- the backup's folder ------------------------------------------------------------------------------


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SetupError(f"{folder} is there already and not empty; a backup goes into a new folder")


def _epoch() -> str:
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(EPOCH_CHARS))
