"""Whether a remote segment belongs to the log that the leader has now.

Epochs without records (an entry whose start equals the next one's) are removed from both sides first.

Source: isRemoteSegmentWithinLeaderEpochs, buildFilteredLeaderEpochMap in
core/.../log/remote/RemoteLogManager.java @ 3.6.2, 3.7.1, 3.9.0-rc3
"""

from itertools import pairwise

from formats.messages.remote_log_metadata import SegmentMetadata
from kctl.replication.epochs import Entries


def without_empty_epochs(entries: Entries) -> Entries:
    """Entries that hold records; of equal starts the last epoch is kept."""
    starts = [start for _, start in entries[1:]]
    return tuple(
        entry for entry, following in zip(entries, [*starts, None], strict=False) if entry[1] != following
    )


def outside_lineage(segment: SegmentMetadata, leader_epochs: Entries, log_end_offset: int) -> str | None:
    """Why the segment is not part of the log with these epochs and this end; None if it is."""
    log = without_empty_epochs(leader_epochs)
    own = without_empty_epochs(segment.segment_leader_epochs)
    if not log:
        return "the leader has no epochs"
    known = dict(log)
    first, last = log[0][0], log[-1][0]
    if not first <= own[-1][0] <= last:
        return f"its last epoch {own[-1][0]} is not between {first} and {last}"
    # Older epochs of the segment are below a log start that moved, and do not matter (3.7.1 and later).
    own = tuple(entry for entry in own if entry[0] >= first)
    unknown = [epoch for epoch, _ in own if epoch not in known]
    if unknown:
        return f"epoch {unknown[0]} is unknown to the leader"
    if own[0][0] != first and own[0][1] < known[own[0][0]]:
        return f"epoch {own[0][0]} starts at {known[own[0][0]]} on the leader, at {own[0][1]} in the segment"
    after = dict(zip((epoch for epoch, _ in log), [*log[1:], None], strict=False))
    for (epoch, _), following in pairwise(own):
        if after[epoch] != following:
            return f"epoch {epoch} ends otherwise on the leader"
    end = after[own[-1][0]]
    if end is not None and segment.end_offset > end[1] - 1:
        return f"epoch {own[-1][0]} ends before offset {end[1]} on the leader"
    if segment.end_offset >= log_end_offset:
        return f"the leader's log ends at {log_end_offset}"
    return None
