"""`up` with a certificate of its own: the printed address is https, and every process of ours still finds the web."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from certificates import Made, self_signed
from fix_installation import Installation, wait_for


@pytest.fixture
def certificate(tmp_path: Path) -> Made:
    return self_signed(tmp_path)


@pytest.fixture
def secure(data_dir: Path, certificate: Made) -> Iterator[Installation]:
    made = Installation(data_dir, command=("demo",), environment=certificate.settings)
    yield made.start()
    made.stop()


def test_readings_and_the_doctor_reach_the_web_process_over_https(secure: Installation, certificate: Made) -> None:
    """The work process pushes observations to it; the doctor asks it and follows a canary to its socket."""
    assert secure.url.startswith("https://127.0.0.1:")
    port = secure.url.rpartition(":")[2]
    with httpx.Client(base_url=f"https://localhost:{port}", verify=certificate.trust(), trust_env=False) as browser:
        code = secure.login_url.rpartition("=")[2]
        signed = browser.post("/api/v1/session", json={"code": code})
        assert signed.status_code == 204
        assert "Secure" in signed.headers["set-cookie"]
        wait_for(
            lambda: any(row["current_temp"] is not None for row in browser.get("/api/scan/terminal").json()["rows"]),
            within_s=60,
            what="a reading that was pushed over https",
        )
        found = browser.post("/api/v1/diagnostics", headers={"Origin": f"https://localhost:{port}"}).json()
        (socket,) = [step for step in found["steps"] if step["step"] == "websocket"]
        assert (socket["ok"], socket["findings"]) == (True, [])
    environment = {
        **os.environ,
        "PLANETWIRE_DATA_DIR": str(secure.data_dir),
    }  # which certificate it is, `up` wrote down
    command = [sys.executable, "-m", "planetwire", "doctor", "--json"]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False).stdout
    steps = {step["step"]: step for step in json.loads(told)}
    for name in ("installation", "websocket", "visualization", "ready", "terminal"):
        assert steps[name]["ok"], steps[name]


@pytest.mark.parametrize("command", ["up", "web"])
def test_half_of_the_settings_stops_the_start(data_dir: Path, certificate: Made, command: str) -> None:
    half = {"PLANETWIRE_TLS_CERT": str(certificate.cert), "PLANETWIRE_HALVES": "terminal"}
    made = Installation(data_dir, command=(command,), environment=half)
    with pytest.raises(AssertionError, match="did not start"):
        made.start()
    made.stop()
    assert "planetwire: PLANETWIRE_TLS_CERT and PLANETWIRE_TLS_KEY go together" in made.log()
