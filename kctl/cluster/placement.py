"""The placement of new replicas, identical to the broker's own choice for the same draws.

Two numbers are drawn, the start index first and the shift second; everything else follows from the sorted
ids and racks. The shift grows by one every time the partition ids have gone once round the brokers.

Source: core/src/main/scala/kafka/admin/AdminUtils.scala @ 0.8.2.1, 0.10.0.1, 2.8.2;
server-common/src/main/java/org/apache/kafka/admin/AdminUtils.java @ 3.9.0-rc3; KIP-36
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from formats.values import Struct
from formats.words import counted
from kctl.errors import BadValue, Refused

Assignment = dict[int, tuple[int, ...]]
Racks = Mapping[int, str | None]  # every broker that may be chosen, with its rack if it has one


class Draws(Struct, frozen=True):
    """The two random numbers of an assignment."""

    start_index: int
    next_replica_shift: int


def draw(brokers: int, random: Random) -> Draws:
    """Draws for `brokers` brokers, in Kafka's order."""
    start_index = random.randrange(brokers)
    return Draws(start_index, random.randrange(brokers))


def place_replicas(
    racks: Racks, partitions: int, replication_factor: int, draws: Draws, *, first_partition_id: int = 0
) -> Assignment:
    """Replicas by partition id, the preferred one first; rack-aware where every broker has a rack."""
    check_counts(racks, partitions, replication_factor)
    if is_rack_aware(racks):
        return _place_rack_aware(racks, partitions, replication_factor, draws, first_partition_id)
    brokers = sorted(racks)
    count = len(brokers)
    assignment: Assignment = {}
    for partition, shift in _shifts(first_partition_id, partitions, draws.next_replica_shift, count):
        first = (partition + draws.start_index) % count
        followers = (brokers[_follower_index(first, shift, j, count)] for j in range(replication_factor - 1))
        assignment[partition] = (brokers[first], *followers)
    return assignment


def check_counts(racks: Racks, partitions: int, replication_factor: int) -> None:
    """Raise BadValue for counts below one, Refused for more replicas than brokers."""
    if partitions <= 0:
        raise BadValue(
            f"{counted(partitions, 'partition')}; the number of partitions must be larger than 0",
            "give 1 or more",
        )
    if replication_factor <= 0:
        raise BadValue(f"replication factor {replication_factor}; it must be larger than 0", "give 1 or more")
    if replication_factor > len(racks):
        raise Refused(
            f"replication factor {replication_factor} is larger than the {len(racks)} available brokers "
            f"({', '.join(map(str, sorted(racks))) or 'none'})",
            "start more brokers, or give a smaller factor",
        )


def is_rack_aware(racks: Racks) -> bool:
    """Whether racks decide: all brokers have one. Raises Refused if only some do, as Kafka's tools do."""
    without = sorted(broker for broker, rack in racks.items() if rack is None)
    if without and len(without) < len(racks):
        raise Refused(
            f"brokers {', '.join(map(str, without))} have no rack, but others have one",
            "give them one, or ask for placement without racks",
        )
    return bool(racks) and not without


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """Broker ids by taking one of each rack in turn, racks by name, ids ascending, empty racks skipped."""
    queues: dict[str, deque[int]] = {rack: deque() for rack in sorted(set(racks.values()))}
    for broker in sorted(racks):
        queues[racks[broker]].append(broker)
    order: list[int] = []
    while len(order) < len(racks):
        order += [queue.popleft() for queue in queues.values() if queue]
    return order


def draws_for_added(racks: Racks, first_replicas: Sequence[int], *, by_broker_id: bool = False) -> Draws:
    """Draws for partitions added to a topic whose partition 0 has these replicas.

    The index, among the sorted ids, of the first id not below partition 0's preferred replica. Up to 0.9
    (`by_broker_id`) Kafka took that broker id itself for an index (KAFKA-2146).
    """
    first = first_replicas[0]
    if by_broker_id:
        return Draws(first, first)
    index = next((i for i, broker in enumerate(sorted(racks)) if broker >= first), 0)
    return Draws(index, index)


def _place_rack_aware(
    racks: Racks, partitions: int, replication_factor: int, draws: Draws, first_partition_id: int
) -> Assignment:
    rack_of = {broker: rack for broker, rack in racks.items() if rack is not None}
    brokers = rack_alternated(rack_of)
    rack_count = len(set(rack_of.values()))
    count = len(brokers)
    assignment: Assignment = {}
    for partition, shift in _shifts(first_partition_id, partitions, draws.next_replica_shift, count):
        first = (partition + draws.start_index) % count
        replicas = [brokers[first]]
        used_racks = {rack_of[brokers[first]]}
        tries = 0
        while len(replicas) < replication_factor:
            # The counter goes on over rejected candidates and over replicas.
            broker = brokers[_follower_index(first, shift * rack_count, tries, count)]
            tries += 1
            rack_is_taken = rack_of[broker] in used_racks and len(used_racks) < rack_count
            if not rack_is_taken and broker not in replicas:
                replicas.append(broker)
                used_racks.add(rack_of[broker])
        assignment[partition] = tuple(replicas)
    return assignment


def _shifts(first_id: int, partitions: int, shift: int, brokers: int) -> Iterator[tuple[int, int]]:
    """Partition ids with the shift in force at each."""
    first_id = max(0, first_id)
    for partition in range(first_id, first_id + partitions):
        if partition > 0 and partition % brokers == 0:
            shift += 1
        yield partition, shift


def _follower_index(first: int, shift: int, replica: int, brokers: int) -> int:
    return (first + 1 + (shift + replica) % (brokers - 1)) % brokers
