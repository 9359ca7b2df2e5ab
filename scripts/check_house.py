"""The sizes and words of the house, held by a tool: prints what is over a bound and exits 1."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 500
PORT_METHODS_MAX = 7
ARCHITECTURE_LINES_MAX = 200
SAME_PREFIX_MAX = 12  # files `feed_*` in one folder; more asks for a folder
# File → reason. Generated files, fixtures and lock files are exempt by name below.
LONG_FILES: dict[str, str] = {}
EXEMPT = re.compile(
    r"(package-lock\.json|\.lock|schema\.d\.ts|\.json|\.csv|\.txt|\.md|\.svg|/fixtures/|/samples/|_schema/head)"
)
# Paths of one machine, package hosts, and notes to oneself do not belong into a repository.
FOREIGN = re.compile(
    r"(?<![\w.])/(?:work|home|farm)/\w|registry\.npmjs\.org|files\.pythonhosted\.org|pypi\.org/simple|\bFIXME\b|\bXXX\b"
)


def tracked() -> list[Path]:
    """Files under version control, or about to be."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def long_files(files: list[Path]) -> list[str]:
    """Source files over the bound without a reason."""
    out = []
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        if file.suffix in {".py", ".ts", ".tsx", ".sql", ".css"} and not EXEMPT.search(name):
            lines = len(file.read_text(encoding="utf-8").splitlines())
            if lines > FILE_LINES_MAX and name not in LONG_FILES:
                out.append(f"{name}: {lines} lines, at most {FILE_LINES_MAX}")
    return out


def wide_ports() -> list[str]:
    """Protocols with more methods than a backend should have to write."""
    out = []
    for file in sorted((ROOT / "src/planetwire/ports").glob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                methods = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
                if len(methods) > PORT_METHODS_MAX:
                    out.append(f"{file.name}: {node.name} has {len(methods)} methods, at most {PORT_METHODS_MAX}")
    return out


def deep_files(files: list[Path]) -> list[str]:
    """`planetwire/stage/file.py` and no deeper; data folders excepted."""
    package = ROOT / "src" / "planetwire"
    return [
        f"{file.relative_to(ROOT)}: deeper than planetwire/stage/file"
        for file in files
        if file.suffix == ".py" and file.is_relative_to(package) and len(file.relative_to(package).parts) > 2
    ]


def foreign_words(files: list[Path]) -> list[str]:
    """Lines that speak of one machine or of how work is organised."""
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
    """Too many files of one prefix in a folder of the package."""
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
    """The one page that everybody reads stays one page."""
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
