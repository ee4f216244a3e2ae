"""Where the offsets of a group would be put: worked out from the logs, written nowhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import Wire
from kctl.wire.fetching import CONSUMER, EARLIEST, LATEST, list_offsets
from kctl.wire.reading import read_cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Where to put offsets; one of these. `time` is milliseconds."""

    earliest: bool = False
    latest: bool = False
    offset: int | None = None
    shift: int | None = None
    time: int | None = None

    @property
    def count(self) -> int:
        """How many were given."""
        return sum(
            (self.earliest, self.latest, *(v is not None for v in (self.offset, self.shift, self.time)))
        )


class Reset(NamedTuple):
    """A partition's offset now and then."""

    partition: TopicPartition
    offset: int
    new_offset: int
    was_outside: bool


def watermarks(
    wire: Wire, partitions: Sequence[TopicPartition], place: int = LATEST
) -> dict[TopicPartition, int]:
    """The high watermark, or another place, of partitions as their leaders tell it; without a leader left out."""
    state = read_cluster(wire, {tp.topic for tp in partitions})
    led = [
        (found.leader, tp)
        for tp in partitions
        if (found := state.partition_states.get(tp)) is not None and found.leader >= 0
    ]
    offsets = list_offsets(wire, led, place, replica_id=CONSUMER)
    return {tp: offset for (_, tp), offset in offsets.items() if isinstance(offset, int)}


def plan_reset(wire: Wire, committed: Mapping[TopicPartition, int], goal: Goal) -> list[Reset]:
    """The new offset of each partition, inside its log. Raises KctlError where a partition has no leader."""
    partitions = list(committed)
    starts, ends = watermarks(wire, partitions, EARLIEST), watermarks(wire, partitions)
    times = watermarks(wire, partitions, goal.time) if goal.time is not None else {}
    found = []
    for tp, present in committed.items():
        if tp not in starts or tp not in ends:
            raise KctlError(f"{tp} has no leader, so nobody tells where its log begins and ends")
        if goal.earliest:
            wanted = starts[tp]
        elif goal.offset is not None:
            wanted = goal.offset
        elif goal.shift is not None:
            wanted = present + goal.shift
        elif goal.time is not None and times.get(tp, -1) >= 0:
            wanted = times[tp]
        else:
            wanted = ends[tp]  # also where no record is of that time or later
        inside = min(max(wanted, starts[tp]), ends[tp])
        found.append(Reset(tp, present, inside, inside != wanted))
    return found
