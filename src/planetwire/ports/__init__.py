"""The ports: Protocols of at most seven methods. Each class states its contract, each method what it raises.

Every wait has a timeout, `aclose()` is idempotent, and only modules of `wiring/` choose a backend.
"""

from planetwire.ports.access import Holder, Limit, Limits, LoginCodes, Session, Sessions, TokenBook
from planetwire.ports.audit import AuditLog, JobLog
from planetwire.ports.changes import Cache, ChangeLog, DataChangeBus, LayerRegistry
from planetwire.ports.common import Clock, Wakeup
from planetwire.ports.facts import (
    BodyStore,
    Collector,
    FactStore,
    Feed,
    ObjectStore,
    PatchSink,
    SourceDesk,
    SourceStore,
)
from planetwire.ports.jobs import JobBoard, JobDesk, JobQueue, JobTx, JobUpkeep, ScheduleBook
from planetwire.ports.streams import EventLog, FrameSink, LiveStream, ObservationStore, Subscription

__all__ = [
    "AuditLog",
    "BodyStore",
    "Cache",
    "ChangeLog",
    "Clock",
    "Collector",
    "DataChangeBus",
    "EventLog",
    "FactStore",
    "Feed",
    "FrameSink",
    "Holder",
    "JobBoard",
    "JobDesk",
    "JobLog",
    "JobQueue",
    "JobTx",
    "JobUpkeep",
    "LayerRegistry",
    "Limit",
    "Limits",
    "LiveStream",
    "LoginCodes",
    "ObjectStore",
    "ObservationStore",
    "PatchSink",
    "ScheduleBook",
    "Session",
    "Sessions",
    "SourceDesk",
    "SourceStore",
    "Subscription",
    "TokenBook",
    "Wakeup",
]
