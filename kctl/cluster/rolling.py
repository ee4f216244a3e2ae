"""A rolling restart: in which order, and whether a node can be stopped now without anybody noticing.

Racks one after the other, controllers apart from brokers behind them, the active controller last: so that it moves
once. A node may be stopped when no partition there would go under min.insync.replicas, every replica beside it is in
sync, nothing is being moved, everybody else is alive, and the voters that are left are a majority.
"""

from collections.abc import Collection, Iterator, Sequence

from formats.values import Struct
from kctl.changes.intents import counted
from kctl.cluster.disks import LogDir
from kctl.cluster.partition_health import min_isr
from kctl.cluster.reassignment.moves import some
from kctl.cluster.state import ClusterState, is_majority
from kctl.model import TopicPartition

VOTER_BEHIND = 10_000  # milliseconds


class Restart(Struct, frozen=True, kw_only=True):
    """A node, its place in the order, and what it waits for before it can be stopped."""

    broker_id: int
    place: int
    roles: tuple[str, ...]
    is_leader: bool
    waits_for: tuple[str, ...]

    @property
    def is_safe_now(self) -> bool:
        """Whether it can be stopped now."""
        return not self.waits_for

    @property
    def reason(self) -> str | None:
        """The first thing that it waits for."""
        return next(iter(self.waits_for), None)


def rolling_restart(state: ClusterState, disks: Sequence[LogDir]) -> list[Restart]:
    """Every node, in order."""
    voters = frozenset(id for id in (state.quorum.voters if state.quorum else ()) if id >= 0)
    assigned = {id for tp in state.partitions() for id in state.topics[tp.topic].partitions[tp.partition]}
    brokers = assigned | set(state.brokers)
    hosted = _hosted(state)
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
    found: dict[int, list[TopicPartition]] = {}
    for tp in state.partitions():
        for broker in state.topics[tp.topic].partitions[tp.partition]:
            found.setdefault(broker, []).append(tp)
    return found


def _everybody(
    state: ClusterState, disks: Sequence[LogDir], brokers: Collection[int]
) -> list[tuple[int | None, str]]:
    """What is wrong with somebody that keeps all others from being stopped, with the node where it is one."""
    found: list[tuple[int | None, str]] = []
    if not state.has_controller:
        found.append((None, "there is no active controller"))
    found += [
        (broker, f"broker {broker} is not alive") for broker in sorted(brokers) if not state.is_alive(broker)
    ]
    silent = {p.silent_broker for p in state.problems if p.silent_broker is not None}
    silent |= {one.broker_id for one in disks if one.path is None and state.is_alive(one.broker_id)}
    found += [(broker, f"broker {broker} does not answer") for broker in sorted(silent)]
    found += [
        (one.broker_id, f"log directory {one.path} of broker {one.broker_id} has failed")
        for one in disks
        if one.state == "failed"
    ]
    for one in disks:
        if moving := sum(replica.is_future for replica in one.replicas):
            text = f"broker {one.broker_id} is moving {counted(moving, 'replica')} between its disks"
            found.append((None, text))
    return found


def _waits_for(
    node: int, state: ClusterState, hosted: Sequence[TopicPartition], others: Sequence[str]
) -> Iterator[str]:
    yield from others
    yield from _quorum(node, state)
    offline, small, behind, moving = [], [], [], []
    for tp in hosted:
        replicas, found = state.topics[tp.topic].partitions[tp.partition], state.partition_states.get(tp)
        rest = [b for b in (found.isr if found else ()) if b != node and state.is_replica_alive(tp, b)]
        if state.is_reassigning(tp):
            moving.append(tp)
        if not rest:
            offline.append(tp)
        elif len(rest) < min_isr(tp.topic, found.leader if found else None, state):
            small.append(tp)
        elif set(replicas) - {node} > set(rest):
            behind.append(tp)
    for partitions, what in (
        (offline, "would go offline"),
        (small, "would have fewer in the ISR than min.insync.replicas"),
        (behind, "not in sync everywhere"),
        (moving, "being moved"),
    ):
        if partitions:
            yield f"{counted(len(partitions), 'partition')} {what}: {some(partitions)}"


def _quorum(node: int, state: ClusterState) -> Iterator[str]:
    """That no majority of the voters would be left, those that are far behind not counted."""
    quorum = state.quorum
    if quorum is None or node not in quorum.voters:
        return
    latest = max((one.last_caught_up_at or 0 for one in quorum.members if one.is_voter), default=0)
    behind = {
        one.node_id
        for one in quorum.members
        if one.last_caught_up_at is not None and latest - one.last_caught_up_at > VOTER_BEHIND
    }
    left = quorum.voters - quorum.dead_voters - behind - {node}
    if not is_majority(left, quorum.voters):
        yield f"{len(left)} of {len(quorum.voters)} voters would be left, which is no majority"
