"""Rolling restart: the order of nodes, and whether each can be stopped now without effect on clients.

Racks one after the other, controllers apart from brokers behind them, the active controller last, so that it moves
once. A node may be stopped when no partition there would go under min.insync.replicas, every replica beside it is in
sync, nothing is being moved, all others are alive, and the remaining voters are a majority.
"""

from collections.abc import Collection, Iterator, Sequence

from formats.values import Struct
from formats.words import counted
from kctl.cluster.disks import BrokerLogDir
from kctl.cluster.partition_health import min_isr_in_force
from kctl.cluster.state import ClusterState, is_majority
from kctl.cluster.visibility import unseen
from kctl.model import TopicPartition, some

VOTER_BEHIND = 10_000  # milliseconds


class Restart(Struct, frozen=True, kw_only=True):
    """A node, its place in the order, and what has to happen before it can be stopped."""

    broker_id: int
    place: int
    roles: tuple[str, ...]
    is_leader: bool
    waits_for: tuple[str, ...]
    why: str | None = None  # the state is a part of the cluster

    @property
    def is_safe_now(self) -> bool | None:
        """Whether it can be stopped now; None if a part that could not be read decides."""
        if self.waits_for:
            return False
        return None if self.why else True

    @property
    def reason(self) -> str | None:
        """The first thing that it waits for."""
        return next(iter(self.waits_for), None)


def rolling_restart(state: ClusterState, disks: Sequence[BrokerLogDir]) -> list[Restart]:
    """Every node, in order."""
    voters = frozenset(id for id in (state.quorum.voters if state.quorum else ()) if id >= 0)
    assigned = {id for tp in state.partitions() for id in state.topics[tp.topic].partitions[tp.partition]}
    brokers = assigned | set(state.brokers)
    hosted = _hosted(state)
    why = unseen(state, disks)
    everybody = _everybody(state, disks, brokers)
    return [
        Restart(
            broker_id=node,
            place=place,
            roles=("broker",) * (node in brokers) + ("controller",) * (node in voters),
            is_leader=state.controller is not None and state.controller.broker_id == node,
            waits_for=tuple(
                _waits_for(node, state, hosted.get(node, []), [text for id, text in everybody if id != node])
                if node not in brokers or state.is_alive(node)
                else (f"broker {node} is not alive: start it",)
            ),
            why=why or None,
        )
        for place, node in enumerate(_order(state, brokers, voters), 1)
    ]


def _order(state: ClusterState, brokers: Collection[int], voters: Collection[int]) -> list[int]:
    active = state.controller.broker_id if state.controller else None

    def place(node: int) -> tuple[bool, bool, str, int]:
        broker = state.brokers.get(node)
        return node == active, node not in brokers, (broker.rack if broker else None) or "", node

    return sorted({*brokers, *voters}, key=place)


def _hosted(state: ClusterState) -> dict[int, list[TopicPartition]]:
    partitions_by_broker: dict[int, list[TopicPartition]] = {}
    for tp in state.partitions():
        for broker in state.topics[tp.topic].partitions[tp.partition]:
            partitions_by_broker.setdefault(broker, []).append(tp)
    return partitions_by_broker


def _everybody(
    state: ClusterState, disks: Sequence[BrokerLogDir], brokers: Collection[int]
) -> list[tuple[int | None, str]]:
    """Problems that keep all other nodes from being stopped, with the node if it is one's problem."""
    blockers: list[tuple[int | None, str]] = []
    if not state.has_controller:
        blockers.append((None, "there is no active controller"))
    blockers += [
        (broker, f"broker {broker} is not alive") for broker in sorted(brokers) if not state.is_alive(broker)
    ]
    silent = {p.silent_broker for p in state.problems if p.silent_broker is not None}
    silent |= {
        log_dir.broker_id
        for log_dir in disks
        if log_dir.path is None and not log_dir.is_denied and state.is_alive(log_dir.broker_id)
    }
    blockers += [(broker, f"broker {broker} does not answer") for broker in sorted(silent)]
    blockers += [
        (log_dir.broker_id, f"log directory {log_dir.path} of broker {log_dir.broker_id} has failed")
        for log_dir in disks
        if log_dir.state == "failed"
    ]
    for log_dir in disks:
        if moving := sum(replica.is_future for replica in log_dir.replicas):
            text = f"broker {log_dir.broker_id} is moving {counted(moving, 'replica')} between its disks"
            blockers.append((None, text))
    return blockers


def _waits_for(
    node: int, state: ClusterState, hosted: Sequence[TopicPartition], others: Sequence[str]
) -> Iterator[str]:
    yield from others
    yield from _quorum(node, state)
    offline, small, behind, moving = [], [], [], []
    for tp in hosted:
        replicas = state.topics[tp.topic].partitions[tp.partition]
        rest = [b for b in state.isr(tp) if b != node and state.is_replica_alive(tp, b)]
        if state.is_reassigning(tp):
            moving.append(tp)
        if not state.is_replica_alive(tp, node):
            continue  # on a failed disk it serves nothing that a stop could take
        if not rest:
            offline.append(tp)
        elif len(rest) < min_isr_in_force(tp, state.leader(tp), state):
            small.append(tp)
        elif set(replicas) - {node} > set(rest):
            behind.append(tp)
    for partitions, consequence in (
        (offline, "would go offline"),
        (small, "would have fewer in the ISR than min.insync.replicas"),
        (behind, "not in sync everywhere"),
        (moving, "being moved"),
    ):
        if partitions:
            yield f"{counted(len(partitions), 'partition')} {consequence}: {some(partitions)}"


def _quorum(node: int, state: ClusterState) -> Iterator[str]:
    """The problem that no majority of voters would remain; those far behind do not count."""
    quorum = state.quorum
    if quorum is None or node not in quorum.voters:
        return
    latest = max((member.last_caught_up_at or 0 for member in quorum.members if member.is_voter), default=0)
    behind = {
        member.node_id
        for member in quorum.members
        if member.last_caught_up_at is not None and latest - member.last_caught_up_at > VOTER_BEHIND
    }
    remaining = quorum.voters - quorum.dead_voters - behind - {node}
    if not is_majority(remaining, quorum.voters):
        yield f"{len(remaining)} of {counted(len(quorum.voters), 'voter')} would be left, which is no majority"
