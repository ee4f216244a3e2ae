"""Topics: list, describe, create, delete, alter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commands.changing import CHANGE_STATUS, How, carry_out, changes
from commands.connecting import At, open_for_change, pinned, reads
from commands.frame import Frame, command
from commands.render import Outcome, Row
from commands.topic_rows import describe_text, list_text, partition_row, topic_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kctl.cluster.state import ClusterState

READ_STATUS = "0 done · 2 wrong usage · 3 no such topic, no connection"


@command(
    "list",
    examples="""
    kctl topic list --zookeeper zk1:2181/kafka
    kctl topic list --exclude-internal --output jsonl
    kctl topic list --snapshot znodes.jsonl
    """,
    status=READ_STATUS,
)
@reads
@click.option("--exclude-internal", is_flag=True, help="Leave Kafka's own topics out.")
def list_topics(frame: Frame, at: At, exclude_internal: bool) -> Outcome:
    """List the topics, those marked for deletion as well."""
    from kctl.cluster.names import is_internal

    with at.open(frame) as cluster:
        state = cluster.read_state(partition_states=False, kafka_version=at.version)
    note_problems(frame, state)
    names = [name for name in state.topic_names if not (exclude_internal and is_internal(name))]
    return Outcome((topic_row(name, state, with_configs=False) for name in names), text=list_text)


@command(
    "describe",
    examples="""
    kctl topic describe orders payments
    kctl topic describe --under-replicated
    kctl topic describe --offline --output jsonl
    """,
    status=READ_STATUS,
)
@reads
@click.argument("topic", nargs=-1)
@click.option("--under-replicated", is_flag=True, help="Only partitions with fewer in the ISR than replicas.")
@click.option("--offline", is_flag=True, help="Only partitions without a live leader.")
@click.option("--under-min-isr", is_flag=True, help="Only partitions below min.insync.replicas.")
@click.option("--at-min-isr", is_flag=True, help="Only partitions just at min.insync.replicas.")
@click.option(
    "--non-preferred", is_flag=True, help="Only partitions that another than the first replica leads."
)
@click.option(
    "--overrides", is_flag=True, help="Only topics with a configuration of their own; no partitions."
)
def describe(frame: Frame, at: At, topic: tuple[str, ...], overrides: bool, **filters: bool) -> Outcome:
    """Describe topics: replicas, leaders, ISR, configuration.

    With one of the filters only partitions that it fits are shown, without the line of their topic.
    """
    from kctl.errors import KctlError

    with at.open(frame) as cluster:
        state = cluster.read_state(
            topic or None,
            configs=("topics", "brokers"),
            partition_states=not overrides,
            kafka_version=at.version,
        )
    note_problems(frame, state)
    for name in dict.fromkeys(topic):
        if name not in state.topic_names:
            frame.report(KctlError(f"no topic {name}"))
    wanted = [name for name, given in filters.items() if given]
    return Outcome(_described(state, topic, wanted, overrides), text=describe_text)


def _described(
    state: ClusterState, chosen: Sequence[str], filters: Sequence[str], overrides: bool
) -> Iterator[Row]:
    from kctl.cluster.partition_health import FILTERS, health_of
    from kctl.model import TopicPartition

    for name in [n for n in state.topic_names if not chosen or n in chosen]:
        if overrides and not state.config("topics", name):
            continue
        if not filters:
            yield topic_row(name, state, with_configs=True)
        if overrides or name not in state.topics:
            continue
        for partition in sorted(state.topics[name].partitions):
            health = health_of(TopicPartition(name, partition), state)
            if all(FILTERS[one](health) for one in filters):
                yield partition_row(health, state)


def note_problems(frame: Frame, state: ClusterState) -> None:
    """Report znodes that could not be read; the rest goes on, and the status says so (3)."""
    from kctl.errors import KctlError

    for problem in state.problems:
        frame.report(KctlError(f"{problem.place}: {problem.reason}"))


@command(
    "create",
    examples="""
    kctl topic create orders --partitions 12 --replication-factor 3
    kctl topic create orders --partitions 3 --replication-factor 2 --config retention.ms=86400000 --yes
    kctl topic create orders --replica-assignment 1:2,2:3,3:1 --dry-run
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=60)
@click.argument("name")
@click.option("--partitions", type=int, metavar="N", help="How many partitions.")
@click.option("--replication-factor", type=int, metavar="R", help="How many replicas of each.")
@click.option(
    "--replica-assignment", metavar="1:2,2:3", help="Brokers of each partition instead, the preferred first."
)
@click.option("--config", "config", multiple=True, metavar="K=V", help="A configuration; may be given again.")
@click.option("--disable-rack-aware", is_flag=True, help="Place replicas as if no broker had a rack.")
@click.option(
    "--allow-dead-brokers", is_flag=True, help="Take explicit replicas on brokers that are not alive."
)
@click.option(
    "--start-index", type=int, metavar="N", help="Place the first replica there, as Kafka's tests do."
)
@click.option("--if-not-exists", is_flag=True, help="Do nothing where the topic exists.")
def create(
    frame: Frame,
    how: How,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    config: tuple[str, ...],
    disable_rack_aware: bool,
    allow_dead_brokers: bool,
    start_index: int | None,
    if_not_exists: bool,
) -> Outcome:
    """Create a topic, replicas placed as Kafka places them."""
    from kctl.changes.plan import Plan
    from kctl.cluster.configs import parse_assignments
    from kctl.cluster.placement import Draws
    from kctl.cluster.topics import NewTopic, parse_replica_assignment, plan_creation
    from kctl.errors import BadValue

    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise BadValue("--replica-assignment stands for --partitions and --replication-factor")
    replicas = None if replica_assignment is None else parse_replica_assignment(replica_assignment)
    new = NewTopic(
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        replicas=replicas,
        configs=parse_assignments(config),
        rack_aware=not disable_rack_aware,
        draws=None if start_index is None else Draws(start_index, start_index),
        allow_dead=allow_dead_brokers,
    )
    with open_for_change(frame) as cluster:
        if if_not_exists and name in cluster.read_state((), partition_states=False).topic_names:
            return carry_out(frame, how, cluster, Plan(title=f"topic {name} exists", stages=()))
        return carry_out(frame, how, cluster, plan_creation(cluster, new, pinned(how.kafka_version)))


@command(
    "delete",
    examples="""
    kctl topic delete orders
    kctl topic delete orders --yes --timeout 5m
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=60)
@click.argument("name")
@click.option(
    "--deletion-is-enabled", is_flag=True, help="delete.topic.enable is true on all brokers (up to 0.11)."
)
@click.option("--if-exists", is_flag=True, help="Do nothing where there is no such topic.")
def delete(frame: Frame, how: How, name: str, deletion_is_enabled: bool, if_exists: bool) -> Outcome:
    """Delete a topic and all its records. The name is taken literally.

    Says beforehand what would keep the controller from it, and with --wait why it is stuck.
    """
    from kctl.changes.plan import Plan
    from kctl.cluster.topics import plan_deletion

    with open_for_change(frame) as cluster:
        if if_exists and name not in cluster.read_state((), partition_states=False).topic_names:
            return carry_out(frame, how, cluster, Plan(title=f"there is no topic {name}", stages=()))
        plan = plan_deletion(
            cluster, name, is_enabled=deletion_is_enabled, kafka_version=pinned(how.kafka_version)
        )
        return carry_out(frame, how, cluster, plan)


@command(
    "alter",
    examples="""
    kctl topic alter orders --partitions 24
    kctl topic alter orders --partitions 14 --replica-assignment 1:2,2:3
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=60)
@click.argument("name")
@click.option("--partitions", type=int, metavar="N", help="How many partitions there shall be in all.")
@click.option("--replica-assignment", metavar="1:2,2:3", help="Brokers of each new partition.")
@click.option("--disable-rack-aware", is_flag=True, help="Place replicas as if no broker had a rack.")
def alter(
    frame: Frame,
    how: How,
    name: str,
    partitions: int | None,
    replica_assignment: str | None,
    disable_rack_aware: bool,
) -> Outcome:
    """Add partitions to a topic. There is no way back, and keys go to other partitions than before."""
    from kctl.cluster.topics import parse_replica_assignment, plan_growth
    from kctl.errors import BadValue

    if partitions is None and replica_assignment is None:
        raise BadValue("nothing to alter", "give --partitions")
    replicas = (
        None if replica_assignment is None else list(parse_replica_assignment(replica_assignment).values())
    )
    with open_for_change(frame) as cluster:
        plan = plan_growth(
            cluster,
            name,
            partitions,
            replicas=replicas,
            rack_aware=not disable_rack_aware,
            kafka_version=pinned(how.kafka_version),
        )
        return carry_out(frame, how, cluster, plan)
