"""A wheel of a source tree, and an environment with it that borrows the dependencies of this one."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path


def build_wheel(tree: Path, out: Path) -> Path:
    """The one wheel of a source tree whose front end is built."""
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", out, tree], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    [file] = out.glob("*.whl")
    return file


def install_wheel(wheel: Path, home: Path) -> Path:
    """Returns the environment's Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=60)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True, timeout=60)
    [packages] = (home / "lib").glob("python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python
