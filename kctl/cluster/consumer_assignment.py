"""Which thread of an old ZooKeeper consumer owns which partition: `range` and `roundrobin`.

Threads are `CONSUMER-N` sorted as strings, so `c-10` comes before `c-2`. Range deals each topic by itself, so
that the first threads get more of every topic; surplus threads get nothing. Round robin sorts all partitions
by Java's hash of `[topic,partition]`, signed, and wants every thread to read the same topics.

Source: core/src/main/scala/kafka/consumer/PartitionAssignor.scala @ 0.8.2.1
"""

from collections.abc import Iterable, Mapping, Sequence

from kctl.model import TopicPartition


def thread_names(consumers: Mapping[str, int]) -> list[str]:
    """The threads of consumers with so many streams each, in the order that counts."""
    return sorted(f"{consumer}-{n}" for consumer, count in consumers.items() for n in range(count))


def range_assignment(threads: Iterable[str], partitions: Iterable[int]) -> dict[str, list[int]]:
    """Partitions of one topic by thread; threads left over have none."""
    ordered, numbers = sorted(threads), sorted(partitions)
    if not ordered:
        return {}
    each, more = divmod(len(numbers), len(ordered))
    result, position = {}, 0
    for index, thread in enumerate(ordered):
        count = each + (index < more)
        result[thread] = numbers[position : position + count]
        position += count
    return result


def round_robin_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """All partitions in the order in which round robin deals them."""
    return sorted(partitions, key=lambda tp: (java_hash(f"[{tp.topic},{tp.partition}]"), tp))


def round_robin_assignment(
    threads: Iterable[str], partitions: Iterable[TopicPartition]
) -> dict[str, list[TopicPartition]]:
    """Partitions of all topics by thread."""
    ordered = sorted(threads)
    result: dict[str, list[TopicPartition]] = {thread: [] for thread in ordered}
    for index, tp in enumerate(round_robin_order(partitions) if ordered else ()):
        result[ordered[index % len(ordered)]].append(tp)
    return result


def equal_subscriptions(subscriptions: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether round robin may be used: every consumer reads the same topics with the same number of threads."""
    kinds: Sequence[Mapping[str, int]] = list(subscriptions.values())
    return all(kind.keys() == kinds[0].keys() for kind in kinds) and all(
        len(set(kind.values())) <= 1 for kind in kinds
    )


def java_hash(text: str) -> int:
    """`String.hashCode`: of UTF-16 units, as a signed 32-bit number."""
    value = 0
    units = text.encode("utf-16-be")
    for index in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[index : index + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
