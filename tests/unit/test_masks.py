"""No password is shown, wherever in an address it stands."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planetwire.settings import FeedSettings, Settings, flat
from planetwire.text.masks import masked

WORD = "s3cret-word"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:s3cret-word@host:5432/db?sslmode=require", "postgresql://u:***@host:5432/db?sslmode=require"),
        ("postgresql://u@/db?host=%2Ftmp%2Fa-long-folder-of-a-socket", "postgresql://u@/db?host=%2Ftmp%2Fa-long-folder-of-a-socket"),
        ("postgresql://host/db?user=u&password=s3cret-word", "postgresql://host/db?user=u&password=***"),
        ("postgresql://u:s3cret@word@host/db", "postgresql://u:***@host/db"),
        ("postgresql://u:s3cret/word@host/db", "postgresql://u:***@host/db"),
        ("host=h user=u password=s3cret-word", "host=h user=u password=***"),
        ("redis://:s3cret-word@host/0", "redis://:***@host/0"),
        ("https://s3cret-word@host/path", "https://***@host/path"),
        ("https://host/path?format=json&api_key=s3cret-word", "https://host/path?format=json&api_key=***"),
        ("https://host/path?q=abcdefghijklmnopqrstuvwxyz", "https://host/path?q=***"),
        ("sqlite:///var/lib/observations.db", "sqlite:///var/lib/observations.db"),
        ("none", "none"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_password(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert WORD not in masked(text)


@given(st.text(min_size=6, max_size=30), st.sampled_from(["postgresql", "https", "redis"]))
def test_a_quoted_password_never_shows(password: str, scheme: str) -> None:
    quoted = quote(f"<{password}>", safe="")
    assert quoted not in masked(f"{scheme}://user:{quoted}@host/path")


def test_config_masks_every_password_and_unmasks_them_when_asked(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path,
        database_url=f"postgresql://u:{WORD}@db/p",
        database_direct_url=f"postgresql://u:{WORD}@db/p",
        observations_url=f"postgresql://u:{WORD}@db/o",
        changes_bus=f"https://u:{WORD}@hook.example/a?token={WORD}",
        redis_url=f"redis://:{WORD}@cache/0",  # type: ignore[arg-type]
        feeds={"usgs_quakes": FeedSettings(url=f"https://u:{WORD}@feed.example/?key={WORD}", token=WORD)},  # type: ignore[arg-type]
    )
    hidden, shown = flat(settings, show_secrets=False), flat(settings, show_secrets=True)
    assert WORD not in repr(hidden)
    assert sum(WORD in str(value) for value in shown.values()) == 7
    assert hidden["database_url"] == "postgresql://u:***@db/p"
