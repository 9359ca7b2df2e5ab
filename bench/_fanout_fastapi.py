"""A neighbour: the usual FastAPI and sse-starlette code, with a queue per connection and no log."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from sse_starlette.sse import EventSourceResponse

app = FastAPI()
readers: dict[str, set[asyncio.Queue[tuple[int, dict[str, Any]]]]] = defaultdict(set)
revision = 0


@app.get("/events/{topic}")
async def events(topic: str) -> EventSourceResponse:
    """The stream of one topic."""

    async def stream() -> AsyncIterator[dict[str, str]]:
        queue: asyncio.Queue[tuple[int, dict[str, Any]]] = asyncio.Queue()
        readers[topic].add(queue)
        try:
            while True:
                number, event = await queue.get()
                yield {"id": str(number), "data": json.dumps(event)}
        finally:
            readers[topic].discard(queue)

    return EventSourceResponse(stream(), ping=30)


@app.post("/publish/{topic}")
async def publish(topic: str, event: dict[str, Any]) -> dict[str, int]:
    """One event to all readers of the topic."""
    global revision
    revision += 1
    for queue in readers[topic]:
        queue.put_nowait((revision, event))
    return {"revision": revision}
