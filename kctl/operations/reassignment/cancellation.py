"""Cancel a running reassignment.

The waiting request is never edited and never deleted: the controller would not notice. So the way back is requested
when the request is gone, which is when the moves have ended. If it never goes, because a target is dead,
the only way is to replace the request and make another broker controller, which reads the request as it starts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from formats.values import replace
from formats.words import counted
from kctl.changes.faults import reach
from kctl.changes.kinds.reassignments import AlterReplicaLogDirs, Reassign, ReplaceStuckReassignment
from kctl.changes.kinds.throttles import KEYS, left_over, rates_of_dead
from kctl.changes.plan import Plan, Stage
from kctl.cluster.disks import places
from kctl.cluster.interface import Cluster
from kctl.cluster.moves import ids
from kctl.cluster.names import refuse_hidden
from kctl.cluster.preflight import check_way_back
from kctl.cluster.state import MOVES, ClusterState, Replicas
from kctl.cluster.versions import V0_9, V2_1, KafkaVersion
from kctl.cluster.visibility import with_hidden_topics
from kctl.errors import KctlError, Refused
from kctl.model import SILENT, Progress, TopicPartition, some
from kctl.operations.reassignment.plan_files import PlanFile
from kctl.operations.reassignment.verification import explain, throttle_of

if TYPE_CHECKING:
    from kctl.changes.entry import Entry

PAUSE = 0.5  # seconds
Known = Mapping[TopicPartition, Replicas]


def plan_cancellation(
    cluster: Cluster,
    file: PlanFile,
    known: Known,
    *,
    entries: Sequence[Entry] = (),
    version: KafkaVersion | None = None,
    move_controller: bool = False,
    wait_seconds: float = 0,
    progress: Progress = SILENT,
) -> Plan:
    """The plan that cancels the running moves of a plan and its throttles. `known`: the recorded replicas before the plan.

    `entries` of the journal that carried the plan out have its throttles; without them the lists of throttled replicas do.
    Raises KctlError for topics that are hidden, Refused if the former replicas are unknown or on dead brokers, or if the request stays.
    """

    topics = {tp.topic for tp in file.targets}

    def read() -> ClusterState:
        state = cluster.read_state(
            configs=("topics", "brokers"),
            config_keys=KEYS,
            kafka_version=version,
            log_dirs_of={broker for _, broker in file.log_dirs},
        )
        return with_hidden_topics(cluster, topics, state)

    state = read()
    refuse_hidden(topics, state)
    _refuse_unlisted(state)
    moving = [tp for tp in sorted(file.targets) if state.is_reassigning(tp)]
    copies = _copies(file, state)
    parts = [f"the reassignment of {counted(len(moving), 'partition')}"] if moving or copies is None else []
    if copies is not None:
        parts.append(f"{counted(len(copies.log_dirs), 'move')} between disks")
    change = Plan(title=f"cancel {' and '.join(parts)}", stages=(), details={"cancels": file.identity})
    if moving:
        _refuse_other_targets(file, moving, state)
        back = {tp: _origin(tp, state, known) for tp in moving}
        if state.can.cancel_moves:
            change = _cancelling(state, back, change)
        else:
            _refuse_dead(back, state)
            change = (
                _replacing(state, back, change)
                if move_controller
                else _turning(cluster, state, back, change, wait_seconds, progress, version)
            )
            state = read()
    stages = [*change.stages]
    if copies is not None:
        stages.insert(0, Stage(intent=copies))
    clear = throttle_of(file.targets, entries, state)
    untold = rates_of_dead(clear, state)
    if left_over(clear, state) or (stages and untold):
        stages.append(Stage(intent=clear, undo=()))
    if stages and untold and state.quorum is None:
        note = f"the throttle of broker {ids(untold)}, which is not alive, stays: remove it when the broker is back"
        change = replace(change, warnings=(*change.warnings, note), details={**change.details, "left": note})
    if stages:  # the first one's writes are shown
        stages[0] = replace(stages[0], writes=cluster.writes_for(stages[0].intent, state))
    return replace(change, stages=tuple(stages))


def _refuse_unlisted(state: ClusterState) -> None:
    """Raise KctlError where reassignments could not be read: a partition that shows none may be moved all the same."""
    for problem in state.problems:
        if problem.place.startswith(MOVES):
            raise KctlError(
                f"which partitions are being moved is unknown: {problem.place}: {problem.reason}; nothing was written",
                problem.hint,
            )


def _copies(file: PlanFile, state: ClusterState) -> AlterReplicaLogDirs | None:
    """The intent that cancels the copies between disks of a plan."""
    placed = places(state.log_dirs)
    running = {
        key: placed[key].log_dir
        for key, path in file.log_dirs.items()
        if key in placed and placed[key].future_log_dir == path
    }
    if not running:
        return None
    return AlterReplicaLogDirs(
        log_dirs=running, previous_log_dirs={key: file.log_dirs[key] for key in running}
    )


def _turning(
    cluster: Cluster,
    state: ClusterState,
    back: Known,
    change: Plan,
    wait_seconds: float,
    progress: Progress,
    version: KafkaVersion | None,
) -> Plan:
    """The way back through ZooKeeper after the request is gone, which is when the moves have ended."""
    if state.reassignment is None:
        raise Refused(
            "it was not requested through ZooKeeper, or its request was deleted; nothing was written",
            "cancel it with kafka-reassign-partitions --bootstrap-server ... --cancel",
        )
    _await_request(cluster, wait_seconds, progress, version)
    fresh = cluster.read_state({tp.topic for tp in back}, kafka_version=version)
    present = {tp: replicas for tp in back if (replicas := fresh.replicas(tp)) is not None}
    targets = {tp: target for tp, target in back.items() if tp in present and present[tp] != target}
    if not targets:
        return change
    intent = Reassign(targets=targets, origins={tp: present[tp] for tp in targets})
    return replace(change, stages=(Stage(intent=intent),))


def _cancelling(state: ClusterState, back: Known, change: Plan) -> Plan:
    """The way back over the Admin protocol: brokers cancel a running move on request."""
    for tp, target in back.items():
        check_way_back(tp, target, state)
    running = {tp: state.topics[tp.topic].target_replicas(tp.partition) for tp in back}
    intent = Reassign(targets=back, origins=running)
    absent = {tp: [b for b in target if not state.is_replica_alive(tp, b)] for tp, target in back.items()}
    brokers = {b for listed in absent.values() for b in listed}
    without = [tp for tp, listed in absent.items() if listed]
    warnings = (
        (
            f"{some(without)} stay without the replicas of broker {ids(brokers)}, which are offline, until these are back",
        )
        if without
        else ()
    )
    return replace(change, stages=(Stage(intent=intent),), warnings=warnings)


def _refuse_other_targets(file: PlanFile, moving: list[TopicPartition], state: ClusterState) -> None:
    for tp in moving:
        topic = state.topics[tp.topic]
        stored = topic.target_replicas(tp.partition) if topic.is_reassigning(tp.partition) else None
        target = stored or (state.reassignment.partitions.get(tp) if state.reassignment else None)
        if target is not None and set(target) != set(file.targets[tp]):
            raise Refused(
                f"{tp} is being moved to {list(target)}, and {file.path} says {list(file.targets[tp])}; "
                "nothing was written",
                "name the plan that is running; `kctl reassign status` shows where each partition goes",
            )


def _origin(tp: TopicPartition, state: ClusterState, known: Known) -> Replicas:
    """The replicas before the move: as recorded, or from 2.4 on from its topic (perhaps in another order)."""
    topic = state.topics[tp.topic]
    stored = topic.origin_replicas(tp.partition) if topic.is_reassigning(tp.partition) else None
    recorded = known.get(tp)
    if recorded is not None and (stored is None or set(stored) == set(recorded)):
        return recorded
    if stored:
        return stored
    replicas = state.replicas(tp) or ()
    if (
        state.reassignment is not None
        and replicas
        and not set(state.reassignment.partitions[tp]) <= set(replicas)
    ):
        return replicas  # not begun yet
    raise Refused(
        f"the former replicas of {tp} are unknown: there is no rollback file beside the plan and no journal entry; "
        "nothing was written",
        "write a plan with the replicas you want, and execute it",
    )


def _refuse_dead(back: Known, state: ClusterState) -> None:
    dead = {b for replicas in back.values() for b in replicas if not state.is_alive(b)}
    if dead:
        stuck = [str(tp) for tp, replicas in back.items() if dead & set(replicas)]
        raise Refused(
            f"brokers {ids(dead)}, where {', '.join(stuck[:5])} would go back to, are not alive; nothing was written",
            "going back to the others alone would lower the replication factor",
        )


def _replacing(state: ClusterState, back: Known, change: Plan) -> Plan:
    request, controller = state.reassignment, state.controller
    if request is None:
        raise Refused(
            "there is no waiting request to replace; nothing was written",
            "`kctl reassign status` shows the moves",
        )
    if controller is None or controller.broker_id is None:
        raise Refused(
            "there is no active controller to move; nothing was written",
            "wait until a broker is controller; `kctl cluster describe` shows which one is",
        )
    others = sorted(set(request.partitions) - set(back))
    if others:
        raise Refused(
            f"the waiting request also moves {', '.join(map(str, others[:5]))}, which the plan does not name; "
            "nothing was written",
            "name a plan that includes them",
        )
    intent = ReplaceStuckReassignment(
        targets={tp: back[tp] for tp in request.partitions},
        stuck=dict(request.partitions),
        broker_id=controller.broker_id,
    )
    warning = (
        f"the request of {counted(len(request.partitions), 'partition')} is deleted, the way back put in its place "
        f"and broker {controller.broker_id} no longer controller, all at once"
    )
    warnings = [warning]
    if state.kafka_version < V0_9:
        # Its listener does not resign when it reads another id in /controller, and nothing fences it.
        warnings.append(
            f"a controller of 0.8 may not notice that it no longer is one, and would repeat the old move when a "
            f"broker starts: restart broker {controller.broker_id} afterwards, before any that is dead"
        )
    elif state.kafka_version < V2_1:
        # Its writes are fenced from 2.1 on (KAFKA-6082): an epoch that it still raises reaches no broker.
        warnings.append(
            "a controller before 2.1 finishes what it had begun even when another has taken its place: look at "
            "`kctl cluster health` afterwards; replicas that stay out of the ISR come back when the broker that leads them restarts"
        )
    title = f"{change.title}, moving the controller"
    return replace(change, title=title, stages=(Stage(intent=intent),), warnings=tuple(warnings))


def _await_request(
    cluster: Cluster, seconds: float, progress: Progress, version: KafkaVersion | None
) -> None:
    """Wait until there is no request. Raises Refused with the reason if it stays."""
    until = time.monotonic() + seconds
    reach("awaiting-request")
    progress.start("waiting for the running request", None, "looks")
    while True:
        state = cluster.read_state((), partition_states=False, kafka_version=version)
        if state.reassignment is None:
            return
        if time.monotonic() >= until:
            whole = cluster.read_state(
                {tp.topic for tp in state.reassignment.partitions}, kafka_version=version
            )
            reasons = list(explain(whole)) or ["its moves are still going on"]
            raise Refused(
                f"the running request still exists: {'; '.join(reasons)}; nothing was written",
                "wait longer with --timeout; a request with a dead target needs --move-controller",
            )
        progress.advance(1)
        time.sleep(PAUSE)
