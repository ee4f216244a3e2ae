"""The leader's copy task: how far the tier reaches, and which local segments are copied next.

Source: RLMCopyTask in core/.../log/remote/RemoteLogManager.java @ 3.5.2, 3.6.2, 3.7.0, 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kctl.replication.epochs import Entries, end_offset_for, entries_in_range
from kctl.tier.metadata.remote_log_metadata_cache import MetadataCache


class HighestCopied(NamedTuple):
    """The last copied offset and its epoch; -1 and -1 if nothing was copied. Up to 3.6 the epoch is unknown (None)."""

    offset: int
    leader_epoch: int | None


class SegmentCopy(NamedTuple):
    """A local segment to copy: its offsets, and the epochs that its metadata and object will have."""

    start_offset: int
    end_offset: int
    segment_leader_epochs: Entries
    leader_epoch_index: Entries


class CopyPlan(NamedTuple):
    """What a leader copies next."""

    highest_copied: HighestCopied
    from_offset: int
    copies: tuple[SegmentCopy, ...]


def highest_copied_offset(
    entries: Entries, log_end_offset: int, highest_of: Callable[[int], int | None], *, clamp: bool = True
) -> HighestCopied:
    """How far the tier reaches in this log, by the newest epoch with a copy.

    `clamp` limits it to the epoch's end in this log (3.7 and later, KAFKA-15241); without it an unclean election leaves
    offsets of the new history uncopied.
    """
    for epoch, _ in reversed(entries):
        highest = highest_of(epoch)
        if highest is not None:
            end = end_offset_for(entries, log_end_offset, epoch).end_offset
            if not clamp:
                return HighestCopied(highest, None)
            return HighestCopied(end - 1 if end <= highest else highest, epoch)
    return HighestCopied(-1, -1)


def copy_candidates(
    base_offsets: Sequence[int], from_offset: int, last_stable_offset: int
) -> list[tuple[int, int]]:
    """Offsets (first, last) of the segments to copy: without the active one and those beyond the last stable offset."""
    start = max([0, *(i for i, base in enumerate(base_offsets) if base <= from_offset)])
    pairs = zip(base_offsets[start:], base_offsets[start + 1 :], strict=False)
    return [(base, following - 1) for base, following in pairs if following <= last_stable_offset]


def copy_plan(
    entries: Entries,
    log_end_offset: int,
    highest_of: Callable[[int], int | None],
    base_offsets: Sequence[int],
    last_stable_offset: int,
    log_start_offset: int,
    *,
    clamp: bool = True,
) -> CopyPlan:
    """What the copy task of a leader with this log does next."""
    highest = highest_copied_offset(entries, log_end_offset, highest_of, clamp=clamp)
    from_offset = max(highest.offset + 1, log_start_offset)
    if last_stable_offset <= 0 or highest.offset >= last_stable_offset:
        return CopyPlan(highest, from_offset, ())
    copies = []
    for start, end in copy_candidates(base_offsets, from_offset, last_stable_offset):
        own, index = entries_in_range(entries, start, end + 1), entries_in_range(entries, -1, end + 1)
        copies.append(SegmentCopy(start, end, own, index))
    return CopyPlan(highest, from_offset, tuple(copies))


def log_start_offset_on_leader(entries: Entries, cache: MetadataCache, local_log_start_offset: int) -> int:
    """Where a new leader says that the log starts (3.6 and later, KAFKA-15351)."""
    for epoch, _ in entries:
        listed = cache.listed(epoch)
        if listed:
            return listed[0].start_offset
    return local_log_start_offset
