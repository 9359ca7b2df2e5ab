"""Live streams: SSE and WebSocket, their frames, and how many there may be."""
