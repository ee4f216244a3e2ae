"""`kctl consumer`: old consumer groups, which are stored in ZooKeeper: list, describe, assign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commands.cli.connecting import At, reads
from commands.cli.frame import Frame, command
from commands.cli.options import option
from commands.cli.render import Outcome, Row
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.rows.consumer import ASSIGNMENT, GROUP, MEMBER, OFFSET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kctl.cluster.interface import Cluster
    from kctl.cluster.old_consumers import OldGroup
    from kctl.cluster.state import ClusterState

STATUS = "0 done · 2 wrong usage · 3 no such group, no connection"


@command("list", paged=True, status=STATUS)
@reads
def list_groups(frame: Frame, at: At) -> Outcome:
    """List old consumer groups, with their lag if brokers answer.

    $ kctl consumer list
    $ kctl consumer list --snapshot znodes.jsonl --output jsonl
    """
    from kctl.cluster.log_ends import log_end_offsets, total_lag
    from kctl.cluster.old_consumers import topics_of

    with at.open(frame) as cluster:
        if cluster.can.ask_brokers:
            raise KctlError(
                "old consumers keep their groups in ZooKeeper, and brokers do not show them",
                "give --zookeeper or --snapshot; `kctl group list` lists the groups of brokers",
            )
        groups = cluster.read_old_groups()
        state = cluster.read_state({t for g in groups for t in topics_of(g)}, kafka_version=at.version)
    _report_problems(frame, *groups)
    partitions = {tp for group in groups for tp in group.offsets}
    ends = log_end_offsets(partitions, state, at.timeout) if at.snapshot is None else {}
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
    return Outcome(rows, nothing="ZooKeeper holds no consumer group")


@command("describe", paged=True, status=STATUS)
@reads
@click.argument("group")
def describe(frame: Frame, at: At, group: str) -> Outcome:
    """Describe an old consumer group: members, owners, offsets, lag.

    $ kctl consumer describe billing
    $ kctl consumer describe billing --output jsonl
    """
    from kctl.cluster.log_ends import log_end_offsets

    with at.open(frame) as cluster:
        old_group, state = _find(cluster, at, group)
    _report_problems(frame, old_group)
    partitions = _partitions(old_group, state)
    ends = log_end_offsets(partitions, state, at.timeout) if at.snapshot is None else {}
    return Outcome(_described(old_group, partitions, ends))


def _described(
    group: OldGroup, partitions: list[TopicPartition], ends: dict[TopicPartition, int]
) -> Iterator[Row]:
    from kctl.cluster.log_ends import lag_of
    from kctl.cluster.old_consumers import member_of

    for member in group.members:
        yield MEMBER.of(member, group=group.name, subscription=dict(member.subscription))
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


@command("assign", status=STATUS + " · 4 round robin does not allow this group")
@reads
@click.argument("group")
@option(
    "--algorithm",
    "Assignment algorithm of the consumer.",
    type=click.Choice(("range", "roundrobin")),
    default="range",
)
def assign(frame: Frame, at: At, group: str, algorithm: str) -> Outcome:
    """Show the consumer thread that an algorithm assigns to each partition.

    The rows also show the thread that owns the partition now.

    $ kctl consumer assign billing
    $ kctl consumer assign billing --algorithm roundrobin
    """
    from kctl.cluster.old_consumers import deal

    with at.open(frame) as cluster:
        old_group, state = _find(cluster, at, group)
    _report_problems(frame, old_group)
    rows, assigned = [], set()
    for share in deal(old_group, state, algorithm):
        tp = share.partition
        owner = old_group.owners.get(tp) if tp else None
        assigned.add(tp)
        rows.append(
            ASSIGNMENT(
                group=old_group.name,
                thread=share.thread,
                topic=tp.topic if tp else None,
                partition=tp.partition if tp else None,
                owner=owner,
                is_as_assigned=owner == share.thread if tp else None,
            )
        )
    for tp, owner in sorted(old_group.owners.items()):
        if tp not in assigned:
            rows.append(
                ASSIGNMENT(
                    group=old_group.name, **tp._asdict(), thread=None, owner=owner, is_as_assigned=False
                )
            )
    return Outcome(rows)


def _find(cluster: Cluster, at: At, name: str) -> tuple[OldGroup, ClusterState]:
    for group in cluster.read_old_groups():
        if group.name == name:
            return group, cluster.read_state(kafka_version=at.version)
    raise KctlError(f"no group {name!r} in ZooKeeper", "`kctl consumer list` lists them")


def _partitions(group: OldGroup, state: ClusterState) -> list[TopicPartition]:
    """The partitions with an owner or offset, and all others of the topics that it subscribes to by name."""
    from kctl.cluster.old_consumers import topics_of

    named = {
        TopicPartition(topic, p)
        for topic in topics_of(group)
        if topic in state.topics
        for p in state.topics[topic].partitions
    }
    return sorted(named | set(group.owners) | set(group.offsets))


def _report_problems(frame: Frame, *groups: OldGroup) -> None:
    for group in groups:
        for problem in group.problems:
            frame.fail(problem, "`kctl znode show` prints what the znode holds")
