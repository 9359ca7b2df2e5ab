"""The data dir: real and simulated data never share one, and reading settings writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from planetwire.errors import SetupError
from planetwire.settings import Settings
from planetwire.supervise.datadir import DataDir
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


def test_the_login_code_is_taken_once(tmp_path: Path) -> None:
    data = DataDir(tmp_path)
    data.prepare()
    code = data.new_login_code()
    assert (data.take_login_code(), data.take_login_code()) == (code, None)


def test_showing_the_settings_writes_nothing(tmp_path: Path) -> None:
    effective(Settings(data_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []
