"""Waiting until a change is done: until the cluster's state is what the intent says (`Intent.how_far`)."""

import time
from collections.abc import Callable, Mapping

from formats.words import counted
from kctl.cluster.intent import Intent, Waited
from kctl.cluster.interface import Cluster
from kctl.cluster.moves import by_replica
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError
from kctl.model import SILENT, Progress, TopicPartition

PAUSE, LONGEST_PAUSE = 0.05, 1.0
# Seconds without progress after which it is said what is waited for; between the two looks at sizes that tell.
STALLED, BETWEEN = 60.0, 10.0


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
            intent.topics_concerned(), configs=intent.config_types(), log_dirs_of=intent.brokers_of_disks()
        )
        return intent.how_far(state), state
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

    def sizes() -> Mapping[tuple[TopicPartition, int], int] | None:
        try:
            replicas = cluster.replica_sizes(intent.topics_concerned())
        except KctlError:
            return None
        return None if replicas is None else by_replica(replicas)

    return intent.bytes_left(state, sizes)


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
