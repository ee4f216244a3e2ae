"""Whether an election was unclean, and which offsets it put at risk, from two decisions that follow each other.

An unclean election may cost nothing, and a clean one may cost committed records: an ISR member that lost its
unflushed tail to a power failure, or that cut to a stale high watermark before leader epochs, is in the ISR all
the same.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import NamedTuple

from kctl.model import OffsetRange
from kctl.replication.election import NO_LEADER


class Verdict(enum.StrEnum):
    """What kind of decision it was."""

    CLEAN = "clean"
    UNCLEAN = "unclean"
    LOST_UNFLUSHED_TAIL = "lost_unflushed_tail"
    NO_LEADER = "no_leader"


class ElectionVerdict(NamedTuple):
    """The kind, what was at risk, and how many decisions between the two are missing (then it is provisional)."""

    verdict: Verdict
    offsets_at_risk: OffsetRange | None
    missed_decisions: int


def election_verdict(
    isr_before: Collection[int],
    epoch_before: int,
    leader: int,
    epoch: int,
    *,
    known_high_watermark: int | None = None,
    epoch_start_offset: int | None = None,
) -> ElectionVerdict:
    """The verdict on the later decision. At risk is [start of its epoch, known high watermark)."""
    missed = epoch - epoch_before - 1
    if leader == NO_LEADER:
        return ElectionVerdict(Verdict.NO_LEADER, None, missed)
    risk = None
    if known_high_watermark is not None and epoch_start_offset is not None:
        risk = OffsetRange(epoch_start_offset, known_high_watermark)
        risk = risk if epoch_start_offset < known_high_watermark else None
    if leader not in isr_before:
        return ElectionVerdict(Verdict.UNCLEAN, risk, missed)
    return ElectionVerdict(Verdict.LOST_UNFLUSHED_TAIL if risk else Verdict.CLEAN, risk, missed)
