"""Old consumers, who keep themselves in ZooKeeper: list, describe, assign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commands.connecting import At, reads
from commands.frame import Frame, command
from commands.render import Outcome, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kctl.cluster.interface import Cluster
    from kctl.cluster.old_groups import OldGroup
    from kctl.cluster.state import ClusterState
    from kctl.model import TopicPartition

STATUS = "0 done · 2 wrong usage · 3 no such group, no connection"


@command(
    "list",
    examples="""
    kctl consumer list
    kctl consumer list --snapshot znodes.jsonl --output jsonl
    """,
    status=STATUS,
)
@reads
def list_groups(frame: Frame, at: At) -> Outcome:
    """List the groups of old consumers, with their lag where brokers answer."""
    from kctl.cluster.log_ends import log_end_offsets, total_lag
    from kctl.cluster.old_consumers import topics_of
    from kctl.rows.consumer import GROUP

    with at.open(frame) as cluster:
        groups = cluster.read_old_groups()
        state = cluster.read_state({t for g in groups for t in topics_of(g)}, kafka_version=at.version)
    _report(frame, *groups)
    asked = {tp for group in groups for tp in group.offsets}
    ends = log_end_offsets(asked, state, at.timeout) if at.snapshot is None else {}
    rows = (
        GROUP(
            group=group.name,
            members=len(group.members),
            topics=topics_of(group),
            partitions=len(set(group.owners) | set(group.offsets)),
            lag=total_lag(group.offsets, ends),
        )
        for group in groups
    )
    return Outcome(rows, nothing="no consumer group keeps itself in ZooKeeper")


@command(
    "describe",
    examples="""
    kctl consumer describe billing
    kctl consumer describe billing --output jsonl
    """,
    status=STATUS,
)
@reads
@click.argument("group")
def describe(frame: Frame, at: At, group: str) -> Outcome:
    """Describe a group of old consumers: members, owners, offsets, lag."""
    from kctl.cluster.log_ends import log_end_offsets

    with at.open(frame) as cluster:
        found, state = _find(cluster, at, group)
    _report(frame, found)
    partitions = _partitions(found, state)
    ends = log_end_offsets(partitions, state, at.timeout) if at.snapshot is None else {}
    return Outcome(_described(found, partitions, ends))


def _described(
    group: OldGroup, partitions: list[TopicPartition], ends: dict[TopicPartition, int]
) -> Iterator[Row]:
    from kctl.cluster.log_ends import lag_of
    from kctl.cluster.old_consumers import member_of
    from kctl.rows.consumer import MEMBER, OFFSET

    for member in group.members:
        yield MEMBER(
            group=group.name,
            member_id=member.member_id,
            subscription=dict(member.subscription),
            pattern=member.pattern,
            registered_at=member.registered_at,
        )
    members = {member.member_id for member in group.members}
    for tp in partitions:
        owner = group.owners.get(tp)
        offset, end = group.offsets.get(tp), ends.get(tp)
        yield OFFSET(
            group=group.name,
            topic=tp.topic,
            partition=tp.partition,
            offset=offset,
            log_end_offset=end,
            lag=lag_of(offset, end),
            owner=owner,
            is_member=None if owner is None else member_of(owner) in members,
        )


@command(
    "assign",
    examples="""
    kctl consumer assign billing
    kctl consumer assign billing --algorithm roundrobin
    """,
    status=STATUS + " · 4 round robin would refuse the group",
)
@reads
@click.argument("group")
@click.option(
    "--algorithm",
    type=click.Choice(("range", "roundrobin")),
    default="range",
    show_default=True,
    help="Of the consumer.",
)
def assign(frame: Frame, at: At, group: str, algorithm: str) -> Outcome:
    """Show which thread of a group an algorithm gives each partition to, beside who owns it now."""
    from kctl.cluster.old_consumers import deal
    from kctl.rows.consumer import ASSIGNMENT

    with at.open(frame) as cluster:
        found, state = _find(cluster, at, group)
    _report(frame, found)
    dealt = list(deal(found, state, algorithm))
    given = {one.partition: one.thread for one in dealt if one.partition}
    rows = [
        ASSIGNMENT(
            group=found.name,
            thread=one.thread,
            topic=one.partition.topic if one.partition else None,
            partition=one.partition.partition if one.partition else None,
            owner=found.owners.get(one.partition) if one.partition else None,
            is_as_assigned=found.owners.get(one.partition) == one.thread if one.partition else None,
        )
        for one in dealt
    ]
    rows += [
        ASSIGNMENT(
            group=found.name,
            thread=None,
            topic=tp.topic,
            partition=tp.partition,
            owner=owner,
            is_as_assigned=False,
        )
        for tp, owner in sorted(found.owners.items())
        if tp not in given
    ]
    return Outcome(rows)


def _find(cluster: Cluster, at: At, name: str) -> tuple[OldGroup, ClusterState]:
    from kctl.errors import KctlError

    for group in cluster.read_old_groups():
        if group.name == name:
            return group, cluster.read_state(kafka_version=at.version)
    raise KctlError(f"no group {name!r} keeps itself in ZooKeeper", "`kctl consumer list` lists them")


def _partitions(group: OldGroup, state: ClusterState) -> list[TopicPartition]:
    """What the group has owners or offsets for, and the rest of the topics that it subscribes to by name."""
    from kctl.cluster.old_consumers import topics_of
    from kctl.model import TopicPartition

    named = {
        TopicPartition(topic, p)
        for topic in topics_of(group)
        if topic in state.topics
        for p in state.topics[topic].partitions
    }
    return sorted(named | set(group.owners) | set(group.offsets))


def _report(frame: Frame, *groups: OldGroup) -> None:
    from kctl.errors import KctlError

    for group in groups:
        for problem in group.problems:
            frame.report(KctlError(problem))
