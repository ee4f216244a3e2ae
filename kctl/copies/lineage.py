"""A replica's lineage: its leader epochs in a form that can be compared with another replica's.

A `leader-epoch-checkpoint` cannot be compared as written: it may have epochs without records, entries at or above
the log end (elections without writes, truncations not yet flushed), and another first offset than other replicas.
Normalised, an entry means "from here on, records of this epoch are in the log".
"""

from __future__ import annotations

import enum
from functools import cached_property

from formats.values import Struct
from kctl.model import OffsetRange
from kctl.replication.epochs import Entries, epoch_for_offset, latest_epoch, loaded
from kctl.replication.truncation import ReplicaState


class Relation(enum.StrEnum):
    """How two replicas relate, by their epochs."""

    EQUAL = "equal"
    FIRST_BEHIND = "first_behind"
    SECOND_BEHIND = "second_behind"
    DIVERGED = "diverged"
    NO_COMMON_RANGE = "no_common_range"


class Lineage(Struct, frozen=True, dict=True):
    """The extent of one replica: normalised epochs, [log start, log end), and its checkpointed high watermark.

    `recorded` are the entries of the checkpoint file, or those rebuilt from batches if there is no file.
    """

    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None = None
    recorded: Entries = ()
    local_log_start_offset: int | None = None

    @cached_property
    def epochs(self) -> Entries:
        return normalised(self.recorded, self.log_start_offset, self.log_end_offset)

    @cached_property
    def loaded(self) -> Entries:
        """The recorded epochs as a broker keeps them: those without records too, ascending."""
        return loaded(self.recorded)

    @property
    def committed_end(self) -> int:
        """What is known to be committed: the high watermark, limited to the log end; 0 without a recorded one."""
        return min(self.high_watermark or 0, self.log_end_offset)

    @property
    def last_epoch(self) -> int:
        """The newest epoch with records in this log; -1 if none is known."""
        latest = latest_epoch(self.epochs)
        return -1 if latest is None else latest

    def epoch_at(self, offset: int) -> int | None:
        """The epoch in which the record at this offset was written; None if unknown."""
        return epoch_for_offset(self.epochs, offset)

    def state(self) -> ReplicaState:
        """The replica as a running broker sees it: without entries beyond the log end; one at the end may be its own."""
        entries = tuple(e for e in self.loaded if e[1] <= self.log_end_offset)
        return ReplicaState(entries, self.log_end_offset, self.committed_end, self.log_start_offset)


class LineageComparison(Struct, frozen=True):
    relation: Relation
    common_range: OffsetRange | None
    first_divergent_offset: int | None
    epoch_unknown_range: OffsetRange | None = None


def normalised(entries: Entries, log_start_offset: int, log_end_offset: int) -> Entries:
    """Entries that have records, without those that end at or below the log start; the first is moved up to it."""
    with_records: list[tuple[int, int]] = []
    ordered = loaded(entry for entry in entries if min(entry) >= 0)
    for index, (epoch, start) in enumerate(ordered):
        end = ordered[index + 1][1] if index + 1 < len(ordered) else log_end_offset
        end = min(end, log_end_offset)
        if end > max(start, log_start_offset):
            with_records.append((epoch, max(start, log_start_offset)))
    return tuple(with_records)


def first_difference(first: Entries, second: Entries, start: int, end: int) -> int | None:
    """The first offset in [start, end) at which the two lineages have different epochs; None if there is none.

    Offsets whose epoch one side does not know (message formats before 2) are not compared.
    """
    points = sorted({start, *(o for _, o in (*first, *second) if start < o < end)})
    for point in points:
        if point >= end:
            break
        first_epoch, second_epoch = epoch_for_offset(first, point), epoch_for_offset(second, point)
        if first_epoch is not None and second_epoch is not None and first_epoch != second_epoch:
            return point
    return None


def compare_lineages(first: Lineage, second: Lineage) -> LineageComparison:
    """How two replicas relate by their epochs alone; batches must confirm it."""
    start = max(first.log_start_offset, second.log_start_offset)
    end = min(first.log_end_offset, second.log_end_offset)
    if start > end:
        return LineageComparison(Relation.NO_COMMON_RANGE, None, None)
    common = OffsetRange(start, end)
    divergent = first_difference(first.epochs, second.epochs, start, end)
    known = [lineage.epochs[0][1] for lineage in (first, second) if lineage.epochs]
    known_from = max(known) if len(known) == 2 else end
    unknown = OffsetRange(start, min(known_from, end)) if known_from > start and end > start else None
    if divergent is not None:
        relation = Relation.DIVERGED
    elif first.log_end_offset < second.log_end_offset:
        relation = Relation.FIRST_BEHIND
    elif first.log_end_offset > second.log_end_offset:
        relation = Relation.SECOND_BEHIND
    else:
        relation = Relation.EQUAL
    return LineageComparison(relation, common, divergent, unknown)
