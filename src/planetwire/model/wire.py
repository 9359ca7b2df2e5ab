"""Paths and size limits that both ends of a connection share."""

from __future__ import annotations

EVENTS_PATH = "/api/events"
PUSH_PATH = "/api/internal/collector-patch"
PUSH_MAX_BYTES = 2 * 1024 * 1024  # of one request, which may hold an array of patches
PATCH_MAX_BYTES = 16 * 1024  # of one patch
