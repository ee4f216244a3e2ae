"""Which offsets a reset gives a group: worked out from its present ones and its logs; nothing is written here."""

import csv
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from formats.values import Struct
from kctl.changes.intents import GroupOffset
from kctl.cluster.interface import Cluster
from kctl.cluster.names import partitions_named, topics_named
from kctl.errors import BadValue, KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import Leaderless, Wire
from kctl.wire.groups import ConsumerGroup, find_group, read_offsets, watermarks
from kctl.wire.replicas.fetching import EARLIEST


class ResetGoal(Struct, frozen=True, kw_only=True):
    """Where to put offsets; one of these. `time` is milliseconds."""

    earliest: bool = False
    latest: bool = False
    current: bool = False
    offset: int | None = None
    shift: int | None = None
    time: int | None = None
    listed: Mapping[TopicPartition, int] | None = None

    @property
    def count(self) -> int:
        """How many were given."""
        flags = self.earliest, self.latest, self.current
        return sum(flags) + sum(v is not None for v in (self.offset, self.shift, self.time, self.listed))


class Reset(NamedTuple):
    """A partition's offset now (None: none) and then."""

    partition: TopicPartition
    offset: int | None
    new_offset: int
    was_outside: bool

    @property
    def change(self) -> int | None:
        """By how many records; None where there was no offset."""
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
    """Lines `TOPIC,PARTITION,OFFSET` of a file, as Kafka's own tool reads and writes them. Raises BadValue."""
    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        if not row:
            continue
        if len(row) != 3 or not all(part.strip().isdecimal() for part in row[1:]) or not row[0].strip():
            raise BadValue(
                f"{name}:{number}: {','.join(row)[:100]!r} is not TOPIC,PARTITION,OFFSET",
                "correct that line; `kctl group export` writes such files",
            )
        tp = TopicPartition(row[0].strip(), int(row[1]))
        if tp in found:
            raise BadValue(f"{name}:{number}: {tp} is listed twice", "remove one of the lines")
        found[tp] = int(row[2])
    if not found:
        raise BadValue(
            f"{name} lists no offset", "write lines TOPIC,PARTITION,OFFSET, as `kctl group export` does"
        )
    return found


def resets_to(wire: Wire, present: Mapping[TopicPartition, int | None], goal: ResetGoal) -> list[Reset]:
    """The new offset of each partition, inside its log. Raises KctlError where a partition has no leader."""
    partitions = list(present)
    starts, ends = watermarks(wire, partitions, EARLIEST), watermarks(wire, partitions)
    times = watermarks(wire, partitions, goal.time) if goal.time is not None else {}
    found = []
    for tp, now in present.items():
        if tp not in starts or tp not in ends:
            raise Leaderless(f"{tp} has no leader, so the start and end of its log are unknown")
        if goal.earliest:
            wanted = starts[tp]
        elif goal.offset is not None:
            wanted = goal.offset
        elif goal.listed is not None:
            wanted = goal.listed[tp]
        elif goal.shift is not None:
            if now is None:
                raise KctlError(
                    f"{tp}: the group has no offset to shift",
                    "give it an offset with --to-offset, --to-earliest or --to-latest",
                )
            wanted = now + goal.shift
        elif goal.current and now is not None:
            wanted = now
        elif goal.time is not None and times.get(tp, -1) >= 0:
            wanted = times[tp]
        else:
            wanted = ends[tp]  # also where no record is of that time or later
        inside = min(max(wanted, starts[tp]), ends[tp])
        found.append(Reset(tp, now, inside, inside != wanted))
    return found


class ChosenReset(NamedTuple):
    """A group and its offsets as they are now, and where each is to go."""

    group: ConsumerGroup | None  # None: no such group yet
    present: Mapping[TopicPartition, GroupOffset]
    resets: tuple[Reset, ...]


def choose_reset(
    cluster: Cluster, wire: Wire, group: str, topics: Sequence[str], goal: ResetGoal
) -> ChosenReset:
    """The resets of the partitions named, else of all that the group has offsets of.

    Raises KctlError for an unknown group, unless the partitions are named: then its offsets make it.
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
