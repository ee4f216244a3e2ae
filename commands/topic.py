"""`kctl topic`: list, describe, create, delete and alter topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from commands.cli import completing
from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, open_brokers_for_change, open_for_change, reads
from commands.cli.frame import Frame, command
from commands.cli.leaving import visible
from commands.cli.options import PARTITION, flag, option
from commands.cli.render import Outcome, Page, Row, folding, ids, table
from formats.words import counted
from kctl.errors import BadValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kctl.cluster.partition_health import PartitionHealth
    from kctl.cluster.state import ClusterState, Problem


def topic_row(name: str, state: ClusterState, *, with_configs: bool) -> Row:
    """The row of a topic; its counts are null if its znode could not be read."""
    from formats.secrets import REDACTED, is_secret_key, redact_text
    from kctl.cluster.names import is_internal
    from kctl.rows.cluster import TOPIC

    topic = state.topics.get(name)
    partitions = topic.partitions if topic else {}
    first = min(partitions, default=None)
    why = state.why_not_read(f"topic {name}") if topic is None else None
    why = why or (state.why_not_read(f"configuration of topic {name}") if with_configs else None)
    configs = {
        key: REDACTED if is_secret_key(key) else redact_text(value)
        for key, value in state.config("topics", name).items()
    }
    return TOPIC(
        topic=name,
        topic_id=topic.topic_id if topic else None,
        partition_count=len(partitions) if topic else None,
        replication_factor=len(topic.origin_replicas(first)) if topic and first is not None else None,
        is_internal=is_internal(name),
        is_marked_for_deletion=name in state.deleting,
        configs=dict(sorted(configs.items())) if with_configs and not why else None,
        why=why,
    )


def partition_row(health: PartitionHealth, state: ClusterState) -> Row:
    """The row of a partition."""
    from kctl.cluster.state import ELR_FEATURE, MIN_ISR, MOVES
    from kctl.rows.cluster import PARTITION

    tp = health.partition
    topic = state.topics[tp.topic]
    stored = state.partition_states.get(tp)
    is_tracked = bool(state.features.get(ELR_FEATURE))
    not_moves, not_min_isr = state.why_not_read(MOVES), None
    if tp.topic not in state.min_isr_in_force and MIN_ISR not in state.config("topics", tp.topic):
        places = ("configuration of broker", f"configuration of topic {tp.topic}")
        not_min_isr = None if health.is_offline else state.why_not_read(*places)
    return PARTITION.of(
        health,
        is_under_min_isr=None if not_min_isr else health.is_under_min_isr,
        why="; ".join(filter(None, (not_moves, not_min_isr))) or None,
        leader_epoch=stored.leader_epoch if stored else None,
        offline_replicas=[b for b in health.replicas if not state.is_replica_alive(tp, b)],
        adding_replicas=None if not_moves else list(topic.adding_replicas.get(tp.partition, ())),
        removing_replicas=None if not_moves else list(topic.removing_replicas.get(tp.partition, ())),
        controller_epoch=stored.controller_epoch if stored else None,
        eligible_leader_replicas=list(state.eligible_leaders.get(tp, ())) if is_tracked else None,
        last_known_elr=list(state.last_known_leaders.get(tp, ())) if is_tracked else None,
        partition_epoch=stored.partition_epoch if stored else None,
    )


def describe_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A heading for each topic, its partitions in columns below, problems in the last column."""
    partitions: list[Row] = []
    for row in rows:
        if row["kind"] == "topic":
            yield from _partitions(partitions, page)
            partitions = []
            yield page.style(f"{row['topic']}", "bold") + _about(row)
        else:
            partitions.append(row)
    yield from _partitions(partitions, page)


def _about(row: Row) -> str:
    parts = [counted(row["partition_count"], "partition"), f"replication factor {row['replication_factor']}"]
    if row["topic_id"]:
        parts.append(f"id {row['topic_id']}")
    if row["is_marked_for_deletion"]:
        parts.append("marked for deletion")
    configs = row["configs"]
    if isinstance(configs, dict):
        parts += [f"{key}={value}" for key, value in configs.items()]
    return "   " + ", ".join(parts)


def _partitions(rows: list[Row], page: Page) -> Iterator[str]:
    shown = [
        {
            "partition": f"  {row['topic']}-{row['partition']}",
            "leader": "none" if row["leader"] in (-1, None) else str(row["leader"]),
            "epoch": row["leader_epoch"],
            "replicas": ids(row["replicas"]),
            "isr": ids(row["isr"]),
            "offline replicas": ids(row["offline_replicas"]) or None,
            "eligible": ids(row["eligible_leader_replicas"] or ()) or None,
            "last known": ids(row["last_known_elr"] or ()) or None,
            "adding": ids(row["adding_replicas"]) or None,
            "removing": ids(row["removing_replicas"]) or None,
            "": _wrong(row) or None,
        }
        for row in rows
    ]
    yield from table(shown, page)


def _wrong(row: Row) -> str:
    if row["is_offline"]:
        return "offline"
    problems = {"is_under_min_isr": "under min ISR", "is_under_replicated": "under-replicated"}
    words = ", ".join(word for key, word in problems.items() if row[key])
    return words or ("" if row["is_leader_preferred"] else "leader not preferred")


def list_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Topics in columns; the heading of the last gives way to names that would stand beside a shorter one."""
    listed = list(rows)
    longest = max((len(visible(str(row["topic"]))) for row in listed), default=0)
    room = page.width - len(" partitions ")
    is_short = len(listed) > 1 and room - len("replication") < longest <= room - len("replicas")
    factor = "replicas" if is_short else "replication factor"
    yield from table(
        [
            {
                "topic": row["topic"],
                "partitions": row["partition_count"],
                factor: row["replication_factor"],
                "": "marked for deletion" if row["is_marked_for_deletion"] else None,
            }
            for row in listed
        ],
        page,
    )


READ_STATUS = "0 done · 2 wrong usage · 3 no such topic, no connection"


@command("list", paged=True, status=READ_STATUS)
@reads
@flag("--exclude-internal", "Omit internal topics of Kafka.")
def list_topics(frame: Frame, at: At, exclude_internal: bool) -> Outcome:
    """List topics, including those marked for deletion.

    $ kctl topic list --zookeeper zk1:2181/kafka
    $ kctl topic list --exclude-internal --output jsonl
    $ kctl topic list --snapshot znodes.jsonl
    """
    from kctl.cluster.names import is_internal

    with at.open(frame) as cluster:
        state = cluster.read_state(partition_states=False, kafka_version=at.version, visibility=True)
    note_problems(frame, state.problems)
    note_hidden(frame, state, decides=not state.topic_names)
    names = [name for name in state.topic_names if not (exclude_internal and is_internal(name))]
    return Outcome(
        (topic_row(name, state, with_configs=False) for name in names),
        text=list_text,
        nothing="the cluster has no such topic" if exclude_internal else "the cluster has no topic",
    )


@command("describe", paged=True, status=READ_STATUS)
@reads
@click.argument("topic", nargs=-1, shell_complete=completing.topics)
@flag("--under-replicated", "Only partitions with fewer in-sync replicas than replicas.")
@flag("--offline", "Only partitions without a live leader.")
@flag("--under-min-isr", "Only partitions below min.insync.replicas.")
@flag("--at-min-isr", "Only partitions exactly at min.insync.replicas.")
@flag("--non-preferred", "Only partitions not led by their first replica.")
@flag("--overrides", "Only topics with configuration overrides; no partitions.")
def describe(frame: Frame, at: At, topic: tuple[str, ...], overrides: bool, **filters: bool) -> Outcome:
    """Describe topics: replicas, leaders, ISR, configuration.

    With a filter only matching partitions are shown, without the row of their topic. With --offline the exit status is
    5 if there are any.

    $ kctl topic describe orders payments
    $ kctl topic describe --under-replicated
    $ kctl topic describe --offline --output jsonl
    """

    from kctl.cluster.names import unknown_topics

    with at.open(frame) as cluster:
        state = cluster.read_state(
            topic or None,
            configs=("topics", "brokers"),
            partition_states=not overrides,
            kafka_version=at.version,
            visibility=not topic,
        )
    chosen = [name for name, is_given in filters.items() if is_given]
    note_problems(frame, [problem for problem in state.problems if decides(problem, state)])
    note_hidden(frame, state, decides=bool(chosen or overrides or not state.topic_names))
    note_unknown_moves(frame, state)
    for name in dict.fromkeys(topic):
        if name not in state.topic_names and name not in state.denied_topics:
            frame.report(unknown_topics([name], state.topic_names))
    rows = list(_described(state, topic, chosen, overrides))
    if "offline" in chosen and rows:
        frame.raise_status(5)
    looked = sum(not topic or name in topic for name in state.topic_names)
    if not looked:
        nothing = "the cluster has no topic"
    elif overrides:
        nothing = "no topic overrides a configuration"
    else:
        nothing = f"no such partition in {looked:,} topic{'s' if looked > 1 else ''}"
    return Outcome(rows, text=folding(describe_text), nothing=nothing)


def _described(
    state: ClusterState, chosen: Sequence[str], filters: Sequence[str], overrides: bool
) -> Iterator[Row]:
    from kctl.cluster.partition_health import FILTERS, health_of
    from kctl.model import TopicPartition

    for topic in [name for name in state.topic_names if not chosen or name in chosen]:
        if overrides and not state.config("topics", topic):
            continue
        if not filters:
            yield topic_row(topic, state, with_configs=True)
        if overrides or topic not in state.topics:
            continue
        for partition in sorted(state.topics[topic].partitions):
            health = health_of(TopicPartition(topic, partition), state)
            if all(FILTERS[name](health) for name in filters):
                yield partition_row(health, state)


def note_problems(frame: Frame, problems: Iterable[Problem]) -> None:
    """Report what could not be read (status 3), each missing right once; the command goes on."""
    from kctl.cluster.visibility import grouped

    for text, hint in grouped(problems):
        frame.fail(text, hint)


def note_hidden(frame: Frame, state: ClusterState, *, decides: bool = True) -> None:
    """Report that topics may be hidden; with status 3 where the answer depends on them."""
    from kctl.cluster.rights import CREDENTIALS, TOPIC, Right, grant

    if state.hidden and decides:
        right = Right("Describe", TOPIC, "*")
        frame.fail(
            state.hidden, CREDENTIALS if state.can.name_all_topics else grant([right], state.principal)
        )
    elif state.hidden:
        frame.note(f"{state.hidden}, and left out")


def decides(problem: Problem, state: ClusterState) -> bool:
    """Whether a problem matters where min.insync.replicas is all that is needed of brokers' configurations."""
    return not (state.knows_min_isr and problem.right and problem.place.startswith("configuration of broker"))


def note_unknown_moves(frame: Frame, state: ClusterState) -> None:
    """Report that nobody tells what is being moved (status 3), where it is so."""
    if state.quorum is not None and state.quorum.lost:
        frame.fail(
            "reassignments are unknown: only an active controller can list them",
            "`kctl quorum describe` shows which controllers answer",
        )


@command("create", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("name")
@option("--partitions N", "Number of partitions.", type=int)
@option("--replication-factor R", "Number of replicas of each partition.", type=int)
@option("--replica-assignment 1:2,2:3", "Brokers of each partition, the preferred leader first.")
@option("--config K=V...", "Set a configuration value; repeatable.", into="config")
@flag("--disable-rack-aware", "Ignore racks when placing replicas.")
@flag("--allow-dead-brokers", "Allow brokers that are not alive in --replica-assignment.")
@option("--start-index N", "Index of the broker that gets the first replica, as in Kafka's tests.", type=int)
@flag("--if-not-exists", "Do nothing if the topic exists.")
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
    """Create a topic, with replicas placed as Kafka does.

    $ kctl topic create orders --partitions 12 --replication-factor 3
    $ kctl topic create orders --partitions 3 --replication-factor 2 --config retention.ms=86400000 --yes
    $ kctl topic create orders --replica-assignment 1:2,2:3,3:1 --dry-run
    """
    from kctl.changes.plan import Plan
    from kctl.cluster.placement import Draws
    from kctl.operations.configs import parse_assignments
    from kctl.operations.topics import NewTopic, parse_replica_assignment, plan_creation

    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise BadValue(
            "--replica-assignment replaces --partitions and --replication-factor",
            "leave out one or the other",
        )
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
        return carry_out(frame, how, cluster, plan_creation(cluster, new, how.version))


@command("delete", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("name", shell_complete=completing.topics)
@flag("--deletion-is-enabled", "Confirm that delete.topic.enable is true on all brokers (up to 0.11).")
@flag("--if-exists", "Do nothing if the topic does not exist.")
def delete(frame: Frame, how: How, name: str, deletion_is_enabled: bool, if_exists: bool) -> Outcome:
    """Delete a topic and all its records.

    NAME is a literal name, not a pattern. The command first warns about anything that would block the controller; with
    --wait it reports why a deletion is stuck.

    $ kctl topic delete orders
    $ kctl topic delete orders --yes --timeout 5m
    """
    from kctl.changes.plan import Plan
    from kctl.operations.topics import plan_deletion

    with open_for_change(frame) as cluster:
        if if_exists and name not in cluster.read_state((), partition_states=False).topic_names:
            return carry_out(frame, how, cluster, Plan(title=f"no topic {name}", stages=()))
        plan = plan_deletion(cluster, name, is_enabled=deletion_is_enabled, kafka_version=how.version)
        return carry_out(frame, how, cluster, plan)


@command("alter", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("name", shell_complete=completing.topics)
@option("--partitions N", "New total number of partitions.", type=int)
@option("--replica-assignment 1:2,2:3", "Brokers of each new partition.")
@flag("--disable-rack-aware", "Ignore racks when placing replicas.")
def alter(
    frame: Frame,
    how: How,
    name: str,
    partitions: int | None,
    replica_assignment: str | None,
    disable_rack_aware: bool,
) -> Outcome:
    """Add partitions to a topic.

    Partitions cannot be removed again, and records with a key go to other partitions than before.

    $ kctl topic alter orders --partitions 24
    $ kctl topic alter orders --partitions 14 --replica-assignment 1:2,2:3
    """
    from kctl.operations.topics import parse_replica_assignment, plan_growth

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
            kafka_version=how.version,
        )
        return carry_out(frame, how, cluster, plan)


@command("delete-records", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("topic", shell_complete=completing.topics)
@PARTITION
@option("--to-offset OFFSET", "Delete below this offset; -1: everything.", type=int)
@option("--before TIME", "Delete up to the first record of this time (ISO 8601, -2h, epoch ms).")
@flag("--read-by-all-groups", "Delete what every group of the partition has read.")
@flag("--accept-loss", "Accept that deleted records cannot be restored.")
def delete_records(
    frame: Frame,
    how: How,
    topic: str,
    partitions: tuple[int, ...],
    to_offset: int | None,
    before: str | None,
    read_by_all_groups: bool,
    accept_loss: bool,
) -> Outcome:
    """Delete the oldest records of a topic.

    Shows how many records are deleted and which groups have not read them. Brokers delete a file once all records of
    its segment are deleted.

    $ kctl topic delete-records orders --before -7d --dry-run
    $ kctl topic delete-records orders --partition 3 --to-offset 120000 --accept-loss
    $ kctl topic delete-records orders --read-by-all-groups --accept-loss --yes
    """
    from kctl.rows.live import DELETION
    from kctl.times import parse_time
    from kctl.wire.records import choose_deletions, plan_deletion

    if sum((to_offset is not None, before is not None, read_by_all_groups)) != 1:
        raise BadValue(
            "give one of --to-offset, --before and --read-by-all-groups", "give exactly one of them"
        )
    time = None if before is None else parse_time(before, "--before")
    with open_brokers_for_change(frame) as cluster:
        chosen = choose_deletions(cluster, topic, partitions, to_offset=to_offset, before=time)
        rows = [DELETION.of(deletion) for deletion in chosen]
        return carry_out(
            frame, how, cluster, plan_deletion(cluster, topic, chosen, rows, accepted=accept_loss), rows
        )
