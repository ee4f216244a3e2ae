"""Old consumers (up to 1.x), which keep everything in ZooKeeper: what a group owns, and what it should own.

A thread is `MEMBER-N`, sorted as a string, so `c-10` comes before `c-2`. Range deals each topic by itself to the threads
that subscribe to it, so that the first threads get more of every topic; surplus threads get nothing. Round robin sorts
all partitions by Java's hash of `[topic,partition]`, signed, and wants every thread to read the same topics. Patterns
(white and black lists) are Java regular expressions over topic names; commas mean `or`.

Source: core/src/main/scala/kafka/consumer/{PartitionAssignor,TopicCount,TopicFilter}.scala @ 0.8.2.1
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from formats.values import Struct, field
from kctl.cluster.state import ClusterState
from kctl.errors import Refused
from kctl.model import TopicPartition


class OldMember(Struct, frozen=True, kw_only=True):
    """A registered consumer. `subscription`: streams by topic, or by the pattern where `pattern` is not static."""

    member_id: str
    subscription: Mapping[str, int]
    pattern: str = "static"
    registered_at: int | None = None  # milliseconds


class OldGroup(Struct, frozen=True, kw_only=True):
    """A group: its registered members, the owner and the offset of each partition."""

    name: str
    members: tuple[OldMember, ...] = ()
    owners: Mapping[TopicPartition, str] = field(default_factory=dict)
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def thread_names(consumers: Mapping[str, int]) -> list[str]:
    """The threads of consumers, given the number of streams of each, in the order that assignment uses."""
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


ALGORITHMS = ("range", "roundrobin")


class Dealt(NamedTuple):
    """A partition and the thread that an algorithm assigns it to; either may be None."""

    thread: str | None
    partition: TopicPartition | None


def topics_of(group: OldGroup) -> list[str]:
    """The names of all topics in a group's subscriptions, owners and offsets."""
    static = {t for m in group.members if m.pattern == "static" for t in m.subscription}
    return sorted({tp.topic for tp in (*group.owners, *group.offsets)} | static)


def streams(member: OldMember, topic_names: Sequence[str]) -> dict[str, int]:
    """The number of the member's threads by topic, with patterns resolved."""
    if member.pattern == "static":
        return dict(member.subscription)
    streams: dict[str, int] = {}
    for pattern, count in member.subscription.items():
        try:
            expression = re.compile(pattern.strip().replace(",", "|").replace(" ", "").strip("\"'"))
        except re.error:
            continue
        for topic in topic_names:
            matches = expression.fullmatch(topic) is not None
            if matches is (member.pattern == "white_list"):
                streams[topic] = count
    return streams


def deal(group: OldGroup, state: ClusterState, algorithm: str) -> Iterator[Dealt]:
    """The assignment of an algorithm to the group's present members. Raises Refused if round robin would."""
    subscriptions = {m.member_id: streams(m, state.topic_names) for m in group.members}
    if algorithm == "roundrobin":
        yield from _round_robin(group.name, subscriptions, state)
        return
    for topic in sorted({t for topics in subscriptions.values() for t in topics}):
        read_topic = state.topics.get(topic)
        threads = thread_names({m: topics[topic] for m, topics in subscriptions.items() if topic in topics})
        for thread, partitions in range_assignment(
            threads, read_topic.partitions if read_topic else ()
        ).items():
            yield from (Dealt(thread, TopicPartition(topic, p)) for p in partitions)
            if not partitions:
                yield Dealt(thread, None)


def _round_robin(
    name: str, subscriptions: Mapping[str, Mapping[str, int]], state: ClusterState
) -> Iterator[Dealt]:
    if not equal_subscriptions(subscriptions):
        raise Refused(
            f"round robin needs all members of {name} to read the same topics with the same number of threads",
            "`kctl consumer describe` shows what each reads; range assignment has no such condition",
        )
    shared_topics = next(iter(subscriptions.values()), {})
    partitions = [
        TopicPartition(topic, p)
        for topic in shared_topics
        if topic in state.topics
        for p in state.topics[topic].partitions
    ]
    counts = {member: max(topics.values(), default=0) for member, topics in subscriptions.items()}
    for thread, owned in round_robin_assignment(thread_names(counts), partitions).items():
        yield from (Dealt(thread, tp) for tp in owned)
        if not owned:
            yield Dealt(thread, None)


def member_of(thread: str) -> str:
    """The member that a thread belongs to."""
    return thread.rpartition("-")[0]
