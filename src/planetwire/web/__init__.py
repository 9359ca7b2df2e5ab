"""Takes requests; gives snapshots, SSE, WebSocket, job control, health and the built front end."""
