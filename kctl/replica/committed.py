"""Which offsets were committed and are not in a leader's log, by epochs and high watermarks alone.

A high watermark is a lower bound of what was committed on its replica's branch, never an upper one; on another
branch it says nothing. Evidence from outside (offsets of consumers, remote segments, log lines) names an epoch:
where that epoch ends in the leader's lineage below the offset, the rest was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kctl.model import OffsetRange
from kctl.replica.lineage import Lineage, branch_point
from kctl.replication.epochs import UNDEFINED, end_offset_for


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Everything below `offset` was committed when the log was of this epoch; None where the epoch is unknown."""

    kind: str
    offset: int
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class OnlyHere:
    """What one replica holds that the leader does not, and how much of it is known to be committed."""

    branch_point: int
    only_here: OffsetRange | None
    committed_part: OffsetRange | None


@dataclass(frozen=True, slots=True)
class CommittedLoss:
    """What the leader lacks, by replica and in sum."""

    per_replica: dict[int, OnlyHere]
    committed_loss: OffsetRange | None
    uncommitted_only: bool
    still_on_another_replica: bool


def committed_loss(
    replicas: Mapping[int, Lineage], leader: int, evidence: Iterable[CommittedOffset] = ()
) -> CommittedLoss:
    """What was committed and is not in the leader's log. Below its log start it is retention, not loss."""
    present = replicas[leader]
    per_replica = {b: _only_here(replicas, leader, b) for b in sorted(replicas) if b != leader}
    lost = [one.committed_part for one in per_replica.values() if one.committed_part]
    lost += [gone for gone in (_gone(present, proof) for proof in evidence) if gone]
    hull = _hull(lost)
    kept = [one.only_here for one in per_replica.values() if one.only_here]
    return CommittedLoss(
        per_replica,
        hull,
        hull is None and bool(kept),
        hull is not None and any(_overlap(hull, one) for one in kept),
    )


def _only_here(replicas: Mapping[int, Lineage], leader: int, broker_id: int) -> OnlyHere:
    present, other = replicas[leader], replicas[broker_id]
    branch = max(branch_point(present, other), present.log_start_offset)
    if other.log_end_offset <= branch:
        return OnlyHere(branch, None, None)
    committed = other.committed_end
    for sibling_id, sibling in replicas.items():
        if sibling_id not in (leader, broker_id) and sibling.log_end_offset > branch:
            shared = min(branch_point(other, sibling), sibling.log_end_offset, other.log_end_offset)
            if shared > branch:
                committed = max(committed, min(sibling.committed_end, shared))
    part = OffsetRange(branch, committed) if committed > branch else None
    return OnlyHere(branch, OffsetRange(branch, other.log_end_offset), part)


def _gone(present: Lineage, proof: CommittedOffset) -> OffsetRange | None:
    """What this evidence says was committed and the present lineage ends before."""
    end = present.log_end_offset
    if proof.epoch is not None:
        found = end_offset_for(present.log().epochs, end, proof.epoch)
        end = end if found.end_offset == UNDEFINED else found.end_offset
    start = max(end, present.log_start_offset)
    return OffsetRange(start, proof.offset) if start < proof.offset else None


def _hull(ranges: list[OffsetRange]) -> OffsetRange | None:
    ends = [r.to_offset for r in ranges if r.to_offset is not None]
    return OffsetRange(min(r.from_offset for r in ranges), max(ends)) if ends else None


def _overlap(one: OffsetRange, other: OffsetRange) -> bool:
    assert one.to_offset is not None and other.to_offset is not None
    return max(one.from_offset, other.from_offset) < min(one.to_offset, other.to_offset)
