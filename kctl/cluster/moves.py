"""The effects of a plan: its moves, the replicas of each broker and rack before and after, and its batches."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from formats.values import Struct
from kctl.cluster.state import ClusterState, Replicas
from kctl.model import TopicPartition


def moving_targets(state: ClusterState) -> dict[TopicPartition, Replicas]:
    """The targets of all running moves: from the request, and from 2.4 on from the topics."""
    targets = {
        TopicPartition(name, partition): topic.target_replicas(partition)
        for name, topic in state.topics.items()
        for partition in topic.adding_replicas.keys() | topic.removing_replicas.keys()
        if topic.is_reassigning(partition)
    }
    if state.reassignment is not None:
        targets |= {tp: r for tp, r in state.reassignment.partitions.items() if tp not in targets}
    return dict(sorted(targets.items()))


Sizes = Mapping[TopicPartition, int]


class ReplicaSize(NamedTuple):
    """The size of one replica; the broker is None if unknown."""

    partition: TopicPartition
    broker_id: int | None
    size_in_bytes: int


def by_replica(replicas: Iterable[ReplicaSize]) -> dict[tuple[TopicPartition, int], int]:
    """Sizes by partition and broker; those with an unknown broker are left out."""
    sizes: dict[tuple[TopicPartition, int], int] = {}
    for partition, broker_id, size in replicas:
        if broker_id is not None:
            key = partition, broker_id
            sizes[key] = max(sizes.get(key, 0), size)
    return sizes


class Move(NamedTuple):
    """One partition of a plan. The size is of one replica; None if unknown."""

    partition: TopicPartition
    origin: Replicas
    target: Replicas
    size_in_bytes: int | None

    @property
    def adding(self) -> Replicas:
        """Brokers that get the data."""
        return tuple(b for b in self.target if b not in self.origin)

    @property
    def removing(self) -> Replicas:
        """Brokers that lose it."""
        return tuple(b for b in self.origin if b not in self.target)

    @property
    def data(self) -> int:
        """Bytes that are copied."""
        return (self.size_in_bytes or 0) * len(self.adding)


def moves_of(
    targets: Mapping[TopicPartition, Replicas],
    origins: Mapping[TopicPartition, Replicas],
    sizes: Sizes | None = None,
) -> Iterator[Move]:
    """The partitions of a plan whose replicas change, order included, by topic and number."""
    for tp, target in sorted(targets.items()):
        origin = origins.get(tp, ())
        if origin != target:
            yield Move(tp, origin, target, None if sizes is None else sizes.get(tp))


class Holding(Struct):
    """The contents of a broker or a rack: replicas, partitions that prefer it as leader, bytes."""

    replicas: int = 0
    leaders: int = 0
    size_in_bytes: int = 0


def holdings(
    replicas: Mapping[TopicPartition, Replicas], sizes: Sizes | None, brokers: Iterable[int] = ()
) -> dict[int, Holding]:
    """The holding of each broker; `brokers` are included without replicas too."""
    holdings = {broker: Holding() for broker in brokers}
    for tp, ids in replicas.items():
        size = sizes.get(tp, 0) if sizes else 0
        for position, broker in enumerate(ids):
            holding = holdings.setdefault(broker, Holding())
            holding.replicas += 1
            holding.leaders += position == 0
            holding.size_in_bytes += size
    return dict(sorted(holdings.items()))


def by_rack(broker_holdings: Mapping[int, Holding], racks: Mapping[int, str | None]) -> dict[str, Holding]:
    """The same by rack; brokers without one are left out."""
    rack_holdings: dict[str, Holding] = {}
    for broker, holding in broker_holdings.items():
        rack = racks.get(broker)
        if rack is not None:
            total = rack_holdings.setdefault(rack, Holding())
            total.replicas += holding.replicas
            total.leaders += holding.leaders
            total.size_in_bytes += holding.size_in_bytes
    return dict(sorted(rack_holdings.items()))


def seconds_to_move(moves: Iterable[Move], rate: int) -> int:
    """The seconds that the busiest broker needs at a rate of bytes a second; in and out count separately."""
    incoming: dict[int, int] = {}
    outgoing: dict[int, int] = {}
    for move in moves:
        for broker in move.adding:
            incoming[broker] = incoming.get(broker, 0) + (move.size_in_bytes or 0)
        if move.origin:
            leader = move.origin[0]
            outgoing[leader] = outgoing.get(leader, 0) + move.data
    busiest = max([*incoming.values(), *outgoing.values()], default=0)
    return -(-busiest // max(rate, 1))


DEFAULT_BATCH_BYTES = 500_000  # of the encoded request; ZooKeeper takes a little above 1,000,000
EMPTY_REQUEST = 33  # {"version":1,"partitions":[]} and a byte or two


def encoded_size(tp: TopicPartition, replicas: Replicas) -> int:
    """Bytes of one partition in a request, its comma included."""
    ids = sum(len(str(broker)) + 1 for broker in replicas) - 1
    return len('{"topic":"","partition":,"replicas":[]},') + len(tp.topic) + len(str(tp.partition)) + ids


def cut(
    targets: Mapping[TopicPartition, Replicas],
    data: Mapping[TopicPartition, int],
    *,
    most_bytes: int = DEFAULT_BATCH_BYTES,
    most_data: int | None = None,
    most_moves: int | None = None,
) -> list[dict[TopicPartition, Replicas]]:
    """A plan cut into batches, each small enough for one request and moving no more data than asked.

    A ZooKeeper controller takes one request at a time and a batch ends with its slowest partition, so batches by data
    are made of about the same size, largest partitions first. `data`: bytes that move for a partition, 0 where none. One partition
    always fits, however large.
    """
    room = most_bytes - EMPTY_REQUEST
    sizes = {tp: encoded_size(tp, replicas) for tp, replicas in targets.items()}
    batches: list[_Batch] = []
    if most_data is None:
        order = sorted(targets)
    else:
        total = sum(data.get(tp, 0) for tp in targets)
        order = sorted(targets, key=lambda tp: (-data.get(tp, 0), tp))
        batches = [_Batch() for _ in range(max(1, -(-total // most_data)))]
    for tp in order:
        item = sizes[tp], data.get(tp, 0)
        # Without a bound on data only the newest batch is tried: one pass, and partitions stay together.
        candidates = batches[-1:] if most_data is None else sorted(batches, key=lambda b: b.data)
        batch = next((batch for batch in candidates if batch.takes(item, room, most_data, most_moves)), None)
        if batch is None:
            batch = _Batch()
            batches.append(batch)
        batch.add(tp, *item)
    return [{tp: targets[tp] for tp in sorted(batch.partitions)} for batch in batches if batch.partitions]


class _Batch:
    def __init__(self) -> None:
        self.partitions: list[TopicPartition] = []
        self.size = self.data = 0

    def takes(self, item: tuple[int, int], room: int, most_data: int | None, most_moves: int | None) -> bool:
        if not self.partitions:
            return True
        return (
            self.size + item[0] <= room
            and (most_data is None or self.data + item[1] <= most_data)
            and (most_moves is None or len(self.partitions) < most_moves)
        )

    def add(self, tp: TopicPartition, size: int, data: int) -> None:
        self.partitions.append(tp)
        self.size += size
        self.data += data


def ids(brokers: Iterable[int]) -> str:
    """Broker ids as text: `1, 2, 5`."""
    return ", ".join(map(str, sorted(brokers)))
