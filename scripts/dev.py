"""`make dev`: everything on simulated feeds; page and back end restart when their files change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "planetwire"
WATCHED = {".py", ".sql"}
POLL_S = 0.5
END_S = 15.0
PAGE = "http://127.0.0.1:5173"
BACKEND = "http://127.0.0.1:8000"


def newest() -> tuple[int, int]:
    """A value that changes whenever a file of the back end is written, created or removed."""
    times = [file.stat().st_mtime_ns for file in PACKAGE.rglob("*") if file.suffix in WATCHED]
    return max(times), len(times)


def start_backend() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "planetwire", "demo"], start_new_session=True)


def start_page() -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PLANETWIRE_DEV_BACKEND": BACKEND}
    return subprocess.Popen(
        ["npm", "run", "dev"], cwd=ROOT / "frontend", env=environment, stdin=subprocess.DEVNULL, start_new_session=True
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, then SIGKILL."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(END_S)


def on_sigterm(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    signal.signal(signal.SIGTERM, on_sigterm)
    seen, backend, page = newest(), start_backend(), start_page()
    print(f"the page: {PAGE} (the sign-in link's part after # goes behind it)", flush=True)
    try:
        while page.poll() is None:
            time.sleep(POLL_S)
            now = newest()
            if now != seen:  # a back end that crashed on a broken file waits here for the next change
                print("files changed: the back end starts anew", flush=True)
                end(backend)
                seen, backend = now, start_backend()
    except KeyboardInterrupt:
        pass
    finally:
        end(page)
        end(backend)
    return page.returncode if page.returncode and page.returncode > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
