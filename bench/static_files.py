"""The page's files: bytes of the globe's first load as a browser requests it, and the CPU time of a request.

For comparison, on the same server: the plain file and the compressed one through the framework's own `FileResponse`.
"""

from __future__ import annotations

import socket
import statistics
import subprocess
import sys

import uvicorn
from _running import line
from fastapi import FastAPI
from fastapi.responses import FileResponse
from snapshot_codings import cpu_ms

from planetwire.web import spa
from planetwire.web.static_files import read

ROUNDS, REQUESTS = 7, 100
BYTES_GOAL, CPU_GOAL = 0.3, 0.25


def serve(port: int) -> None:
    """Ours, preceded by the framework's route."""
    app = FastAPI()

    @app.get("/file/{name:path}")
    async def file(name: str) -> FileResponse:
        return FileResponse(spa.STATIC / name)

    app.include_router(spa.router())
    uvicorn.run(app, port=port, http="httptools", log_level="error", access_log=False)


def answered(port: int, path: str, coding: str, times: int = 1) -> int:
    """Bytes of the last body; requests one after another on one connection."""
    size = 0
    with socket.create_connection(("127.0.0.1", port)) as sock, sock.makefile("rb") as stream:
        for _ in range(times):
            sock.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\naccept-encoding: {coding}\r\n\r\n".encode())
            while (head := stream.readline().lower()) != b"\r\n":
                if head.startswith(b"content-length:"):
                    size = int(head.split(b":")[1])
            assert len(stream.read(size)) == size
    return size


def started(port: int) -> subprocess.Popen[bytes]:
    """The server, once it answers."""
    process = subprocess.Popen([sys.executable, __file__, str(port)])
    while process.poll() is None:
        try:
            answered(port, "/", "gzip")
            return process
        except OSError:
            continue
    sys.exit("the server did not start")


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    files = [name for name in read(spa.STATIC) if "test_hooks" not in name and "Terminal" not in name]
    largest = max(files, key=lambda name: (spa.STATIC / name).stat().st_size)
    smallest = next(name for name in files if name.endswith("index.html"))
    ways = {
        "ours, br": (f"/{largest}", "br"), "ours, plain": (f"/{largest}", "identity"),
        "file, br": (f"/file/{largest}.br", "identity"), "file, plain": (f"/file/{largest}", "identity"),
        "ours, page": (f"/{smallest}", "br"), "file, page": (f"/file/{smallest}.br", "identity"),
    }  # fmt: skip
    server = started(port)
    try:
        first = {
            coding: sum(answered(port, f"/{name}", coding) for name in files) for coding in ("identity", "gzip", "br")
        }
        spent: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, (path, coding) in ways.items():
                before = cpu_ms([server.pid])
                answered(port, path, coding, REQUESTS)
                spent[way].append((cpu_ms([server.pid]) - before) / REQUESTS)
    finally:
        server.terminate()
        server.wait()
    costs = ", ".join(f"{way} {statistics.median(each):.2f} ms" for way, each in spent.items())
    sizes = ", ".join(f"{coding} {size / 1e6:.2f} MB" for coding, size in first.items())
    met = line(
        "first load in br over plain", first["br"] / first["identity"], BYTES_GOAL, f"{sizes}, {len(files)} files"
    )
    ratio = statistics.median(a / b for a, b in zip(spent["ours, br"], spent["file, plain"], strict=True))
    met &= line("CPU of the largest file in br over the plain file", ratio, CPU_GOAL, costs)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(int(sys.argv[1]))
    else:
        main()
