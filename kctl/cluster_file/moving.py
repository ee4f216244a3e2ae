"""Replicas where files want them: the moves of topics, planned as `reassign plan` does, up to a number of bytes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from formats.whole_numbers import whole_number
from formats.words import counted
from kctl.cluster.intent import Intent
from kctl.cluster.interface import Cluster
from kctl.cluster.moves import moves_of
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.versions import KafkaVersion
from kctl.cluster_file.resources import PLACEMENT, REPLICAS, REPLICATION_FACTOR, Resource, Value, listed
from kctl.errors import Refused
from kctl.model import TopicPartition, some
from kctl.operations.reassignment.execution import Execution, plan_execution
from kctl.operations.reassignment.plan_files import identity_of
from kctl.operations.reassignment.planner import ReassignmentGoal
from kctl.operations.reassignment.planner import plan as plan_moves
from kctl.operations.reassignment.replica_sizes import partition_sizes
from kctl.operations.topics import parse_replica_assignment

RACKS, BROKERS, UNTOUCHED = "racks", "brokers ", "untouched"
Racks = Mapping[int, str | None]


def brokers_in(placement: Value) -> list[int]:
    """The brokers that `brokers 1,2,3` names."""
    ids = str(placement).removeprefix(BROKERS).split(",")
    return [id for part in ids if (id := whole_number(part)) is not None]


def placed(replicas: Mapping[int, Replicas], desired: Resource, racks: Racks) -> dict[str, Value]:
    """The fields of a topic's shape that are asked for, as they are: a placement that holds is the one asked for."""
    fields: dict[str, Value] = {}
    if REPLICAS in desired.fields:
        fields[REPLICAS] = listed(replicas)
    placement = desired.fields.get(PLACEMENT)
    if isinstance(placement, str):
        used = sorted({id for ids in replicas.values() for id in ids})
        is_so = _is_spread(replicas, racks) if placement == RACKS else True
        if placement.startswith(BROKERS):
            is_so = set(used) <= set(brokers_in(placement))
        fields[PLACEMENT] = placement if is_so else f"{BROKERS}{','.join(map(str, used))}"
    return fields


def _is_spread(replicas: Mapping[int, Replicas], racks: Racks) -> bool:
    """Whether each partition is on as many racks as it can be; without racks nothing tells."""
    known = {rack for rack in racks.values() if rack is not None}
    return all(
        len({racks.get(id) for id in ids}) >= min(len(ids), len(known)) for ids in replicas.values() if known
    )


class Moves(NamedTuple):
    """What carries moves out, and what to say about them."""

    intents: tuple[Intent, ...] = ()
    warnings: tuple[str, ...] = ()


def moves_for(
    cluster: Cluster,
    wanted: Sequence[tuple[Resource, frozenset[str]]],
    most_bytes: int,
    kafka_version: KafkaVersion | None = None,
) -> Moves:
    """The moves that give topics the fields of their shape that differ.

    Raises Refused where they copy more bytes than `most_bytes`, or where it is not known how many; BadValue, Refused,
    KctlError for what no plan can do.
    """
    if not wanted:
        return Moves()
    state = cluster.read_state(configs=("topics", "brokers"), kafka_version=kafka_version)
    names = {resource.name for resource, _ in wanted}
    known = cluster.replica_sizes(names)
    sizes = None if known is None else partition_sizes(known)
    targets: dict[TopicPartition, Replicas] = {}
    for goal in _goals(wanted, state):
        targets.update(plan_moves(state, goal, sizes).targets)
    for resource, fields in wanted:
        if REPLICAS in fields:
            listed = parse_replica_assignment(str(resource.fields[REPLICAS]))
            targets.update({TopicPartition(resource.name, p): ids for p, ids in listed.items()})
    origins = {tp: replicas for tp in targets if (replicas := state.replicas(tp)) is not None}
    moves = [move for move in moves_of(targets, origins, sizes) if move.partition in origins]
    copying = [move for move in moves if move.adding]
    copied = sum(move.data for move in copying)
    unknown = [move.partition for move in copying if move.size_in_bytes is None]
    by_hand = "`kctl reassign plan` and `kctl reassign execute --throttle RATE` move in batches"
    if unknown:
        raise Refused(
            f"it is not known how many bytes {some(unknown)} would copy; nothing was written",
            f"{by_hand}; brokers tell sizes over --bootstrap-server",
        )
    if copied > most_bytes:
        raise Refused(
            f"{counted(len(copying), 'partition')} would copy {copied:,} bytes, and --max-bytes is {most_bytes:,}; "
            "nothing was written",
            f"raise --max-bytes, or leave it to these: {by_hand}",
        )
    chosen = {move.partition: move.target for move in moves}
    execution = Execution(
        targets=chosen, file="the files", plan_id=identity_of(chosen), batches=[chosen], sizes=sizes
    )
    plan = plan_execution(cluster, execution, state)
    return Moves(tuple(stage.intent for stage in plan.stages), plan.warnings)


def _goals(
    wanted: Iterable[tuple[Resource, frozenset[str]]], state: ClusterState
) -> Iterator[ReassignmentGoal]:
    """The goals of `reassign plan`: topics with the same number of replicas on the same brokers in one."""
    grouped: dict[tuple[int | None, frozenset[int]], set[str]] = {}
    for resource, fields in wanted:
        factor = resource.fields.get(REPLICATION_FACTOR) if REPLICATION_FACTOR in fields else None
        placement = resource.fields.get(PLACEMENT)
        brokers: frozenset[int] = frozenset()
        if PLACEMENT in fields or (factor is not None and str(placement).startswith(BROKERS)):
            brokers = frozenset(state.live_brokers if placement == RACKS else brokers_in(placement))
        if factor is not None or brokers:
            number = None if factor is None else int(factor)
            grouped.setdefault((number, brokers), set()).add(resource.name)
    for (factor_wanted, brokers), names in sorted(grouped.items(), key=str):
        yield ReassignmentGoal(replication_factor=factor_wanted, brokers=brokers, topics=frozenset(names))
