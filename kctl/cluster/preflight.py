"""What both backends refuse just before they write, whatever they have read it from: moves, growth, elections.

Plans refuse more, for all partitions at once and with what to do (`kctl/operations/`). What is here holds once more when a
stage is written, which may be long after it was planned.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from kctl.cluster import names
from kctl.cluster.interface import Conflict
from kctl.cluster.state import ClusterState, Replicas
from kctl.errors import Refused
from kctl.model import TopicPartition

IsAlive = Callable[[int], bool]


def check_target(tp: TopicPartition, target: Replicas, is_alive: IsAlive) -> None:
    """Raise Refused for what would lose data, or what a controller accepts and never finishes."""
    if not target:
        raise names.no_replicas(tp)
    if len(set(target)) < len(target):
        raise Refused(
            f"{tp} would have a broker twice: {list(target)}; nothing was written",
            "name each broker once for it in the plan",
        )
    if min(target) < 0:
        raise Refused(
            f"{tp} would be on broker {min(target)}, which is not a broker id; nothing was written",
            "broker ids in the plan must not be negative",
        )
    if dead := sorted(broker for broker in target if not is_alive(broker)):
        raise names.dead_targets(tp, dead)


def check_way_back(tp: TopicPartition, target: Replicas, state: ClusterState) -> None:
    """Raise Refused if no replica of a move back can lead: a controller needs one live replica in the ISR.

    Replicas on dead brokers and failed disks may be among the others: a move back copies nothing.
    """
    isr = state.isr(tp)
    if not any(b in isr and state.is_replica_alive(tp, b) for b in target):
        raise Refused(
            f"{tp} cannot go back to {list(target)}: none of these is alive and in the ISR, {list(isr)}; "
            "nothing was written",
            "let the move finish, or start one of them",
        )


def check_origin(tp: TopicPartition, present: Replicas, origin: Iterable[int] | None) -> None:
    """Raise Conflict where a partition is not where it was as its move was planned; `origin` is None where that is unknown."""
    if origin is not None and present != tuple(origin):
        raise Conflict(
            f"{tp} is on {list(present)}, not on {list(origin)} as it was planned; nothing was written"
        )


def check_growth(
    topic: str,
    present: Mapping[int, Replicas],
    added: Collection[int],
    planned: Mapping[int, Replicas] | None,
) -> int:
    """The number of partitions that a topic has then. Raises Conflict where it is not as planned, Refused for a gap."""
    if planned is not None and dict(planned) != dict(present):
        raise Conflict(f"topic {topic} was changed by somebody else; nothing was written")
    total = len(present) + len(added)
    if [*sorted(present), *sorted(added)] != list(range(total)):
        raise names.not_consecutive(topic, total - 1)
    return total


def check_preferred(tp: TopicPartition, preferred: int, isr: Collection[int], is_alive: IsAlive) -> None:
    """Raise Refused where the preferred leader cannot lead."""
    if not is_alive(preferred) or preferred not in isr:
        raise names.not_electable(tp, preferred, is_alive=is_alive(preferred))
