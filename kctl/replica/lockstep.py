"""Several logs read side by side: windows of offsets, each with the whole batches of every log in it.

A window ends where no log has a batch that reaches across, so that batches can be compared within it. Memory
is bounded by the chunks that the logs are read in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kctl.replica.replica_log import NO_BATCHES, Batches, ReplicaLog, joined
from kctl.replica.scanned import shared_scan
from kctl.scan.pool import Jobs


@dataclass
class _Stream:
    source: Iterator[Batches]
    held: Batches = NO_BATCHES
    is_over: bool = False

    def more(self) -> bool:
        """Hold one chunk more; whether there was one."""
        found = next(self.source, None)
        if found is None:
            self.is_over = True
            return False
        self.held = joined([self.held, found])
        return True

    def take(self, end: int | None) -> Batches:
        """Give away the batches that end before `end`."""
        count = len(self.held) if end is None else int(np.searchsorted(self.held.last_offset, end))
        taken, self.held = self.held[:count], self.held[count:]
        return taken


@dataclass(frozen=True, slots=True)
class Window:
    """The batches of each log that lie in one run of offsets, and which logs end with it."""

    batches: tuple[Batches, ...]
    is_over: tuple[bool, ...]


def windows(logs: Sequence[ReplicaLog], jobs: Jobs = None) -> Iterator[Window]:
    """Windows in order of offset until every log is read; large ones by several processes."""
    shared = shared_scan([log.copy.folder for log in logs], jobs)
    streams = [_Stream(log.batches(shared.of(index) if shared else None)) for index, log in enumerate(logs)]
    while True:
        for stream in streams:
            while not len(stream.held) and not stream.is_over:
                stream.more()
        if all(stream.is_over for stream in streams):
            batches = tuple(stream.take(None) for stream in streams)
            yield Window(batches, tuple(True for _ in streams))
            return
        end = _end(streams)
        if all(not len(s.held) or int(s.held.last_offset[0]) >= end for s in streams):
            # A batch reaches across every possible end: read on where the least is known.
            open_streams = [s for s in streams if not s.is_over]
            min(open_streams, key=lambda s: int(s.held.last_offset[-1])).more()
            continue
        batches = tuple(stream.take(end) for stream in streams)
        yield Window(batches, tuple(s.is_over and not len(s.held) for s in streams))


def _end(streams: Sequence[_Stream]) -> int:
    """The greatest offset up to which every log is held and no batch is cut in two."""
    end = min(int(s.held.last_offset[-1]) + 1 for s in streams if not s.is_over)
    while True:
        lowest = end
        for stream in streams:
            at = int(np.searchsorted(stream.held.last_offset, end))
            if at < len(stream.held):
                lowest = min(lowest, int(stream.held.first_offset[at]))
        if lowest == end:
            return end
        end = lowest
