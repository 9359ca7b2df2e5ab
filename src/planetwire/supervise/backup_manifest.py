"""`manifest.json` of a backup: checksums of all files and itself. Written last: a folder without it is incomplete."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planetwire import __version__
from planetwire.errors import SetupError
from planetwire.migrating.migrate import Engine, migrations
from planetwire.private import write_private

MANIFEST = "manifest.json"
FORMAT = 1
ENGINES: tuple[Engine, ...] = ("postgres", "sqlite")
NAMED_MAX = 5


def inventory(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and checksum of each file except the manifest."""
    return {
        file.relative_to(folder).as_posix(): {"bytes": file.stat().st_size, "sha256": _digest(file)}
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != MANIFEST
    }


def _digest(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def write_manifest(
    folder: Path,
    files: Mapping[str, Mapping[str, Any]],
    migrated: Mapping[str, Sequence[str]],
    *,
    halves: str,
    simulated: bool,
) -> None:
    """All other files are flushed to the disk before it. `migrated`: the applied migrations by engine."""
    for name in files:
        _flush(folder / name)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "halves": halves,
        "simulated": simulated,
        "migrations": migrated,
        "files": files,
    }
    manifest["sha256"] = _sum_of(manifest)
    building = folder / f".{MANIFEST}"
    write_private(building, json.dumps(manifest, indent=2))
    _flush(building)
    building.replace(folder / MANIFEST)
    _flush(folder)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Raises SetupError if it is no backup, is of a newer version, or was modified."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        mine = manifest.pop("sha256")
    except FileNotFoundError as error:
        raise SetupError(f"{folder} holds no backup, or one that was not finished: there is no {MANIFEST}") from error
    except (OSError, ValueError, AttributeError, KeyError) as error:
        raise SetupError(f"{folder} holds no backup: {MANIFEST} is none ({error!r})") from error
    if mine != _sum_of(manifest):
        raise SetupError(f"the backup is damaged: {MANIFEST} differs from what was saved")
    _check_version(folder, manifest)
    now = {name: entry["sha256"] for name, entry in inventory(folder).items()}
    then = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    if now != then:
        wrong = sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
        raise SetupError(f"the backup is damaged: {', '.join(wrong[:NAMED_MAX])} differ from what was saved")
    return manifest


def _check_version(folder: Path, manifest: Mapping[str, Any]) -> None:
    if manifest["format"] != FORMAT:
        raise SetupError(f"{folder} was made by version {manifest['version']} in a form that this one does not know")
    for engine in ENGINES:
        unknown = sorted(set(manifest["migrations"][engine]).difference(one.name for one in migrations(engine)))
        if unknown:
            raise SetupError(
                f"{folder} was made by a newer version ({manifest['version']}), whose schema has "
                f"{', '.join(unknown[:NAMED_MAX])}; upgrade first"
            )


def _sum_of(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
