"""The supervisor over the packaged PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from planetwire.database.postgres import Pool
from planetwire.errors import SetupError
from planetwire.supervise.embedded_postgres import EmbeddedPostgres

CHILD = """
import sys, time
from pathlib import Path
from planetwire.supervise.embedded_postgres import EmbeddedPostgres
pg = EmbeddedPostgres(Path(sys.argv[1]), config={"shared_buffers": "16MB"})
print(pg.start(), pg.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    import shutil
    import tempfile

    made = Path(tempfile.mkdtemp(prefix="pw-embedded-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def _child(folder: Path) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid = int(process.stdout.readline().split()[1])
    process.stdout.close()
    return process, pid


def _gone(pid: int, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.02)
    return False


def test_a_second_owner_of_the_folder_is_refused_with_a_clear_message(folder: Path) -> None:
    first = EmbeddedPostgres(folder)
    first.start()
    try:
        with pytest.raises(SetupError, match="another process already runs PostgreSQL") as refused:
            EmbeddedPostgres(folder).start()
        assert refused.value.code == "already_running"
    finally:
        first.stop()


def test_the_server_is_gone_soon_after_its_parent_was_killed(folder: Path) -> None:
    parent, postmaster = _child(folder)
    parent.kill()
    parent.wait()
    assert _gone(postmaster, within_s=60)
    again = EmbeddedPostgres(folder)
    again.start()
    again.stop()


async def test_rows_survive_a_kill_of_parent_and_server_together(folder: Path) -> None:
    parent, postmaster = _child(folder)
    connection = await asyncpg.connect(EmbeddedPostgres(folder).dsn)
    await connection.execute("create table kept (n int)")
    for n in range(50):
        await connection.execute("insert into kept values ($1)", n)
    os.kill(postmaster, signal.SIGKILL)
    parent.kill()
    parent.wait()
    connection.terminate()
    again = EmbeddedPostgres(folder)
    again.start()
    try:
        connection = await asyncpg.connect(again.dsn)
        assert await connection.fetchval("select count(*) from kept") == 50
        await connection.close()
    finally:
        again.stop()


def test_a_pid_file_that_names_a_stranger_does_not_stop_the_start(folder: Path) -> None:
    parent, postmaster = _child(folder)
    os.kill(postmaster, signal.SIGKILL)
    parent.kill()
    parent.wait()
    assert _gone(postmaster, within_s=60)
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        pid_file = folder / "postgres" / "postmaster.pid"
        lines = pid_file.read_text().split("\n")
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:]]))
        again = EmbeddedPostgres(folder)
        again.start()
        again.stop()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_no_folder_above_the_cluster_changes_its_permissions(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    before = closed.stat().st_mode
    cluster = EmbeddedPostgres(closed / "data")
    cluster.start()
    cluster.stop()
    assert closed.stat().st_mode == before


def test_a_path_too_long_for_a_socket_gets_a_short_private_folder(folder: Path) -> None:
    deep = folder / ("d" * 90)
    cluster = EmbeddedPostgres(deep)
    cluster.start()
    try:
        assert cluster.socket_dir != cluster.cluster
        assert cluster.socket_dir.stat().st_mode & 0o777 == 0o700
    finally:
        cluster.stop()
        cluster.socket_dir.rmdir()


async def test_the_application_role_owns_the_schema_and_may_turn_triggers_off(pg_pool: Pool) -> None:
    async with pg_pool.acquire() as connection:
        assert await connection.fetchval("select current_user") == "planetwire"
        assert not await connection.fetchval("select rolsuper from pg_roles where rolname = current_user")
        await connection.execute("set session_replication_role = replica")
        await connection.execute("create table mine (n int)")


@pytest.fixture
def far(folder: Path) -> Iterator[EmbeddedPostgres]:
    """A cluster whose socket lies in a folder where everybody may make names."""
    made = EmbeddedPostgres(folder / ("x" * 90))
    yield made
    place = made.socket_dir
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.exists():
        place.rmdir()


def test_a_link_in_the_place_of_the_socket_folder_is_neither_followed_nor_given_away(
    far: EmbeddedPostgres, folder: Path
) -> None:
    """Whoever may write there could else have root give any folder away, and empty it of sockets."""
    aim = folder / "aim"
    aim.mkdir(mode=0o755)
    (aim / ".s.PGSQL.5432").touch()
    before = aim.stat()
    far.socket_dir.symlink_to(aim)
    with pytest.raises(SetupError, match="link"):
        far.start()
    assert (aim.stat().st_uid, aim.stat().st_mode) == (before.st_uid, before.st_mode)
    assert (aim / ".s.PGSQL.5432").exists()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_socket_folder_that_others_may_enter_is_refused(far: EmbeddedPostgres, mode: int) -> None:
    far.socket_dir.mkdir()
    far.socket_dir.chmod(mode)
    with pytest.raises(SetupError, match="others may enter"):
        far.start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of somebody else")
def test_a_socket_folder_of_somebody_else_is_refused(far: EmbeddedPostgres) -> None:
    far.socket_dir.mkdir(mode=0o700)
    os.chown(far.socket_dir, 54_321, 54_321)
    with pytest.raises(SetupError, match="somebody else"):
        far.start()
    assert far.socket_dir.stat().st_uid == 54_321
