"""Waiting until a change is done: for each intent, the state that the cluster must reach.

A check is a pure function of the intent and a fresh `ClusterState` that holds the intent's topics. The table
names checks as `MODULE:FUNCTION`, so that nothing is imported that is not waited for.
"""

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple, cast

from kctl.changes.intents import (
    AlterConfig,
    AlterReplicaLogDirs,
    ClearThrottle,
    Intent,
    Reassign,
    ReplaceStuckReassignment,
    Several,
    UnregisterBroker,
)
from kctl.cluster.disks import places
from kctl.cluster.interface import Cluster
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError
from kctl.model import SILENT, Progress, counted


class Waited(NamedTuple):
    """Progress of an intent: `finished` of `total` items. Each line of `missing` names an unfinished item and why."""

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
    "reassign": "kctl.cluster.reassignment.execution:reassigned",
    "replace-stuck-reassignment": "kctl.cluster.reassignment.execution:reassigned",
    "alter-replica-log-dirs": "kctl.cluster.reassignment.disk_moves:moved",
    "elect-preferred": "kctl.cluster.elections:elected",
    "elect-unclean": "kctl.cluster.unclean:elected",
    "alter-config": "kctl.cluster.configs:config_altered",
    "wait-until": "kctl.cluster.configs:time_has_come",
    "move-controller": "kctl.cluster.elections:controller_moved",
    "add-voter": "kctl.cluster.kraft.voters:voter_added",
    "remove-voter": "kctl.cluster.kraft.voters:voter_removed",
    "update-features": "kctl.cluster.kraft.features:updated",
    "unregister-broker": "kctl.cluster.kraft.unregistering:unregistered",
}
PAUSE, LONGEST_PAUSE = 0.05, 1.0
# Seconds without progress after which it is said what is waited for; between the two looks at sizes that tell.
STALLED, BETWEEN = 60.0, 10.0


BY_PARTITION = ("targets", "partitions", "chosen", "offsets")  # fields of intents


def topics_of(intent: Intent) -> set[str] | None:
    """The topics whose state tells how far the intent is; None: all of them."""
    if isinstance(intent, Several):
        names = [topics_of(part) for part in intent.parts]
        return None if None in names else set().union(*filter(None, names))
    if isinstance(intent, (ClearThrottle, UnregisterBroker)):
        return None  # a broker keeps its rate while any topic is throttled there; any topic may have a replica there
    if isinstance(intent, AlterConfig):
        return {intent.entity_name} if intent.entity_type == "topics" else set()
    if isinstance(intent, AlterReplicaLogDirs):
        return {tp.topic for tp, _ in intent.log_dirs}
    if topic := getattr(intent, "topic", None):
        return {topic}
    return {tp.topic for name in BY_PARTITION for tp in getattr(intent, name, ())}


def config_types_of(intent: Intent) -> tuple[str, ...]:
    """The entity types whose configurations tell how far the intent is."""
    if isinstance(intent, Several):
        return tuple(dict.fromkeys(kind for part in intent.parts for kind in config_types_of(part)))
    if isinstance(intent, AlterConfig):
        return (intent.entity_type,)
    throttles = isinstance(intent, ClearThrottle) or (
        isinstance(intent, (Reassign, AlterReplicaLogDirs)) and intent.config_changes
    )
    return ("topics", "brokers") if throttles else ()


def log_dirs_of(intent: Intent) -> set[int]:
    """The brokers whose log directories tell how far the intent is."""
    return {broker for _, broker in intent.log_dirs} if isinstance(intent, AlterReplicaLogDirs) else set()


def how_far(intent: Intent, state: ClusterState) -> Waited:
    """How far the intent is; an intent that nothing waits for is done."""
    if isinstance(intent, Several):
        return _of_all([how_far(part, state) for part in intent.parts])
    name = CHECKS.get(intent.kind)
    if name is None:
        return Waited(1, 1)
    module, function = name.split(":")
    return cast(Check, getattr(import_module(module), function))(intent, state)


def _of_all(parts: Sequence[Waited]) -> Waited:
    return Waited(
        sum(part.finished for part in parts),
        sum(part.total for part in parts),
        tuple(line for part in parts for line in part.missing),
        next((part.failed for part in parts if part.failed), ""),
    )


def is_visible(intent: Intent) -> bool:
    """Whether the cluster's state shows if it was done."""
    return (
        all(is_visible(part) for part in intent.parts)
        if isinstance(intent, Several)
        else intent.kind in CHECKS
    )


def wait_for(
    intent: Intent,
    cluster: Cluster,
    *,
    until: float,
    progress: Progress = SILENT,
    title: str = "",
    note: Callable[[str], None] = lambda text: None,
) -> Waited:
    """Look until the intent is done, cannot be done any more, or `until` (of `time.monotonic`) has come.

    A connection that is lost meanwhile is waited for as well: only the clock ends it. `note` is told what is waited for
    when nothing has moved on for a minute, and again after twice as long.
    """
    stall = _Stall(intent, cluster, note)
    watched, pause = _Watched(intent, cluster, progress, title or str(intent)), PAUSE
    while True:
        waited, state = _look(intent, cluster)
        if waited is not None and state is not None:
            watched.show(waited, state)
            if waited.is_done or waited.failed:
                return waited
            stall.look(waited, state)
        if time.monotonic() >= until:
            return waited or Waited(0, 1, ("the cluster does not answer",))
        time.sleep(min(pause, max(until - time.monotonic(), 0)))
        pause = min(pause * 1.5, LONGEST_PAUSE)


def _look(intent: Intent, cluster: Cluster) -> tuple[Waited | None, ClusterState | None]:
    try:
        state = cluster.read_state(
            topics_of(intent), configs=config_types_of(intent), log_dirs_of=log_dirs_of(intent)
        )
        return how_far(intent, state), state
    except KctlError:
        return None, None


class _Stall:
    """Reports a wait without progress: no item finishes, and brokers report no fewer bytes to copy."""

    def __init__(self, intent: Intent, cluster: Cluster, note: Callable[[str], None]) -> None:
        self._intent, self._cluster, self._note = intent, cluster, note
        self._finished = -1
        self._missing: int | None = None
        self._since = self._next = 0.0

    def look(self, waited: Waited, state: ClusterState) -> None:
        """Note what is missing if there was no progress for too long."""
        now = time.monotonic()
        if waited.finished > self._finished:
            self._finished = waited.finished
            self._start(now, None)
        elif now >= self._next:
            missing, before = _missing_bytes(self._intent, self._cluster, state), self._missing
            if missing is not None and before is None:  # the next look tells
                self._missing, self._next = missing, now + BETWEEN
            elif missing is not None and before is not None and missing < before:
                self._start(now, missing)
            else:
                seconds = now - self._since
                self._note(f"nothing has moved on for {seconds:.0f} s: {'; '.join(waited.missing[:3])}")
                self._next = now + seconds

    def _start(self, now: float, missing: int | None) -> None:
        self._since, self._next, self._missing = now, now + STALLED, missing


def _missing_bytes(intent: Intent, cluster: Cluster, state: ClusterState) -> int | None:
    """Bytes still to be copied; None for an intent that copies nothing, or if brokers do not report sizes."""
    if isinstance(intent, AlterReplicaLogDirs):
        placed = places(state.log_dirs)
        return sum(placed[key].bytes_to(path) for key, path in intent.log_dirs.items() if key in placed)
    if not isinstance(intent, (Reassign, ReplaceStuckReassignment)):
        return None
    from kctl.cluster.reassignment.moves import by_replica
    from kctl.cluster.reassignment.verification import bytes_left

    try:
        sizes = cluster.replica_sizes(topics_of(intent))
    except KctlError:
        return None
    return None if sizes is None else bytes_left(intent.targets, state, by_replica(sizes))


class _Watched:
    """Progress of what is waited for: in bytes where replicas are copied and brokers tell how large they are."""

    def __init__(self, intent: Intent, cluster: Cluster, progress: Progress, title: str) -> None:
        self._intent, self._cluster, self._progress, self._title = intent, cluster, progress, title
        self._total: int | None = None  # bytes that were missing at first, 0 where partitions are counted
        self._shown = 0

    def show(self, waited: Waited, state: ClusterState) -> None:
        """Say how far it is. Bytes are not all there before everything is done."""
        missing_bytes = self._missing_bytes(state)
        is_first = self._total is None
        if self._total is None:
            self._total = missing_bytes or 0
            amount = (self._total, "bytes") if self._total else (waited.total, "partitions")
            self._progress.start(self._title, *amount)
        done = waited.finished
        if self._total:
            missing = self._total - self._shown if missing_bytes is None else missing_bytes
            done = self._total if waited.is_done else min(self._total - missing, self._total - 1)
            self._progress.note(f"{waited.finished:,} of {counted(waited.total, 'partition')}")
        if done > self._shown or is_first:
            self._progress.advance(max(done - self._shown, 0))
            self._shown = max(done, self._shown)

    def _missing_bytes(self, state: ClusterState) -> int | None:
        if self._progress is SILENT or self._total == 0:
            return None
        return _missing_bytes(self._intent, self._cluster, state)
