"""The state that a segment's records leave it in, for all segments of a chunk at once.

Events are sorted by segment id, and each step is judged by a table of transitions. Only segments with an
illegal step are replayed one record at a time, as a broker's cache would follow them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formats.message_schema import uuid_text
from formats.remote_log_metadata import SegmentState, TopicIdPartition
from formats.remote_metadata_columns import COPY, UPDATE
from kctl.findings import Place, Severity
from kctl.findings import remote as say
from kctl.remote.fold_events import Column, Events
from kctl.remote.fold_rows import Segments
from kctl.remote.metadata_log import METADATA_TOPIC, Say
from kctl.remote.states import may_follow

DELETED = SegmentState.DELETE_SEGMENT_FINISHED
# A step is 4 * kind + state. What is known of a segment comes before its first one, or nothing does.
KNOWN, NOTHING = 2, 12
STEPS = 8  # of both kinds of events
# What an event of a state leaves behind whatever becomes of it: the greatest offset holds.
MARKS = {
    "finished_offset": SegmentState.COPY_SEGMENT_FINISHED,
    "deleting_offset": SegmentState.DELETE_SEGMENT_STARTED,
}


def _is_plain(before: int, step: int) -> bool:
    """Whether a step needs no second look; a copy that is said to start once more does."""
    kind, state = divmod(step, 4)
    if before == NOTHING:
        return kind == COPY and state == 0
    return kind == UPDATE and state != 0 and may_follow(SegmentState(before % 4), SegmentState(state))


_PLAIN = np.array([_is_plain(before, step) for before in range(NOTHING + 1) for step in range(STEPS)])


@dataclass(slots=True)
class _Groups:
    """The events of a chunk by segment: one item a segment, except for `order`."""

    order: Column  # the events, those of a segment together, oldest first
    starts: Column  # places in `order`
    ends: Column
    rows: Column  # of the segments; -1: none
    places: Column  # as found with the rows
    known: Column  # whether anything is known of them; what was deleted is as good as new

    @property
    def base(self) -> Column:
        """The first event of each."""
        found: Column = self.order[self.starts]
        return found

    @property
    def final(self) -> Column:
        """The last event of each."""
        found: Column = self.order[self.ends - 1]
        return found

    def before(self, column: Column, of_known: Column, of_others: int) -> Column:
        """What stands before each event in a column of events in this order."""
        before: Column = np.empty_like(column)
        before[1:] = column[:-1]
        before[self.starts] = np.where(self.known, of_known, of_others)
        return before


@dataclass(slots=True)
class Folding:
    """Follows events chunk by chunk; what is not as it should be is said."""

    say: Say
    segments: Segments
    partitions: Sequence[TopicIdPartition]
    keep_deleted: bool
    _has_custom: bool = False

    def follow(self, events: Events, chosen: Column | None = None) -> None:
        """Take in the events, or those chosen."""
        groups = self._groups(events, *events.by_segment(chosen))
        if not len(groups.order):
            return
        step = events.step[groups.order]
        state = self.segments.table["state"][groups.rows]
        before = groups.before(step, 4 * KNOWN + state, NOTHING)
        odd = np.flatnonzero(~_PLAIN.take(before * np.uint8(STEPS) + step))
        fine = np.ones(len(groups.starts), np.bool_)
        fine[np.searchsorted(groups.starts, odd, "right") - 1] = False
        self._say_wiped(events, groups, fine, before & 3 != DELETED)
        self._plain(events, groups, fine)
        numbers = np.flatnonzero(~fine)
        for number in numbers[np.argsort(events.row[groups.base[numbers]])].tolist():
            self._replay(events, groups, number)

    def _groups(self, events: Events, order: Column, first: Column) -> _Groups:
        self.segments.make_room(len(order))
        starts = np.flatnonzero(first)
        base = order[starts]
        rows, places = self.segments.find(events.id_high[base], events.id_low[base])
        known = rows >= 0
        if not self.keep_deleted:
            known &= self.segments.table["state"][rows] != DELETED
        return _Groups(order, starts, np.append(starts[1:], len(order)), rows, places, known)

    def _plain(self, events: Events, groups: _Groups, fine: Column) -> None:
        """The segments that went from step to step as they should."""
        final = groups.final
        if self.keep_deleted:
            stays = fine
        else:  # of what is gone nothing more is asked
            gone = (events.step[final] & 3) == DELETED
            stays = fine & ~gone
            self.segments.table["state"][groups.rows[fine & gone & groups.known]] = DELETED
        rows = np.where(stays, groups.rows, -1)
        made = np.flatnonzero(stays & ~groups.known)
        made = made[np.argsort(groups.base[made])]  # read in the order in which they lie
        rows[made] = self.segments.begin(events, groups.base[made], groups.rows[made], groups.places[made])
        there = np.flatnonzero(stays)
        self.segments.replace(events, final[there], rows[there])
        self._mark(events, groups.order, groups.starts, rows)

    def _mark(self, events: Events, which: Column, starts: Column, rows: Column) -> None:
        """Note where events finished copies and began deletions: those from each start on, of segments in `rows`."""
        states, offsets = events.step[which] & 3, events.offset(which)
        for name, state in MARKS.items():
            marks = np.maximum.reduceat(np.where(states == state, offsets, -1), starts)
            there = np.flatnonzero((marks >= 0) & (rows >= 0))
            column = self.segments.table[name]
            column[rows[there]] = np.maximum(column[rows[there]], marks[there])

    def _say_wiped(self, events: Events, groups: _Groups, fine: Column, is_there: Column) -> None:
        """Custom metadata that a later record does not repeat are gone; of fine segments, where an event finds one."""
        self._has_custom |= bool((events.custom_length > 0).any())
        if not self._has_custom:
            return
        length = events.custom_length[groups.order]
        before = groups.before(length, self.segments.table["custom_length"][groups.rows], -1)
        wiped = (before > 0) & (length < 0) & is_there & np.repeat(fine, groups.ends - groups.starts)
        for at in np.flatnonzero(wiped).tolist():
            self._say_one_wiped(events, int(groups.order[at]), int(before[at]))

    def _say_one_wiped(self, events: Events, index: int, before: int) -> None:
        """The same of an event that was taken in, where so many bytes were there before it."""
        if before > 0 and events.custom_length[index] < 0 and events.has_custom[index]:
            self.say(say.METADATA_CUSTOM_WIPED.at(self._place(events, index), size=before))

    def _replay(self, events: Events, groups: _Groups, number: int) -> None:
        """A segment with an illegal step, as a broker's cache would follow it."""
        indexes = groups.order[groups.starts[number] : groups.ends[number]]
        row, is_there = int(groups.rows[number]), bool(groups.known[number])
        state = SegmentState(int(self.segments.table["state"][row])) if is_there else None
        custom = int(self.segments.table["custom_length"][row])
        began = last = -1  # the events that its copy and its last step are from; -1: they were known
        for index in indexes.tolist():
            kind, after = divmod(int(events.step[index]), 4)
            after = SegmentState(after)
            # What was deleted is forgotten: its id is as good as new.
            known = None if state is DELETED else state
            is_copy = kind == COPY and after == 0 and may_follow(known, after)
            if is_copy or (kind == UPDATE and is_there and after != 0 and may_follow(state, after)):
                self._say_one_wiped(events, index, -1 if known is None else custom)
                is_there, began = True, index if is_copy else began
                last, state, custom = index, after, int(events.custom_length[index])
            elif known is None:
                # A deleted segment's last record once more is a repetition, and harmless.
                mild = Severity.INFO if after == DELETED else None
                place = self._place(events, index)
                self.say(say.METADATA_UNKNOWN_SEGMENT.at(place, severity=mild, after=after.name))
            else:
                place = self._place(events, index)
                self.say(say.METADATA_STATE_BACKWARDS.at(place, before=known.name, after=after.name))
        if state is DELETED and not self.keep_deleted:
            is_there = False
            if groups.known[number]:
                self.segments.table["state"][row] = DELETED
        if not is_there:
            return
        rows = np.array([row])
        if began >= 0:
            rows = self.segments.begin(events, np.array([began]), rows, groups.places[number : number + 1])
            indexes = indexes[np.flatnonzero(indexes == began)[0] :]
        if last >= 0:
            self.segments.replace(events, np.array([last]), rows)
        self._mark(events, indexes, np.zeros(1, np.int64), rows)

    def _place(self, events: Events, index: int) -> Place:
        where = self.partitions[int(events.partition[index])]
        metadata_partition, offset = events.metadata_partition, int(events.offset(np.array([index]))[0])
        id_ = int(events.id_high[index]) << 64 | int(events.id_low[index])
        return Place(
            topic=where.topic,
            partition=where.partition,
            broker_id=int(events.broker_id[index]),
            remote_log_segment_id=uuid_text(id_.to_bytes(16, "big")),
            file=None if metadata_partition is None else f"{METADATA_TOPIC}-{metadata_partition}",
            base_offset=offset if offset >= 0 else None,
            last_offset=offset if offset >= 0 else None,
        )
