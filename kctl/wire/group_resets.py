"""The offsets that a reset gives a group, computed from its present ones and the logs; nothing is written here."""

import csv
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from formats.values import Struct
from kctl.changes.kinds.groups import GroupOffset
from kctl.cluster.interface import Cluster
from kctl.cluster.names import partitions_named, topics_named
from kctl.errors import BadValue, KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import Leaderless, Wire
from kctl.wire.groups import ConsumerGroup, find_group, read_offsets, watermarks
from kctl.wire.replicas.fetching import EARLIEST


class ResetGoal(Struct, frozen=True, kw_only=True):
    """The target of a reset; one field is set. `time` is milliseconds."""

    earliest: bool = False
    latest: bool = False
    current: bool = False
    offset: int | None = None
    shift: int | None = None
    time: int | None = None
    listed: Mapping[TopicPartition, int] | None = None

    @property
    def count(self) -> int:
        """The number of fields that are set."""
        flags = self.earliest, self.latest, self.current
        return sum(flags) + sum(v is not None for v in (self.offset, self.shift, self.time, self.listed))


class Reset(NamedTuple):
    """A partition's offset before (None: none) and after."""

    partition: TopicPartition
    offset: int | None
    new_offset: int
    was_outside: bool

    @property
    def change(self) -> int | None:
        """The change of the offset; None if there was none."""
        return None if self.offset is None else self.new_offset - self.offset

    @property
    def skips(self) -> int | None:
        """Records that the group does not read."""
        return None if self.change is None else max(0, self.change)

    @property
    def repeats(self) -> int | None:
        """Records that the group reads again."""
        return None if self.change is None else max(0, -self.change)


def parse_offsets(text: str, name: str) -> dict[TopicPartition, int]:
    """Lines `TOPIC,PARTITION,OFFSET` of a file, as in Kafka's own tool. Raises BadValue."""
    offsets: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        if not row:
            continue
        if len(row) != 3 or not all(part.strip().isdecimal() for part in row[1:]) or not row[0].strip():
            raise BadValue(
                f"{name}:{number}: {','.join(row)[:100]!r} is not TOPIC,PARTITION,OFFSET",
                "correct that line; `kctl group export` writes such files",
            )
        tp = TopicPartition(row[0].strip(), int(row[1]))
        if tp in offsets:
            raise BadValue(f"{name}:{number}: {tp} is listed twice", "remove one of the lines")
        offsets[tp] = int(row[2])
    if not offsets:
        raise BadValue(
            f"{name} lists no offset", "write lines TOPIC,PARTITION,OFFSET, as `kctl group export` does"
        )
    return offsets


def resets_to(wire: Wire, present: Mapping[TopicPartition, int | None], goal: ResetGoal) -> list[Reset]:
    """The new offset of each partition, inside its log. Raises KctlError where a partition has no leader."""
    partitions = list(present)
    starts, ends = watermarks(wire, partitions, EARLIEST), watermarks(wire, partitions)
    times = watermarks(wire, partitions, goal.time) if goal.time is not None else {}
    resets = []
    for tp, now in present.items():
        if tp not in starts or tp not in ends:
            raise Leaderless(f"{tp} has no leader, so the start and end of its log are unknown")
        if goal.earliest:
            target = starts[tp]
        elif goal.offset is not None:
            target = goal.offset
        elif goal.listed is not None:
            target = goal.listed[tp]
        elif goal.shift is not None:
            if now is None:
                raise KctlError(
                    f"{tp}: the group has no offset to shift",
                    "give it an offset with --to-offset, --to-earliest or --to-latest",
                )
            target = now + goal.shift
        elif goal.current and now is not None:
            target = now
        elif goal.time is not None and times.get(tp, -1) >= 0:
            target = times[tp]
        else:
            target = ends[tp]  # also if no record is as late as that time
        inside = min(max(target, starts[tp]), ends[tp])
        resets.append(Reset(tp, now, inside, inside != target))
    return resets


class ChosenReset(NamedTuple):
    """A group, its present offsets, and the resets."""

    group: ConsumerGroup | None  # None: no such group yet
    present: Mapping[TopicPartition, GroupOffset]
    resets: tuple[Reset, ...]


def choose_reset(
    cluster: Cluster, wire: Wire, group: str, topics: Sequence[str], goal: ResetGoal
) -> ChosenReset:
    """The resets of the named partitions, or else of all in which the group has offsets.

    Raises KctlError for an unknown group, unless the partitions are named: then the offsets create it.
    """
    described = find_group(wire, group)
    if described is None and not topics and goal.listed is None:
        raise KctlError(
            f"no group {group}",
            "`kctl group list` lists the groups; with --topic you can set offsets before it has members",
        )
    present = read_offsets(wire, described) if described else {}
    if topics:
        state = cluster.read_state(topics_named(topics), recent=True)
        partitions = partitions_named(topics, state)
    else:
        partitions = sorted(present if goal.listed is None else goal.listed)
    if goal.listed is not None:
        partitions = [tp for tp in partitions if tp in goal.listed]
    now = {tp: present[tp].offset if tp in present else None for tp in partitions}
    return ChosenReset(described, present, tuple(resets_to(wire, now, goal)))
