"""The data dir: real and simulated data never share one, and reading settings writes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planetwire.errors import SetupError
from planetwire.settings import Settings, load_settings
from planetwire.supervise.datadir import DataDir
from planetwire.supervise.own_secrets import secrets_of
from planetwire.supervise.roles import effective


@pytest.mark.parametrize("kept", ["observations.db", "postgres"])
def test_a_place_with_real_data_of_either_half_is_refused_to_the_demo(tmp_path: Path, kept: str) -> None:
    (tmp_path / kept).mkdir() if kept == "postgres" else (tmp_path / kept).touch()
    with pytest.raises(SetupError, match="holds real data"):
        DataDir(tmp_path).check_kind(simulated=True)
    DataDir(tmp_path).check_kind(simulated=False)


def test_a_place_of_the_demo_is_refused_to_the_product_and_kept_by_the_demo(tmp_path: Path) -> None:
    DataDir(tmp_path).check_kind(simulated=True)
    (tmp_path / "postgres").mkdir()
    DataDir(tmp_path).check_kind(simulated=True)
    with pytest.raises(SetupError, match="simulated data"):
        DataDir(tmp_path).check_kind(simulated=False)


def test_a_secret_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    assert data.secret("admin.token") == data.secret("admin.token")
    assert (tmp_path / "admin.token").stat().st_mode & 0o777 == 0o600


def made(folder: Path, name: str, body: bytes) -> Path:
    """A secret file with everything else as it should be."""
    DataDir(folder).prepare()
    (folder / name).write_bytes(body)
    return folder / name


@pytest.mark.parametrize("name", ["admin.token", "ingest.token", "session.key", "changes.bus.secret"])
@pytest.mark.parametrize(
    "body",
    [b"", b" \n", b"short\n", "geheim-mit-ä-und-lang-genug".encode(), b"\xff" * 40, b"two words are no secret here"],
)
def test_a_secret_file_that_is_empty_short_or_no_ascii_stops_the_start_and_is_named(
    tmp_path: Path, name: str, body: bytes
) -> None:
    """An empty admin.token let everybody in who sent no token, and an empty session.key signed anybody's cookie."""
    file = made(tmp_path, name, body)
    with pytest.raises(SetupError) as told:
        secrets_of(Settings(data_dir=tmp_path))
    assert str(file) in told.value.message
    assert file.read_bytes() == body
    if name != "session.key":
        with pytest.raises(SetupError, match=name):
            effective(Settings(data_dir=tmp_path))


def test_a_secret_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    DataDir(tmp_path).prepare()
    (tmp_path / "admin.token").mkdir()
    with pytest.raises(SetupError, match=r"admin\.token cannot be read"):
        secrets_of(Settings(data_dir=tmp_path))


@pytest.mark.parametrize("name", ["admin", "operator", "viewer", "ingest"])
def test_a_token_of_a_setting_that_is_too_short_stops_the_start_and_is_not_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    variable, token = f"PLANETWIRE_{name.upper()}_TOKEN", "hunter2-hunter2-hunter2"
    monkeypatch.setenv(variable, token)
    with pytest.raises(SetupError) as told:
        load_settings(data_dir=tmp_path)
    assert variable in told.value.message and "at least 24" in told.value.message and token not in told.value.message
    monkeypatch.setenv(variable, token + "!")
    load_settings(data_dir=tmp_path)


def test_two_roles_never_have_one_token(tmp_path: Path) -> None:
    """Who was given the lesser one would have the greater."""
    token = "one-token-for-everybody-here"
    settings = Settings(data_dir=tmp_path, admin_token=token, viewer_token=token)  # type: ignore[arg-type]
    with pytest.raises(SetupError, match=r"PLANETWIRE_ADMIN_TOKEN and PLANETWIRE_VIEWER_TOKEN"):
        secrets_of(settings)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"trusted_proxies": "localhost"}, "PLANETWIRE_TRUSTED_PROXIES"),
        ({"trusted_proxies": "10.0.0.0/8", "proxy_roles": "alice=god"}, "PLANETWIRE_PROXY_ROLES"),
        ({"proxy_user_header": "Remote-User"}, "PLANETWIRE_PROXY_USER_HEADER"),
        ({"trusted_proxies": "::1", "proxy_user_header": "Remote User"}, "PLANETWIRE_PROXY_USER_HEADER"),
    ],
)
def test_a_proxy_that_nobody_could_mean_stops_the_start(settings: dict[str, str], named: str) -> None:
    with pytest.raises(SetupError, match=named):
        load_settings(**settings)


def test_what_an_older_version_left_open_to_read_is_closed(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.prepare()
    files = [tmp_path / "observations.db", tmp_path / "postgres.log", data.run / "runtime.json", data.bodies / "x.body"]
    for file in files:
        file.touch()
        file.chmod(0o644)
    data.prepare()
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 4


def test_what_is_made_is_its_owners_alone_and_folders_above_can_be_passed_by_roots_server(tmp_path: Path) -> None:
    """Whatever the umask is."""
    before = os.umask(0o077)
    try:
        DataDir(tmp_path / "a" / "b").prepare()
    finally:
        os.umask(before)
    passable = 0o711 if os.geteuid() == 0 else 0o700
    assert [folder.stat().st_mode & 0o777 for folder in (tmp_path / "a", tmp_path / "a" / "b")] == [passable] * 2
    before = os.umask(0)
    try:
        DataDir(tmp_path / "c").check_kind(simulated=False)
        DataDir(tmp_path / "c").prepare()
        DataDir(tmp_path / "c").check_kind(simulated=True)
        DataDir(tmp_path / "c").lock().close()
        DataDir(tmp_path / "c").write_runtime(pid=1)
    finally:
        os.umask(before)
    kept = [file for file in (tmp_path / "c").rglob("*") if file.is_file()]
    assert kept and all(file.stat().st_mode & 0o077 == 0 for file in kept)


def test_the_login_code_is_taken_once(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.prepare()
    code = data.new_login_code()
    assert (data.take_login_code(), data.take_login_code()) == (code, None)


def test_showing_the_settings_writes_nothing(tmp_path: Path) -> None:
    effective(Settings(data_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []
