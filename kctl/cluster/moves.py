"""What a plan changes: its moves, and what each broker and rack holds before and after."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kctl.model import TopicPartition

Replicas = tuple[int, ...]
Sizes = Mapping[TopicPartition, int]


class Move(NamedTuple):
    """One partition of a plan. The size is of one replica; None where nothing tells it."""

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


@dataclass(slots=True)
class Holding:
    """What a broker or a rack holds: replicas, partitions that prefer it as leader, bytes."""

    replicas: int = 0
    leaders: int = 0
    size_in_bytes: int = 0


def holdings(
    replicas: Mapping[TopicPartition, Replicas], sizes: Sizes | None, brokers: Iterable[int] = ()
) -> dict[int, Holding]:
    """By broker id, the named ones even if they hold nothing."""
    found = {broker: Holding() for broker in brokers}
    for tp, ids in replicas.items():
        size = sizes.get(tp, 0) if sizes else 0
        for place, broker in enumerate(ids):
            one = found.setdefault(broker, Holding())
            one.replicas += 1
            one.leaders += place == 0
            one.size_in_bytes += size
    return dict(sorted(found.items()))


def by_rack(held: Mapping[int, Holding], racks: Mapping[int, str | None]) -> dict[str, Holding]:
    """The same by rack; brokers without one are left out."""
    found: dict[str, Holding] = {}
    for broker, one in held.items():
        rack = racks.get(broker)
        if rack is not None:
            total = found.setdefault(rack, Holding())
            total.replicas += one.replicas
            total.leaders += one.leaders
            total.size_in_bytes += one.size_in_bytes
    return dict(sorted(found.items()))


def seconds_to_move(moves: Iterable[Move], rate: int) -> int:
    """How long the busiest broker needs at so many bytes a second, in and out counted apart."""
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
