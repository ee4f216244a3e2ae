"""What is moving, and why a move does not end.

A request that names a dead broker waits for ever, one with a broker twice is never taken off the list, one that
cannot be read is ignored and left where it is; and a request deleted by hand may have cost the controller its
watch, so that the next one is not seen until another controller starts.
"""

import time
from collections.abc import Iterator

from kctl.cluster.goals import ids
from kctl.cluster.moving import moving_targets
from kctl.cluster.reassignment import Targets
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.versions import V1_1, V2_4
from kctl.model import TopicPartition

UNSEEN_AFTER = 30_000  # milliseconds after which a request that nobody touched was not seen


def explain(state: ClusterState, now: int | None = None) -> Iterator[str]:
    """Why what is moving will not end by itself, a sentence each; nothing where all is well."""
    request = state.reassignment
    moment = int(time.time() * 1000) if now is None else now
    if request is not None and request.unreadable:
        yield (
            f"the controller ignores the waiting reassignment and will leave it there: {request.unreadable}; "
            "take it away by hand and move the controller"
        )
        return
    targets = moving_targets(state)
    yield from _dead(targets, state)
    if request is None:
        return
    twice = [str(tp) for tp, r in request.partitions.items() if len(set(r)) < len(r)]
    if twice:
        yield f"{', '.join(twice)} names a broker twice: the request is never taken off the list"
    if not state.has_controller:
        yield "there is no controller to take the request"
    age = moment - request.created_at if request.created_at is not None else 0
    if age > UNSEEN_AFTER and state.has_controller and _is_untouched(request.partitions, state):
        yield (
            f"the controller has not begun after {age // 1000} s: it may have lost its watch when an earlier "
            "request was deleted by hand; the next controller will take it"
        )


def _dead(targets: Targets, state: ClusterState) -> Iterator[str]:
    dead = {b for tp, target in targets.items() for b in _behind(tp, target, state) if not state.is_alive(b)}
    if dead:
        held_up = [str(tp) for tp, target in targets.items() if dead & set(_behind(tp, target, state))]
        shown = ", ".join(held_up[:5]) + (f" and {len(held_up) - 5} more" if len(held_up) > 5 else "")
        yield (
            f"broker{'s' if len(dead) > 1 else ''} {ids(dead)} {'are' if len(dead) > 1 else 'is'} not alive: "
            f"{shown} wait for it; start it again, or `kctl reassign cancel PLAN --move-controller`"
        )


def _behind(tp: TopicPartition, target: Replicas, state: ClusterState) -> list[int]:
    found = state.partition_states.get(tp)
    return [b for b in target if b not in (found.isr if found else ())]


def _is_untouched(targets: Targets, state: ClusterState) -> bool:
    """Whether no partition of a request shows that the controller began with it."""
    if state.kafka_version < V1_1:
        return False  # an edit is an event there too, and the watch stays
    for tp, target in targets.items():
        replicas = state.replicas(tp) or ()
        if replicas == target or (
            tp.topic in state.topics and state.topics[tp.topic].is_reassigning(tp.partition)
        ):
            return False
        if state.kafka_version < V2_4 and set(target) <= set(replicas):
            return False
    return bool(targets)
