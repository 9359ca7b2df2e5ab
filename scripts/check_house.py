"""Checks the limits and the vocabulary of this repository: prints each finding and exits 1."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "planetwire"
FILE_LINES_MAX = 500
PORT_METHODS_MAX = 7
ARCHITECTURE_LINES_MAX = 200
SAME_PREFIX_MAX = 12  # files `feed_*` in one folder; more need a folder of their own
ROOT_MODULES_MAX = 12  # of the package itself
FOLDER_MODULES_MAX = 15  # beside `__init__.py`
# File → reason. Generated files, fixtures and lock files are exempt by name below.
LONG_FILES: dict[str, str] = {}
EXEMPT = re.compile(
    r"(package-lock\.json|\.lock|schema\.d\.ts|\.json|\.csv|\.txt|\.md|\.svg|/fixtures/|/samples/|_schema/head)"
)
# Paths of one machine, package hosts, and personal notes do not belong in the repository.
FOREIGN = re.compile(
    r"(?<![\w.])/(?:work|home|farm)/\w|registry\.npmjs\.org|files\.pythonhosted\.org|pypi\.org/simple|\bFIXME\b|\bXXX\b"
)


def tracked() -> list[Path]:
    """Files under version control, or not ignored by it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def long_files(files: list[Path]) -> list[str]:
    """Source files over the limit without a reason."""
    out = []
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        if file.suffix in {".py", ".ts", ".tsx", ".sql", ".css"} and not EXEMPT.search(name):
            lines = len(file.read_text(encoding="utf-8").splitlines())
            if lines > FILE_LINES_MAX and name not in LONG_FILES:
                out.append(f"{name}: {lines} lines, at most {FILE_LINES_MAX}")
    return out


def wide_ports() -> list[str]:
    """Protocols anywhere with more methods than a backend should have to implement."""
    out = []
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any(_is_protocol(base) for base in node.bases):
                methods = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
                if len(methods) > PORT_METHODS_MAX:
                    out.append(
                        f"{file.relative_to(ROOT)}: {node.name} has {len(methods)} methods, at most {PORT_METHODS_MAX}"
                    )
    return out


def _is_protocol(base: ast.expr) -> bool:
    """`Protocol`, `Protocol[T]`, and `typing.Protocol`."""
    named = base.value if isinstance(base, ast.Subscript) else base
    return (named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")) == "Protocol"


def deep_files(files: list[Path]) -> list[str]:
    """`planetwire/stage/room/file.py` and no deeper; data folders excepted."""
    return [
        f"{file.relative_to(ROOT)}: deeper than planetwire/stage/room/file"
        for file in files
        if file.suffix == ".py" and file.is_relative_to(PACKAGE) and len(file.relative_to(PACKAGE).parts) > 3
    ]


def full_folders(files: list[Path]) -> list[str]:
    """Folders with too many modules."""
    counts = Counter(
        file.parent
        for file in files
        if file.suffix == ".py" and file.is_relative_to(PACKAGE) and file.name != "__init__.py"
    )
    most = {folder: ROOT_MODULES_MAX - 1 if folder == PACKAGE else FOLDER_MODULES_MAX for folder in counts}
    return [
        f"{folder.relative_to(ROOT)}: {count} modules beside __init__.py, at most {most[folder]}"
        for folder, count in counts.items()
        if count > most[folder]
    ]


def circles_of_folders() -> list[str]:
    """Folders whose modules import each other in a cycle: one of them is in the wrong layer.

    A folder and the folders inside it count separately. Layers between packages are checked by import-linter.
    """
    rooms = {file.parent for file in PACKAGE.rglob("*.py")}
    leads: dict[Path, set[Path]] = {room: set() for room in rooms}
    for file in PACKAGE.rglob("*.py"):
        for name in _imported(ast.parse(file.read_text(encoding="utf-8"))):
            target = _room_of(name)
            if target not in (None, PACKAGE, file.parent) and file.name != "__init__.py":
                leads[file.parent].add(target)
    return sorted(
        f"{room.relative_to(ROOT)} and {other.relative_to(ROOT)} import each other"
        for room, others in leads.items()
        for other in others
        if room < other and room in leads[other]
    )


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE.name:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _room_of(name: str) -> Path | None:
    """The folder of the imported module; None: not a module, as names of the package itself."""
    path = PACKAGE.parent / name.replace(".", "/")
    for candidate in (path, path.parent):
        if candidate.with_suffix(".py").is_file():
            return candidate.parent
        if (candidate / "__init__.py").is_file():
            return candidate
    return None


def foreign_words(files: list[Path]) -> list[str]:
    """Lines about one machine or about how work is organised."""
    out = []
    for file in files:
        if file == Path(__file__).resolve() or file.suffix in {".png", ".gz", ".ico", ".lock"}:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            found = FOREIGN.search(line)
            if found:
                out.append(f"{file.relative_to(ROOT)}:{number}: {found.group(0)!r} does not belong here")
    return out


def crowded_folders(files: list[Path]) -> list[str]:
    """Folders with too many files of one prefix."""
    counts: dict[tuple[Path, str], int] = {}
    for file in files:
        if file.suffix == ".py" and file.is_relative_to(ROOT / "src") and "_" in file.stem:
            key = (file.parent, file.stem.split("_")[0])
            counts[key] = counts.get(key, 0) + 1
    return [
        f"{folder.relative_to(ROOT)}/{prefix}_*: {count} files, at most {SAME_PREFIX_MAX}"
        for (folder, prefix), count in counts.items()
        if prefix and count > SAME_PREFIX_MAX
    ]


def long_architecture() -> list[str]:
    """ARCHITECTURE.md must stay one page."""
    lines = len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines())
    return (
        [f"ARCHITECTURE.md: {lines} lines, at most {ARCHITECTURE_LINES_MAX}"] if lines > ARCHITECTURE_LINES_MAX else []
    )


def main() -> int:
    """Print every finding; 1 if there is one."""
    files = tracked()
    findings = [
        *long_files(files),
        *wide_ports(),
        *deep_files(files),
        *full_folders(files),
        *circles_of_folders(),
        *foreign_words(files),
        *crowded_folders(files),
        *long_architecture(),
    ]
    for finding in findings:
        print(finding)
    print(f"house: {len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
