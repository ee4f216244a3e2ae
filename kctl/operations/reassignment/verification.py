"""The status of each partition of a plan, copy rates, reasons for waiting, and the owners of throttles.

Done means in place, in the plan's order, in sync. A plan's throttles are known from the
journal where it was executed; without that, from the lists themselves: their entries about the plan's
partitions.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kctl.changes.kinds.reassignments import Targets, behind_in, bytes_of, is_named, rate_of, waits_for
from kctl.changes.kinds.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from kctl.cluster.moves import ids, moving_targets
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.versions import V1_1, V2_4
from kctl.model import TopicPartition, some

if TYPE_CHECKING:
    from kctl.changes.entry import Entry
    from kctl.changes.kinds.throttles import ClearThrottle

DONE, IN_PROGRESS, NOT_STARTED, FAILED = "done", "in_progress", "not_started", "failed"


class MoveStatus(NamedTuple):
    """The status of one partition."""

    partition: TopicPartition
    state: str | None  # None if the topic is hidden from the user
    target: Replicas
    replicas: Replicas = ()
    isr: Replicas = ()
    leader: int | None = None
    reason: str | None = None
    bytes_done: int | None = None
    bytes_left: int | None = None
    bytes_per_second: int | None = None  # of all replicas that are copied, as measured
    seconds_left: int | None = None  # at that rate, or at that of a throttle

    @property
    def missing(self) -> Replicas:
        """Target replicas that are not in the ISR."""
        return tuple(b for b in self.target if b not in self.isr)


NOTHING_MORE = (None,) * (len(MoveStatus._fields) - 6)  # for a partition that is done
NOWHERE: Mapping[int, Replicas] = {}


def move_statuses(
    targets: Targets,
    state: ClusterState,
    entries: Iterable[Entry] = (),
    sizes: Mapping[tuple[TopicPartition, int], int] | None = None,
) -> Iterator[MoveStatus]:
    """The status of each partition of a plan, by topic and number."""
    requested = _requested(list(entries), targets)
    settled = _settled(state) if sizes is None else {}
    states, new = state.partition_states, MoveStatus._make
    for tp, target in sorted(targets.items()):
        # The fast path: most partitions are done in the end.
        if (
            settled.get(tp[0], NOWHERE).get(tp[1]) == target
            and (partition_state := states.get(tp)) is not None
        ):
            isr = partition_state.isr
            if isr == target or set(target) <= set(isr):
                yield new((tp, DONE, target, target, isr, partition_state.leader, *NOTHING_MORE))
                continue
        replicas = state.replicas(tp)
        if replicas is None:
            hidden = state.why_unseen(tp.topic)
            yield MoveStatus(tp, None if hidden else FAILED, target, reason=hidden or "no such partition")
            continue
        verdict, reason = _verdict(tp, target, replicas, state, was_requested=tp in requested)
        done, missing = bytes_of(tp, target, verdict == DONE, state, sizes)
        yield MoveStatus(
            partition=tp,
            state=verdict,
            target=target,
            replicas=replicas,
            isr=state.isr(tp),
            leader=state.leader(tp),
            reason=reason,
            bytes_done=done,
            bytes_left=missing,
        )


def _settled(state: ClusterState) -> dict[str, Mapping[int, Replicas]]:
    """The replicas of each topic that is not being moved."""
    if state.reassignment is not None:
        return {}
    return {
        name: topic.partitions
        for name, topic in state.topics.items()
        if not topic.adding_replicas and not topic.removing_replicas
    }


def _verdict(
    tp: TopicPartition, target: Replicas, replicas: Replicas, state: ClusterState, *, was_requested: bool
) -> tuple[str, str | None]:
    waiting = state.reassignment.partitions if state.reassignment else {}
    stored_target = state.topics[tp.topic].target_replicas(tp.partition)
    is_stored = state.topics[tp.topic].is_reassigning(tp.partition)
    elsewhere = stored_target if is_stored else waiting.get(tp)
    if elsewhere is not None and elsewhere != target:
        return FAILED, f"it is being moved to {list(elsewhere)}, which this plan does not say"
    if elsewhere is not None:
        return IN_PROGRESS, f"waits for {waits_for(tp, target, state)}"
    if replicas == target:
        partition_state = state.partition_states.get(tp)
        if partition_state is not None and set(target) <= set(partition_state.isr):
            return DONE, None
        return IN_PROGRESS, f"in place, waits for {waits_for(tp, target, state)}"
    if was_requested:
        return (
            FAILED,
            f"it was asked for and is on {list(replicas)}: the controller dropped it, or it was moved since",
        )
    return NOT_STARTED, None


# --- from the journal ---------------------------------------------------------------------------------


def entries_of(entries: Iterable[Entry], plan_id: str) -> list[Entry]:
    """The changes that carried this plan out, oldest first; undone ones are left out."""
    return [e for e in entries if e.details.get("plan") == plan_id and not e.undone_by]


def _requested(entries: Sequence[Entry], targets: Targets) -> set[TopicPartition]:
    """Partitions whose move to these targets was requested and written."""
    if not entries:
        return set()
    from kctl.changes.kinds.reassignments import Reassign

    return {
        tp
        for entry in entries
        for stage in entry.stages
        if isinstance(stage.intent, Reassign) and stage.state in ("written", "finished")
        for tp, target in stage.intent.targets.items()
        if targets.get(tp) == target
    }


def throttle_of(targets: Targets, entries: Iterable[Entry], state: ClusterState) -> ClearThrottle:
    """The intent that removes the throttles of a plan."""
    from kctl.changes.intents import intent_from_json
    from kctl.changes.kinds.throttles import ClearThrottle, throttle_of_partitions

    known = [e.details["throttle"] for e in entries if e.details.get("throttle")]
    clears = [intent_from_json(values) for values in known if isinstance(values, dict)]
    throttles = [clear for clear in clears if isinstance(clear, ClearThrottle)]
    if not throttles:
        return throttle_of_partitions(targets, state)
    # The first to set a rate knows the value before.
    throttled: dict[str, dict[str, tuple[str, ...]]] = {}
    rates: dict[str, dict[str, str | None]] = {}
    for clear in throttles:
        for topic, keys in clear.throttled.items():
            own = throttled.setdefault(topic, {})
            for key, items in keys.items():
                own[key] = tuple(dict.fromkeys([*own.get(key, ()), *items]))
        for broker, values in clear.rates.items():
            rates.setdefault(broker, dict(values))
    return ClearThrottle(throttled=throttled, rates=rates)


def owners(entries: Iterable[Entry]) -> dict[tuple[str, str, str], str]:
    """The latest plan that set a key: (entity type, entity name, key) to the plan's identity."""
    from kctl.changes.intents import intent_from_json
    from kctl.changes.kinds.throttles import ClearThrottle

    plan_ids: dict[tuple[str, str, str], str] = {}
    for entry in entries:
        values, plan_id = entry.details.get("throttle"), entry.details.get("plan")
        if entry.undone_by or not isinstance(values, dict) or not isinstance(plan_id, str):
            continue
        clear = intent_from_json(values)
        assert isinstance(clear, ClearThrottle)
        plan_ids |= {
            ("topics", topic, key): plan_id for topic, keys in clear.throttled.items() for key in keys
        }
        plan_ids |= {
            ("brokers", broker, key): plan_id for broker, keys in clear.rates.items() for key in keys
        }
    return plan_ids


def brokers_to_clear(entries: Iterable[Entry]) -> set[int]:
    """The brokers whose throttle a change that is not finished set, and is to take off."""
    from kctl.changes.kinds.throttles import ClearThrottle

    return {
        int(broker)
        for entry in entries
        if not entry.undone_by and any(stage.may_be_written for stage in entry.stages)
        for stage in entry.stages
        if isinstance(stage.intent, ClearThrottle) and stage.state != "finished"
        for broker in stage.intent.rates
        if broker.isdecimal()
    }


UNSEEN_AFTER = 30_000  # milliseconds after which the controller must have begun with a request


def explain(state: ClusterState, now: int | None = None) -> Iterator[str]:
    """The reasons why moves will not end by themselves, a sentence each.

    A request that names a dead broker waits for ever, one with a broker twice is never removed from the list, one that
    cannot be read is ignored and left where it is; and a request deleted by hand may have cost the controller its
    watch, so that the next one is not seen until another controller starts.
    """
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
    dead = {
        b for tp, target in targets.items() for b in behind_in(tp, target, state) if not state.is_alive(b)
    }
    if dead:
        held_up = [tp for tp, target in targets.items() if dead & set(behind_in(tp, target, state))]
        option = "" if state.can.cancel_moves else " --move-controller"
        yield (
            f"broker{'s' if len(dead) > 1 else ''} {ids(dead)} {'are' if len(dead) > 1 else 'is'} not alive: "
            f"{some(held_up)} wait for it; start it again, or `kctl reassign cancel PLAN{option}`"
        )


def _is_untouched(targets: Targets, state: ClusterState) -> bool:
    """Whether no partition shows that the controller has begun with a request."""
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


Sizes = Mapping[tuple[TopicPartition, int], int]  # bytes of each replica


def copy_rates(before: Sizes, after: Sizes, seconds: float) -> dict[tuple[TopicPartition, int], float]:
    """Bytes a second by which each replica has grown; 0 for one that became smaller (retention, compaction).

    A follower's log grows in steps of whole fetches, and stands still between them where it is throttled: measurements should
    lie some seconds apart.
    """
    return {key: max(size - before.get(key, 0), 0) / seconds for key, size in after.items()}


def with_rates(
    statuses: Iterable[MoveStatus],
    sizes: Sizes,
    rates: Mapping[tuple[TopicPartition, int], float] | None,
    state: ClusterState,
) -> list[MoveStatus]:
    """The statuses with the measured rate, if there is one, and the time left.

    That is the time of the slowest replica at the measured rate, if all grow; with a throttle it is the time in which
    the throttle lets through all that the same broker still has to send or receive.
    """
    results = list(statuses)
    if rates is not None:
        results = [_with_rate(status, sizes, rates) for status in results]
    return _at_throttles(results, sizes, state)


def _at_throttles(statuses: list[MoveStatus], sizes: Sizes, state: ClusterState) -> list[MoveStatus]:
    throttles = {
        status.partition: list(_throttles_of(status, sizes, state))
        for status in statuses
        if status.state != DONE and status.bytes_left
    }
    shared: Counter[tuple[int, str]] = Counter()
    for uses in throttles.values():
        for broker, key, missing in uses:
            shared[broker, key] += missing

    def timed(status: MoveStatus) -> MoveStatus:
        seconds = [
            -(-shared[broker, key] // rate_of(broker, key, state))
            for broker, key, _ in throttles.get(status.partition, ())
        ]
        return status._replace(seconds_left=max(seconds)) if seconds else status

    return [timed(status) for status in statuses]


def _throttles_of(status: MoveStatus, sizes: Sizes, state: ClusterState) -> Iterator[tuple[int, str, int]]:
    """The throttles of a move: broker, key of its rate, and the bytes still to transfer."""
    whole = max((sizes.get((status.partition, b), 0) for b in status.replicas), default=0)
    for key, list_key, brokers in (
        (FOLLOWER_RATE, FOLLOWER_REPLICAS, status.missing),
        (LEADER_RATE, LEADER_REPLICAS, () if status.leader is None else (status.leader,)),
    ):
        for broker in brokers:
            if is_named(status.partition, broker, list_key, state) and rate_of(broker, key, state):
                is_leader = key == LEADER_RATE
                missing = max(whole - sizes.get((status.partition, broker), 0), 0)
                if is_leader:
                    missing = status.bytes_left or 0
                yield broker, key, missing


def _with_rate(
    status: MoveStatus, sizes: Sizes, rates: Mapping[tuple[TopicPartition, int], float]
) -> MoveStatus:
    behind = [(status.partition, broker) for broker in status.missing]
    if status.state == DONE or not behind or status.bytes_left is None:
        return status
    seen_rates = [rates.get(key, 0.0) for key in behind]
    whole = max((sizes.get((status.partition, b), 0) for b in status.replicas), default=0)
    missing = [max(whole - sizes.get(key, 0), 0) for key in behind]
    measured = list(zip(seen_rates, missing, strict=True))
    seconds = None
    if all(rate > 0 or not size for rate, size in measured):
        seconds = max(-(-size // max(int(rate), 1)) for rate, size in measured)
    return status._replace(bytes_per_second=int(sum(seen_rates)), seconds_left=seconds)
