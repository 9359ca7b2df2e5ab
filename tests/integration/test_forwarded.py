"""What a stranger writes into forwarding headers, over a real socket and with the server's own configuration."""

from __future__ import annotations

import httpx

from fix_earth import TOKEN, Earth


async def test_a_made_up_client_avoids_no_brake_on_the_real_server(earth: Earth) -> None:
    """The server library would believe the header from this machine by itself, before anything of ours is asked."""
    async with httpx.AsyncClient(base_url=earth.url, trust_env=False) as http:
        made_up = [{"Authorization": "Bearer wrong", "X-Forwarded-For": f"192.0.2.{number}"} for number in range(12)]
        answers = [await http.post("/api/v1/jobs", json={}, headers=headers) for headers in made_up]
        assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 2
        right = await http.post("/api/v1/jobs", json={}, headers={"Authorization": f"Bearer {TOKEN}"})
        assert right.status_code == 400, "a right token is never braked"


async def test_a_made_up_scheme_makes_no_secure_cookie(earth: Earth) -> None:
    async with httpx.AsyncClient(base_url=earth.url, trust_env=False) as http:
        told = {"X-Forwarded-Proto": "https"}
        answer = await http.post("/api/v1/session", json={"token": TOKEN}, headers=told)
        assert answer.status_code == 204 and "secure" not in answer.headers["set-cookie"].lower()
