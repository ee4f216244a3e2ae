"""Overlapping copies of one log: a record that an earlier copy has n times is left out n times."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from formats.arrays import Mask
from kctl.findings import Place
from kctl.findings import state_log as codes
from kctl.text_logs.blocks import BEFORE_ALL, Block, Reading, blocks_of, is_stdin, records_of
from kctl.text_logs.log_files import LogFile, LogSource
from kctl.text_logs.zones import Zone

# How far apart in time two copies of a record are looked for, where clocks step back a little.
SLACK = 60_000


class EarlierCopies:
    """The records of earlier copies around the time that a later one is read at."""

    def __init__(self, earlier: Iterator[tuple[int, bytes]]) -> None:
        self._earlier = earlier
        self._next: tuple[int, bytes] | None = next(earlier, None)
        self._recent: deque[tuple[int, bytes]] = deque()
        self._count: dict[bytes, int] = {}

    def new(self, block: Block) -> Mask:
        """Which records of a block no earlier copy has once more than it was asked for."""
        is_new = np.ones(len(block.starts), np.bool_)
        count, recent = self._count, self._recent
        for index, key in enumerate(block.places[3]):
            while self._next is not None and self._next[0] <= key + SLACK:
                if self._next[0] >= key - SLACK:
                    recent.append(self._next)
                    count[self._next[1]] = count.get(self._next[1], 0) + 1
                self._next = next(self._earlier, None)
            while recent and recent[0][0] < key - SLACK:
                self._drop(recent.popleft()[1])
            if count and (record := block.record(index)) in count:
                self._drop(record)
                is_new[index] = False
            elif self.is_past:
                break
        return is_new

    def _drop(self, record: bytes) -> None:
        left = self._count.pop(record, 0) - 1
        if left > 0:
            self._count[record] = left

    @property
    def is_past(self) -> bool:
        """Whether nothing more can be found."""
        return self._next is None and not self._count


def without_copies(
    sources: Sequence[LogSource], rank: int, zone: Zone | None, reading: Reading
) -> Iterator[Block]:
    """The blocks of a source without records that earlier parts of it have, or other logs of its broker.

    Captured standard output and exports repeat what the broker's other logs hold, so they are compared with all of those,
    and with each other.
    """
    source = sources[rank]
    others: list[LogSource] = []
    if source.kind == "stdout" and source.broker_id is not None:
        others = [
            other
            for i, other in enumerate(sources)
            if other.broker_id == source.broker_id and (other.kind != "stdout" or i < rank)
        ]
    last: dict[tuple[object, ...], int] = {}
    earlier_copies: EarlierCopies | None = None
    current: LogFile | None = None
    dropped = 0
    for block in blocks_of(source, rank, zone, reading):
        if block.file is not current:
            dropped = _told(current, dropped, reading)
            current = block.file
            earlier_copies = _seen_before(source, block, last, others, zone)
        last[_place_of(block.file)] = block.last_key
        if earlier_copies is not None and not earlier_copies.is_past:
            keep = earlier_copies.new(block)
            dropped += int(len(keep) - keep.sum())
            block = block.only(keep)
        yield block
    _told(current, dropped, reading)


def _place_of(file: LogFile) -> tuple[object, ...]:
    """The same for the file of a source and that of its blocks, whose lines have no carrier any more."""
    return file.path, file.part, file.container


def _told(file: LogFile | None, dropped: int, reading: Reading) -> int:
    if file is not None and dropped:
        reading.duplicates += dropped
        place = Place(broker_id=file.broker_id, file=file.file, evidence=file.evidence)
        reading.findings.append(codes.LOG_OVERLAP.at(place, lines=dropped))
    return 0


def _seen_before(
    source: LogSource,
    block: Block,
    last: dict[tuple[object, ...], int],
    others: list[LogSource],
    zone: Zone | None,
) -> EarlierCopies | None:
    """The earlier copies that a part may repeat, None where it begins after all of them have ended."""
    known = np.flatnonzero(block.times != BEFORE_ALL)
    if not len(known):
        return None
    first = int(block.times[known[0]])
    # Each file on its own: read one after the other their times would go back.
    earlier = [
        LogSource(source.broker_id, source.kind, (file,))
        for file in source.files
        if last.get(_place_of(file), BEFORE_ALL) >= first
    ]
    earlier += [LogSource(s.broker_id, s.kind, (f,)) for s in others for f in s.files]
    earlier = [copy for copy in earlier if not is_stdin(copy)]
    if not earlier:
        return None
    since = int(block.keys[known[0]]) - SLACK
    iterators = [records_of(copy, zone, since) for copy in earlier]
    return EarlierCopies(heapq.merge(*iterators) if len(iterators) > 1 else iterators[0])
