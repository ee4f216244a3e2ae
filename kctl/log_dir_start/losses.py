"""What a step of a start would destroy, and whether another copy in the evidence holds it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formats.log_dir.file_names import FolderKind
from formats.values import replace
from kctl.copies.moments import Znodes
from kctl.copies.replica_log import batches_between
from kctl.copies.spans import Span, joined, without
from kctl.evidence.model import FoundEvidence
from kctl.evidence.replica_copies import NOBODY, Copy, live_copies
from kctl.log_dir_start.steps import Destroyed, PlacedStep, StepKind
from kctl.model import TopicPartition

HIGHEST = (1 << 63) - 1


def destroyed_by(
    placed: PlacedStep,
    broker_id: int | None,
    moment: str | None,
    evidence: FoundEvidence,
    others: Sequence[FoundEvidence],
    metadata: Znodes | None,
) -> PlacedStep:
    """The step with what it would destroy; as it is where that is no sound record, and none below a high watermark."""
    step, named = placed.step, placed.named
    if (
        step.records_cut is None
        or step.from_offset is None
        or named is None
        or named.kind is not FolderKind.LIVE
    ):
        return placed
    if not step.records_cut and not step.bytes_cut:
        return placed
    partition = TopicPartition(named.topic, named.partition)
    end = HIGHEST if step.to_offset is None else step.to_offset
    copies = [copy for found in (evidence, *others) for copy in live_copies(found, [partition.topic])]
    copies = [copy for copy in copies if copy.partition == partition]
    own = [c for c in copies if str(c.folder.parent) == placed.log_dir and c.moment == moment]
    rest = [c for c in copies if c not in own and (c.broker_id != broker_id or c.broker_id == NOBODY)]
    is_alone = metadata is not None and metadata.replicas.get(partition) == (broker_id,)
    mine = _intervals(own, step.from_offset, end)
    marks = [mark for copy in copies if (mark := copy.checkpoint("high_watermark")) is not None]
    unread: list[Span] = []
    if step.step is StepKind.TRUNCATE and marks:  # the damaged bytes were committed records
        sound = joined([interval for intervals in mine.values() for interval in intervals])
        unread = without([(step.from_offset, min(end, max(marks)))], sound)
    records = step.records_cut + sum(after - first for first, after in unread)
    if not records:
        return placed
    if not rest and not is_alone:
        return replace(placed, destroyed=Destroyed(records, None))
    held = _intervals(rest, step.from_offset, end)
    # At one offset, batches of two leader epochs are different records.
    gaps = [gap for epoch, intervals in mine.items() for gap in without(intervals, held.get(epoch, []))]
    in_any = joined([interval for intervals in held.values() for interval in intervals])
    missing = joined([*gaps, *without(unread, in_any)])
    committed = None
    if marks:
        highest = max(marks)
        committed = sum(max(0, min(after, highest) - first) for first, after in missing)
    compared = tuple(sorted({copy.broker_id for copy in rest}))
    return replace(placed, destroyed=Destroyed(records, bool(missing), tuple(missing), committed, compared))


def _intervals(copies: Sequence[Copy], start: int, end: int) -> dict[int, list[Span]]:
    """The offsets of [start, end) that sound batches of the copies cover by leader epoch, ascending and joined.

    The epoch is −1 for batches before magic 2.
    """
    covered: dict[int, list[Span]] = {}
    for copy in copies:
        for _, batches in batches_between(copy, start, end):
            for epoch in np.unique(batches.leader_epoch).tolist():
                of_epoch = batches.leader_epoch == epoch
                pairs = zip(
                    batches.first_offset[of_epoch].tolist(),
                    batches.last_offset[of_epoch].tolist(),
                    strict=True,
                )
                ranges = [(max(start, first), min(end, last + 1)) for first, last in pairs]
                covered[epoch] = joined([*covered.get(epoch, []), *ranges])
    return covered
