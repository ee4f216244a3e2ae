"""The state that a segment's records leave it in, for all segments of a table at once.

Rows are sorted by segment id, stably, and each step is judged by a table of transitions. Only segments with an
illegal step are replayed one record at a time, as a broker's cache would follow them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formats.message_schema import uuid_text
from formats.remote_log_metadata import SegmentState, TopicIdPartition
from kctl.findings import Place, Severity
from kctl.findings import remote as say
from kctl.remote.fold_rows import (
    ADD,
    KNOWN,
    UPDATE,
    Column,
    Rows,
    by_segment,
    joined,
    merged,
    raise_marks,
    ranges,
)
from kctl.remote.metadata_log import METADATA_TOPIC, Say
from kctl.remote.states import may_follow

DELETED = SegmentState.DELETE_SEGMENT_FINISHED
# A step is 4 * kind + state; nothing came before a segment's first.
NOTHING = 12


def _is_plain(before: int, step: int) -> bool:
    """Whether a step needs no second look; a copy that is said to start once more does."""
    kind, state = divmod(step, 4)
    if before == NOTHING:
        return kind == KNOWN or (kind == ADD and state == 0)
    return kind == UPDATE and state != 0 and may_follow(SegmentState(before % 4), SegmentState(state))


_PLAIN = np.array([[_is_plain(before, step) for step in range(NOTHING)] for before in range(NOTHING + 1)])


@dataclass(slots=True)
class Folding:
    """Folds rows to one a segment; what is not as it should be is said."""

    say: Say
    partitions: Sequence[TopicIdPartition]
    keep_deleted: bool

    def folded(self, rows: Rows) -> Rows:
        """One row a segment. Rows of kind KNOWN come first, at most one a segment."""
        table = rows.table
        order, first = by_segment(table)
        step = ((table["kind"] << 2) | table["state"].astype(np.uint8))[order]
        before = np.empty_like(step)
        before[1:] = step[:-1]
        before[first] = NOTHING
        starts = np.flatnonzero(first)
        last = np.append(starts[1:], len(order)) - 1
        fine = np.ones(len(starts), np.bool_)
        odd = np.flatnonzero(~_PLAIN[before, step])
        fine[np.searchsorted(starts, odd, "right") - 1] = False
        self._say_wiped(rows, order, first)
        kept = self._plain(rows, order, starts, last, fine)
        parts = [self._replay(rows, order[starts[g] : last[g] + 1]) for g in np.flatnonzero(~fine).tolist()]
        replayed = [one for one in parts if one is not None]
        return joined([kept, *replayed]) if replayed else kept

    def _plain(self, rows: Rows, order: Column, starts: Column, last: Column, fine: Column) -> Rows:
        """The segments that went from step to step as they should."""
        base, final = order[starts], order[last]
        keep = fine if self.keep_deleted else fine & (rows.table["state"][final] != DELETED)
        kept = merged(rows, base[keep], final[keep])
        between = np.maximum(last - starts - 1, 0)[keep]
        if between.any():
            others = rows.table[order[ranges(starts[keep] + 1, between)]]
            raise_marks(kept, np.repeat(np.arange(len(between)), between), others)
        return kept

    def _say_wiped(self, rows: Rows, order: Column, first: Column) -> None:
        """Custom metadata that a later record does not repeat are gone."""
        if not (rows.table["custom_length"] > 0).any():
            return
        length, old = rows.table["custom_length"][order], rows.table["old_layout"][order]
        wiped = np.flatnonzero(~first[1:] & (length[:-1] > 0) & (length[1:] < 0) & ~old[1:]) + 1
        for at in wiped.tolist():
            place = self._place(rows, int(order[at]))
            self.say(say.METADATA_CUSTOM_WIPED.at(place, size=int(length[at - 1])))

    def _replay(self, rows: Rows, indexes: Column) -> Rows | None:
        """A segment with an illegal step, as a broker's cache would follow it."""
        current: tuple[int, int] | None = None  # the row its copy stands in, and the row of its last step
        state: SegmentState | None = None
        for index in indexes.tolist():
            kind, after = int(rows.table["kind"][index]), SegmentState(int(rows.table["state"][index]))
            # What was deleted is forgotten: its id is as good as new.
            known = None if state is DELETED else state
            if kind == KNOWN or (kind == ADD and after == 0 and may_follow(known, after)):
                current, state = (index, index), after
            elif kind == UPDATE and current and after != 0 and may_follow(state, after):
                current, state = (current[0], index), after
            elif known is None:
                # A deleted segment's last record once more is a repetition, and harmless.
                mild = Severity.INFO if after == DELETED else None
                place = self._place(rows, index)
                self.say(say.METADATA_UNKNOWN_SEGMENT.at(place, severity=mild, after=after.name))
            else:
                place = self._place(rows, index)
                self.say(say.METADATA_STATE_BACKWARDS.at(place, before=known.name, after=after.name))
        if current is None or (state is DELETED and not self.keep_deleted):
            return None
        made = merged(rows, np.array([current[0]]), np.array([current[1]]))
        life = indexes[np.flatnonzero(indexes == current[0])[0] :]
        raise_marks(made, np.zeros(len(life), np.int64), rows.table[life])
        return made

    def _place(self, rows: Rows, index: int) -> Place:
        row = rows.table[index]
        where = self.partitions[int(row["partition"])]
        metadata_partition, offset = int(row["metadata_partition"]), int(row["offset"])
        id_ = int(row["id_high"]) << 64 | int(row["id_low"])
        return Place(
            topic=where.topic,
            partition=where.partition,
            broker_id=int(row["broker_id"]),
            remote_log_segment_id=uuid_text(id_.to_bytes(16, "big")),
            file=None if metadata_partition < 0 else f"{METADATA_TOPIC}-{metadata_partition}",
            base_offset=offset if offset >= 0 else None,
            last_offset=offset if offset >= 0 else None,
        )
