"""The values that cross stage boundaries: frozen, no I/O. A file a stage; all of them can be had from here."""

from __future__ import annotations

from planetwire.model.changes import Action, Change, Hint, LayerEvent, Operation
from planetwire.model.common import Json
from planetwire.model.derived import Derived, Deriver, Orbit, PlaceAsked
from planetwire.model.facts import Batch, Fact, FetchState, Parsed, Reject, SourceDefaults, Written
from planetwire.model.jobs import (
    ClaimedJob,
    DueSource,
    Job,
    JobLine,
    JobRequest,
    JobStatus,
    Lane,
    Lease,
    NextRun,
    TaskType,
)
from planetwire.model.layers import LayerAdapter, Provenance, Strategy
from planetwire.model.people import Actor, Role
from planetwire.model.streams import (
    EPOCH_PATTERN,
    Appended,
    BusMessage,
    Cursor,
    LogEvent,
    ObservationPatch,
    ResyncReason,
    parse_cursor,
)

__all__ = [
    "EPOCH_PATTERN",
    "Action",
    "Actor",
    "Appended",
    "Batch",
    "BusMessage",
    "Change",
    "ClaimedJob",
    "Cursor",
    "Derived",
    "Deriver",
    "DueSource",
    "Fact",
    "FetchState",
    "Hint",
    "Job",
    "JobLine",
    "JobRequest",
    "JobStatus",
    "Json",
    "Lane",
    "LayerAdapter",
    "LayerEvent",
    "Lease",
    "LogEvent",
    "NextRun",
    "ObservationPatch",
    "Operation",
    "Orbit",
    "Parsed",
    "PlaceAsked",
    "Provenance",
    "Reject",
    "ResyncReason",
    "Role",
    "SourceDefaults",
    "Strategy",
    "TaskType",
    "Written",
    "parse_cursor",
]
