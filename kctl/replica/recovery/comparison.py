"""Which lost records are to be produced again: compared with what the cluster has now.

A record is there already if the present log has one with the same key, value, headers and timestamp behind the loss:
the producer sent it again, or an earlier recovery wrote it. Of a compacted topic a record is left out whose key has a
later one. Records are compared piece by piece, so that memory stays bounded; the present log is read once for each.
"""

import enum
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from formats.values import Struct, field
from kctl.changes.kept_records import LostRecord
from kctl.model import OffsetRange, TopicPartition
from kctl.replica.loss.recovery import TransactionOutcome
from kctl.replica.recovery.lost_ranges import LostRange
from kctl.replica.recovery.marks import (
    Mark,
    PresentRecord,
    add_offset,
    digest_of,
    find_mark,
    mark_of,
    without_mark,
)

AT_ONCE = 1 << 17  # lost records that are compared with the present log at once


class Fate(enum.IntEnum):
    """What happens to a lost record."""

    WRITTEN = 0
    THERE = 1
    ABORTED = 2
    OPEN = 3
    REPLACED = 4  # by a later record of its key, in a compacted topic
    REPEATED = 5  # another loss of the partition has the same record


LEFT_OUT = {
    Fate.ABORTED: "aborted_transaction",
    Fate.OPEN: "unfinished_transaction",
    Fate.REPLACED: "replaced_by_later_record",
    Fate.REPEATED: "in_another_loss",
}
UNREADABLE, UNCOMMITTED = "unreadable", "uncommitted"
Present = Callable[[], Iterator[PresentRecord]]


class RangeFate(Struct):
    """What happens to the records of a lost range."""

    lost: LostRange
    records: int = 0  # that copies hold and that can be read
    unreadable: int = 0
    fates: bytearray = field(default_factory=bytearray)  # of each record, in order
    keys_with_later_records: int = 0

    def count(self, fate: Fate) -> int:
        """How many records have this fate."""
        return self.fates.count(fate)

    @property
    def left_out(self) -> dict[str, int]:
        """How many records are left out, by reason."""
        counts = {reason: self.count(fate) for fate, reason in LEFT_OUT.items()}
        counts[UNREADABLE] = self.unreadable
        return {reason: count for reason, count in counts.items() if count}

    def to_write(self) -> Iterator[LostRecord]:
        """The records that are written, in order."""
        fates = iter(self.fates)
        for batch in self.lost.batches():
            for record in batch.records:
                if next(fates) == Fate.WRITTEN:
                    yield LostRecord(record, batch.leader_epoch, batch.codec)


class _Candidate(Struct):
    """A lost record that may be written: where its fate stands, and digests of what it is found by."""

    fates: bytearray
    at: int
    of: int  # the number of its range
    content: bytes
    mark: Mark
    key: bytes | None


class PartitionComparison:
    """The lost ranges of one partition, compared with the log that they were lost from and the one they go to."""

    def __init__(
        self,
        partition: TopicPartition,
        lost: Sequence[LostRange],
        present: Sequence[Present],
        *,
        leaves_out_replaced: bool,
    ) -> None:
        """`present` reads the logs, from where records that were sent again may lie."""
        self._partition, self._present = partition, present
        self._leaves_out_replaced = leaves_out_replaced
        self.ranges = [RangeFate(of_range) for of_range in lost]
        self._later: list[np.ndarray[Any, np.dtype[np.uint64]]] = [np.empty(0, np.uint64) for _ in lost]
        # Of each present log: the offsets of records that stand for lost ones of the pieces before.
        self._matched: list[list[OffsetRange]] = [[] for _ in present]
        self._earlier: dict[int, list[OffsetRange]] = {}  # by epoch: the records of the ranges before

    def compare(self) -> list[RangeFate]:
        """The fate of every record."""
        piece: list[_Candidate] = []
        for number, fate in enumerate(self.ranges):
            of_range: dict[int, list[OffsetRange]] = {}
            for batch in fate.lost.batches():
                fate.unreadable += batch.unreadable
                for record in batch.records:
                    lost = LostRecord(record, batch.leader_epoch, batch.codec)
                    fate.records += 1
                    fate.fates.append(self._first_fate(lost, batch.outcome))
                    if fate.fates[-1] != Fate.REPEATED:
                        add_offset(of_range.setdefault(batch.leader_epoch, []), record.offset)
                    if fate.fates[-1] == Fate.WRITTEN:
                        piece.append(self._candidate(fate.fates, number, lost))
                    if len(piece) >= AT_ONCE:
                        self._compare(piece)
                        piece = []
            for epoch, offsets in of_range.items():
                self._earlier[epoch] = sorted([*self._earlier.get(epoch, ()), *offsets])
        if piece:
            self._compare(piece)
        for fate, keys in zip(self.ranges, self._later, strict=True):
            fate.keys_with_later_records = len(keys)
        return self.ranges

    def _candidate(self, fates: bytearray, number: int, lost: LostRecord) -> _Candidate:
        key = lost.record.key
        return _Candidate(
            fates,
            len(fates) - 1,
            number,
            digest_of(lost.record),
            mark_of(self._partition, lost),
            None if key is None else _key(key),
        )

    def _first_fate(self, lost: LostRecord, outcome: TransactionOutcome | None) -> Fate:
        """The fate of a record by itself. Two leaderships may have dropped the same one."""
        if outcome is TransactionOutcome.ABORTED:
            return Fate.ABORTED
        if outcome is TransactionOutcome.OPEN:
            return Fate.OPEN
        is_repeated = _holds(self._earlier.get(lost.leader_epoch, ()), lost.record.offset)
        return Fate.REPEATED if is_repeated else Fate.WRITTEN

    def _compare(self, piece: Sequence[_Candidate]) -> None:
        """Find the records of a piece in the present logs, and the keys with later ones."""
        by_content: dict[bytes, deque[_Candidate]] = defaultdict(deque)
        by_mark: dict[Mark, _Candidate] = {}
        last: dict[bytes, _Candidate] = {}
        for candidate in piece:
            by_content[candidate.content].append(candidate)
            by_mark[candidate.mark] = candidate
            if candidate.key is not None:
                last[candidate.key] = candidate
        latest: dict[
            bytes, int
        ] = {}  # by key: the place in the piece that its last present record stands for
        for read, before in zip(self._present, self._matched, strict=True):
            places = {id(candidate): place for place, candidate in enumerate(piece)}
            matched: list[OffsetRange] = []
            for record, has_own_timestamp in read():
                found: _Candidate | None = None
                if (mark := find_mark(record)) is not None:
                    found = by_mark.get(mark)
                    if found and has_own_timestamp and digest_of(without_mark(record)) != found.content:
                        found = None
                elif has_own_timestamp and (waiting := by_content.get(digest_of(record))):
                    found = waiting.popleft()
                if found is not None:
                    found.fates[found.at] = Fate.THERE
                    add_offset(matched, record.offset)
                if record.key is None or (key := _key(record.key)) not in last:
                    continue
                if found is not None:
                    latest[key] = max(latest.get(key, -1), places[id(found)])
                elif not _holds(before, record.offset):
                    latest[key] = len(piece)
            before[:] = sorted([*before, *matched])
        self._note_later(piece, last, latest)

    def _note_later(
        self, piece: Sequence[_Candidate], last: Mapping[bytes, _Candidate], latest: Mapping[bytes, int]
    ) -> None:
        keys: dict[int, set[int]] = defaultdict(set)
        for place, candidate in enumerate(piece):
            if candidate.key is None or candidate.fates[candidate.at] != Fate.WRITTEN:
                continue
            has_later = latest.get(candidate.key, -1) > place
            if has_later:
                keys[candidate.of].add(int.from_bytes(candidate.key[:8], "big"))
            if self._leaves_out_replaced and (has_later or last[candidate.key] is not candidate):
                candidate.fates[candidate.at] = Fate.REPLACED
        for number, digests in keys.items():
            added = np.fromiter(digests, np.uint64, len(digests))
            self._later[number] = np.union1d(self._later[number], added)


def _holds(spans: Sequence[OffsetRange], offset: int) -> bool:
    """Whether one of these ranges, in order and apart, has the offset."""
    at = bisect_right(spans, offset, key=lambda span: span.from_offset)
    return at > 0 and offset < (spans[at - 1].to_offset or 0)


def _key(key: bytes) -> bytes:
    return blake2b(key, digest_size=16).digest()
