"""The connection: uvicorn's protocols with our bounds, and what every request and answer passes."""
