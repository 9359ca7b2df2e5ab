"""Settings: a typing mistake stops the start, service links do not, and everything is documented."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from planetwire.errors import SetupError
from planetwire.settings import Settings, check_environment, flat, load_settings

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("PLANETWIRE_", "POLYWEATHER_")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("PLANETWIRE_DATABSE_URL", "PLANETWIRE_DATABASE_URL"),
        ("PLANETWIRE_RELAY__MERGE_WINDOW", "PLANETWIRE_RELAY__MERGE_WINDOW_MS"),
        ("PLANETWIRE_FEEDS__USGS_QUAKES__URI", "PLANETWIRE_FEEDS__USGS_QUAKES__URL"),
    ],
)
def test_a_misspelt_variable_stops_the_start_and_names_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(SetupError, match=f"unknown setting {wrong}; did you mean {near}"):
        check_environment({wrong: "x"})


def test_service_link_variables_are_ignored_and_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    links = {
        "PLANETWIRE_SERVICE_HOST": "10.0.0.7",
        "PLANETWIRE_SERVICE_PORT": "8000",
        "PLANETWIRE_SERVICE_PORT_HTTP": "8000",
        "PLANETWIRE_PORT_8000_TCP": "tcp://10.0.0.7:8000",
        "PLANETWIRE_PORT_8000_TCP_ADDR": "10.0.0.7",
        "PLANETWIRE_PORT": "tcp://10.0.0.7:8000",
    }
    for name, value in links.items():
        monkeypatch.setenv(name, value)
    settings, ignored = load_settings()
    assert sorted(ignored) == sorted(links)
    assert settings.port == 8000


def test_a_value_out_of_range_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANETWIRE_PORT", "70000")
    with pytest.raises(SetupError, match="PLANETWIRE_PORT"):
        load_settings()


def test_feeds_are_set_by_source_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANETWIRE_FEEDS__USGS_QUAKES__URL", "http://127.0.0.1:1/x")
    monkeypatch.setenv("PLANETWIRE_FEEDS__USGS_QUAKES__INTERVAL_S", "5")
    monkeypatch.setenv("PLANETWIRE_FEEDS__USGS_QUAKES__TOKEN", "secret")
    settings, _ = load_settings()
    assert settings.feed("usgs_quakes").url == "http://127.0.0.1:1/x"
    assert settings.feed("usgs_quakes").interval_s == 5
    assert settings.feed("celestrak_gp").url is None
    assert flat(settings, show_secrets=False)["feeds__usgs_quakes__token"] == "***"
    assert flat(settings, show_secrets=True)["feeds__usgs_quakes__token"] == "secret"


def test_the_names_of_the_weather_product_still_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """S126, S211."""
    monkeypatch.setenv("POLYWEATHER_PATCH_EVENT_RETENTION_HOURS", "3")
    monkeypatch.setenv("POLYWEATHER_DB_PATH", str(tmp_path / "weather.db"))
    settings, _ = load_settings()
    assert settings.patch_event_retention_hours == 3
    assert settings.observations_location == f"sqlite:///{tmp_path / 'weather.db'}"


def test_six_hours_of_patch_events_are_kept_by_default() -> None:
    """S125, S126."""
    assert Settings().patch_event_retention_hours == 6


def test_two_places_for_one_store_stop_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POLYWEATHER_DB_PATH", str(tmp_path / "a.db"))
    monkeypatch.setenv("PLANETWIRE_OBSERVATIONS_URL", f"sqlite:///{tmp_path / 'b.db'}")
    settings, _ = load_settings()
    with pytest.raises(SetupError, match="name different places"):
        _ = settings.observations_location


def test_every_setting_has_a_description_and_is_on_the_page() -> None:
    writer = script("write_settings_doc")
    assert writer.PAGE.read_text(encoding="utf-8") == writer.page(), "run scripts/write_settings_doc.py"
    assert "|  |" not in writer.page()
