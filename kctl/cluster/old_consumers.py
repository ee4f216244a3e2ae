"""What the old consumers of a group own and should own, and how far behind they are.

A thread is `MEMBER-N`; range deals each topic to the threads that subscribe to it, round robin all topics to all
threads. Patterns (white and black lists) are Java regular expressions over topic names; commas mean `or`.

Source: core/src/main/scala/kafka/consumer/{PartitionAssignor,TopicCount,TopicFilter}.scala @ 0.8.2.1
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kctl.cluster.consumer_assignment import (
    equal_subscriptions,
    range_assignment,
    round_robin_assignment,
    thread_names,
)
from kctl.cluster.old_groups import OldGroup, OldMember
from kctl.cluster.state import ClusterState
from kctl.errors import Refused
from kctl.model import TopicPartition

ALGORITHMS = ("range", "roundrobin")


class Dealt(NamedTuple):
    """One partition and the thread an algorithm gives it to; either may be None: left over."""

    thread: str | None
    partition: TopicPartition | None


def topics_of(group: OldGroup) -> list[str]:
    """Every topic that a group has to do with by name."""
    static = {t for m in group.members if m.pattern == "static" for t in m.subscription}
    return sorted({tp.topic for tp in (*group.owners, *group.offsets)} | static)


def streams(member: OldMember, topic_names: Sequence[str]) -> dict[str, int]:
    """How many threads of the member read each topic, patterns resolved."""
    if member.pattern == "static":
        return dict(member.subscription)
    found: dict[str, int] = {}
    for pattern, count in member.subscription.items():
        try:
            expression = re.compile(pattern.strip().replace(",", "|").replace(" ", "").strip("\"'"))
        except re.error:
            continue
        for topic in topic_names:
            matches = expression.fullmatch(topic) is not None
            if matches is (member.pattern == "white_list"):
                found[topic] = count
    return found


def deal(group: OldGroup, state: ClusterState, algorithm: str) -> Iterator[Dealt]:
    """What an algorithm makes of the group's members now. Raises Refused where round robin would."""
    subscriptions = {m.member_id: streams(m, state.topic_names) for m in group.members}
    if algorithm == "roundrobin":
        yield from _round_robin(group.name, subscriptions, state)
        return
    for topic in sorted({t for wanted in subscriptions.values() for t in wanted}):
        found = state.topics.get(topic)
        threads = thread_names({m: wanted[topic] for m, wanted in subscriptions.items() if topic in wanted})
        for thread, partitions in range_assignment(threads, found.partitions if found else ()).items():
            yield from (Dealt(thread, TopicPartition(topic, p)) for p in partitions)
            if not partitions:
                yield Dealt(thread, None)


def _round_robin(
    name: str, subscriptions: Mapping[str, Mapping[str, int]], state: ClusterState
) -> Iterator[Dealt]:
    if not equal_subscriptions(subscriptions):
        raise Refused(
            f"round robin wants all members of {name} to read the same topics with the same number of threads"
        )
    wanted = next(iter(subscriptions.values()), {})
    partitions = [
        TopicPartition(topic, p)
        for topic in wanted
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
