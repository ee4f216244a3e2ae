"""How long after a write a change is done: per intent, what the cluster must show.

A check is a pure function of the intent and a fresh `ClusterState` that holds the intent's topics. The table
names checks as `MODULE:FUNCTION`, so that nothing is imported that is not waited for.
"""

import time
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, cast

from kctl.changes.intents import (
    AbortTransaction,
    AddPartitions,
    AlterConfig,
    ClearThrottle,
    CreateTopic,
    DeleteTopic,
    ElectPreferred,
    Intent,
    Reassign,
    ReplaceStuckReassignment,
)
from kctl.cluster.interface import Cluster
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError
from kctl.model import SILENT, Progress


class Waited(NamedTuple):
    """How far an intent is: how many of how many, and for the rest what is missing and why, a line each."""

    finished: int
    total: int
    missing: tuple[str, ...] = ()
    failed: str = ""  # it will never be done; the reason

    @property
    def is_done(self) -> bool:
        """Whether all of it is done."""
        return self.finished >= self.total


Check = Callable[[Intent, ClusterState], Waited]

CHECKS: dict[str, str] = {
    "create-topic": "kctl.cluster.topics:topic_created",
    "delete-topic": "kctl.cluster.topics:topic_deleted",
    "add-partitions": "kctl.cluster.topics:partitions_added",
    "reassign": "kctl.cluster.reassignment:reassigned",
    "replace-stuck-reassignment": "kctl.cluster.reassignment:reassigned",
    "elect-preferred": "kctl.cluster.elections:elected",
    "alter-config": "kctl.cluster.configs:config_altered",
    "move-controller": "kctl.cluster.elections:controller_moved",
}
PAUSE, LONGEST_PAUSE = 0.05, 1.0


def topics_of(intent: Intent) -> set[str] | None:
    """The topics whose state tells how far the intent is; None: all of them."""
    if isinstance(intent, ClearThrottle):
        return None  # a broker keeps its rate while any topic is throttled there
    if isinstance(intent, (CreateTopic, DeleteTopic, AddPartitions, AbortTransaction)):
        return {intent.topic}
    if isinstance(intent, (Reassign, ReplaceStuckReassignment)):
        return {tp.topic for tp in intent.targets}
    if isinstance(intent, ElectPreferred):
        return {tp.topic for tp in intent.partitions}
    if isinstance(intent, AlterConfig) and intent.entity_type == "topics":
        return {intent.entity_name}
    return set()


def config_types_of(intent: Intent) -> tuple[str, ...]:
    """The entity types whose configurations tell how far the intent is."""
    if isinstance(intent, AlterConfig):
        return (intent.entity_type,)
    throttles = isinstance(intent, ClearThrottle) or (isinstance(intent, Reassign) and intent.config_changes)
    return ("topics", "brokers") if throttles else ()


def how_far(intent: Intent, state: ClusterState) -> Waited:
    """How far the intent is; an intent that nothing waits for is done."""
    name = CHECKS.get(intent.kind)
    if name is None:
        return Waited(1, 1)
    module, function = name.split(":")
    return cast(Check, getattr(import_module(module), function))(intent, state)


def wait_for(
    intent: Intent, cluster: Cluster, *, until: float, progress: Progress = SILENT, what: str = ""
) -> Waited:
    """Look until the intent is done, cannot be done any more, or `until` (of `time.monotonic`) has come.

    A connection that is lost meanwhile is waited for as well: only the clock ends it.
    """
    watched, pause = _Watched(intent, cluster, progress, what or str(intent)), PAUSE
    while True:
        waited, state = _look(intent, cluster)
        if waited is not None and state is not None:
            watched.show(waited, state)
            if waited.is_done or waited.failed:
                return waited
        if time.monotonic() >= until:
            return waited or Waited(0, 1, ("the cluster does not answer",))
        time.sleep(min(pause, max(until - time.monotonic(), 0)))
        pause = min(pause * 1.5, LONGEST_PAUSE)


def _look(intent: Intent, cluster: Cluster) -> tuple[Waited | None, ClusterState | None]:
    try:
        state = cluster.read_state(topics_of(intent), configs=config_types_of(intent))
        return how_far(intent, state), state
    except KctlError:
        return None, None


class _Watched:
    """Progress of what is waited for: in bytes where replicas are copied and brokers tell how large they are."""

    def __init__(self, intent: Intent, cluster: Cluster, progress: Progress, what: str) -> None:
        self._intent, self._cluster, self._progress, self._what = intent, cluster, progress, what
        self._total: int | None = None  # bytes that were missing at first, 0 where partitions are counted
        self._shown = 0

    def show(self, waited: Waited, state: ClusterState) -> None:
        """Say how far it is. Bytes are not all there before everything is done."""
        left = self._left(state)
        is_first = self._total is None
        if self._total is None:
            self._total = left or 0
            amount = (self._total, "bytes") if self._total else (waited.total, "partitions")
            self._progress.start(self._what, *amount)
        done = waited.finished
        if self._total:
            missing = self._total - self._shown if left is None else left
            done = self._total if waited.is_done else min(self._total - missing, self._total - 1)
            self._progress.note(f"{waited.finished:,} of {waited.total:,} partitions")
        if done > self._shown or is_first:
            self._progress.advance(max(done - self._shown, 0))
            self._shown = max(done, self._shown)

    def _left(self, state: ClusterState) -> int | None:
        if self._progress is SILENT or self._total == 0:
            return None
        if not isinstance(self._intent, (Reassign, ReplaceStuckReassignment)):
            return None
        from kctl.cluster.verification import by_replica, bytes_left

        try:
            sizes = self._cluster.replica_sizes(topics_of(self._intent))
        except KctlError:
            return None
        return None if sizes is None else bytes_left(self._intent.targets, state, by_replica(sizes))
