"""Where each partition of a plan stands, how fast it is copied, why it does not end, and whose throttles are still set.

Done is only what is where the plan says, in the plan's order, in sync. A plan's throttles are known from the
journal of whoever executed it; where there is none, from the lists themselves: what they say about the plan's
partitions.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from formats.whole_numbers import whole_number
from kctl.cluster.reassignment.moves import ids, moving_targets, some
from kctl.cluster.reassignment.throttles import (
    EVERYTHING,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    split,
)
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.versions import V1_1, V2_4
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.changes.entry import Entry
    from kctl.changes.intents import ClearThrottle

Targets = Mapping[TopicPartition, Replicas]
DONE, IN_PROGRESS, NOT_STARTED, FAILED = "done", "in_progress", "not_started", "failed"


class Standing(NamedTuple):
    """Where one partition stands."""

    partition: TopicPartition
    state: str
    target: Replicas
    replicas: Replicas = ()
    isr: Replicas = ()
    leader: int | None = None
    reason: str | None = None
    bytes_done: int | None = None
    bytes_left: int | None = None
    bytes_per_second: int | None = None  # of all replicas that are copied, as seen
    seconds_left: int | None = None  # at that rate, or at that of a throttle

    @property
    def missing(self) -> Replicas:
        """Target replicas that are not in the ISR."""
        return tuple(b for b in self.target if b not in self.isr)


NOTHING_MORE = (None,) * (len(Standing._fields) - 6)  # of a partition that is done
NOWHERE: Mapping[int, Replicas] = {}


def standings(
    targets: Targets,
    state: ClusterState,
    entries: Iterable[Entry] = (),
    sizes: Mapping[tuple[TopicPartition, int], int] | None = None,
) -> Iterator[Standing]:
    """Where each partition of a plan stands, by topic and number."""
    asked = _asked_for(list(entries), targets)
    settled = _settled(state) if sizes is None else {}
    states, new = state.partition_states, Standing._make
    for tp, target in sorted(targets.items()):
        # What most partitions are in the end is found out at once.
        if settled.get(tp[0], NOWHERE).get(tp[1]) == target and (found := states.get(tp)) is not None:
            isr = found.isr
            if isr == target or set(target) <= set(isr):
                yield new((tp, DONE, target, target, isr, found.leader, *NOTHING_MORE))
                continue
        replicas = state.replicas(tp)
        if replicas is None:
            yield Standing(partition=tp, state=FAILED, target=target, reason="no such partition")
            continue
        verdict, reason = _verdict(tp, target, replicas, state, was_asked=tp in asked)
        found = state.partition_states.get(tp)
        done, left = _bytes(tp, target, verdict, state, sizes)
        yield Standing(
            partition=tp,
            state=verdict,
            target=target,
            replicas=replicas,
            isr=found.isr if found else (),
            leader=found.leader if found else None,
            reason=reason,
            bytes_done=done,
            bytes_left=left,
        )


def waits_for(tp: TopicPartition, target: Sequence[int], state: ClusterState) -> str:
    """What a move waits for, as a noun."""
    found = state.partition_states.get(tp)
    behind = [b for b in target if b not in (found.isr if found else ())]
    dead = [b for b in behind if not state.is_alive(b)]
    if not state.has_controller:
        return "a controller"
    if dead:
        return f"broker {ids(dead)}, which is not alive"
    failed = [b for b in behind if not state.is_replica_alive(tp, b)]
    if failed:
        return f"broker {ids(failed)}, whose disk with it has failed"
    if found is None or not state.is_alive(found.leader):
        return "a leader to copy from"
    if behind:
        rates = [
            _rate_of(b, FOLLOWER_RATE, state) for b in behind if _is_named(tp, b, FOLLOWER_REPLICAS, state)
        ]
        rates += (
            [_rate_of(found.leader, LEADER_RATE, state)]
            if _is_named(tp, found.leader, LEADER_REPLICAS, state)
            else []
        )
        throttled = min(filter(None, rates), default=0)
        more = f", throttled to {throttled:,} bytes a second" if throttled else ""
        return f"broker {ids(behind)} to join the ISR{more}"
    return "the controller"


def _is_named(tp: TopicPartition, broker: int, key: str, state: ClusterState) -> bool:
    """Whether a list of throttled replicas of the topic has the replica."""
    named = split(state.config("topics", tp.topic).get(key))
    return EVERYTHING in named or f"{tp.partition}:{broker}" in named


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
    tp: TopicPartition, target: Replicas, replicas: Replicas, state: ClusterState, *, was_asked: bool
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
        found = state.partition_states.get(tp)
        if found is not None and set(target) <= set(found.isr):
            return DONE, None
        return IN_PROGRESS, f"in place, waits for {waits_for(tp, target, state)}"
    if was_asked:
        return (
            FAILED,
            f"it was asked for and is on {list(replicas)}: the controller dropped it, or it was moved since",
        )
    return NOT_STARTED, None


def _bytes(
    tp: TopicPartition,
    target: Replicas,
    verdict: str,
    state: ClusterState,
    sizes: Mapping[tuple[TopicPartition, int], int] | None,
) -> tuple[int | None, int | None]:
    """Bytes copied and to be copied, from the sizes of folders: what the leader has counts as whole."""
    if sizes is None:
        return None, None
    found = state.partition_states.get(tp)
    whole = max((sizes.get((tp, b), 0) for b in (state.replicas(tp) or ())), default=0)
    if found is not None and (tp, found.leader) in sizes:
        whole = sizes[tp, found.leader]
    adding = [b for b in target if b not in state.topics[tp.topic].origin_replicas(tp.partition)]
    if verdict == DONE or found is None:
        return whole * len(adding), 0
    behind = [b for b in target if b not in found.isr]
    left = sum(max(whole - sizes.get((tp, b), 0), 0) for b in behind)
    return max(whole * len(behind) - left, 0), left


def bytes_left(targets: Targets, state: ClusterState, sizes: Mapping[tuple[TopicPartition, int], int]) -> int:
    """Bytes that the replicas of all targets still lack of what the leaders have."""
    return sum(
        _bytes(tp, target, IN_PROGRESS, state, sizes)[1] or 0
        for tp, target in targets.items()
        if state.replicas(tp) is not None
    )


# --- what the journal knows ---------------------------------------------------------------------------


def entries_of(entries: Iterable[Entry], plan_id: str) -> list[Entry]:
    """The changes that carried this plan out, oldest first; undone ones are left out."""
    return [e for e in entries if e.details.get("plan") == plan_id and not e.undone_by]


def _asked_for(entries: Sequence[Entry], targets: Targets) -> set[TopicPartition]:
    """Partitions whose move to these targets was asked for and seen to be written."""
    if not entries:
        return set()
    from kctl.changes.intents import Reassign

    return {
        tp
        for entry in entries
        for stage in entry.stages
        if isinstance(stage.intent, Reassign) and stage.state in ("written", "finished")
        for tp, target in stage.intent.targets.items()
        if targets.get(tp) == target
    }


def throttle_of(targets: Targets, entries: Iterable[Entry], state: ClusterState) -> ClearThrottle:
    """What takes away the throttles of a plan, as far as they are still there."""
    from kctl.changes.intents import ClearThrottle, intent_from_json
    from kctl.cluster.reassignment.throttles import throttle_of_partitions

    known = [e.details["throttle"] for e in entries if e.details.get("throttle")]
    clears = [intent_from_json(values) for values in known if isinstance(values, dict)]
    found = [clear for clear in clears if isinstance(clear, ClearThrottle)]
    if not found:
        return throttle_of_partitions(targets, state)
    # The first to set a rate knows what was there before.
    throttled: dict[str, dict[str, tuple[str, ...]]] = {}
    rates: dict[str, dict[str, str | None]] = {}
    for clear in found:
        for topic, keys in clear.throttled.items():
            own = throttled.setdefault(topic, {})
            for key, items in keys.items():
                own[key] = tuple(dict.fromkeys([*own.get(key, ()), *items]))
        for broker, values in clear.rates.items():
            rates.setdefault(broker, dict(values))
    return ClearThrottle(throttled=throttled, rates=rates)


def owners(entries: Iterable[Entry]) -> dict[tuple[str, str, str], str]:
    """Which plan set what: entity type, entity name and key to the plan's identity, the latest one."""
    from kctl.changes.intents import ClearThrottle, intent_from_json

    found: dict[tuple[str, str, str], str] = {}
    for entry in entries:
        values, plan_id = entry.details.get("throttle"), entry.details.get("plan")
        if entry.undone_by or not isinstance(values, dict) or not isinstance(plan_id, str):
            continue
        clear = intent_from_json(values)
        assert isinstance(clear, ClearThrottle)
        found |= {("topics", topic, key): plan_id for topic, keys in clear.throttled.items() for key in keys}
        found |= {("brokers", broker, key): plan_id for broker, keys in clear.rates.items() for key in keys}
    return found


UNSEEN_AFTER = 30_000  # milliseconds after which a request that nobody touched was not seen


def explain(state: ClusterState, now: int | None = None) -> Iterator[str]:
    """Why what is moving will not end by itself, a sentence each; nothing where all is well.

    A request that names a dead broker waits for ever, one with a broker twice is never taken off the list, one that
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
    dead = {b for tp, target in targets.items() for b in _behind(tp, target, state) if not state.is_alive(b)}
    if dead:
        held_up = [tp for tp, target in targets.items() if dead & set(_behind(tp, target, state))]
        yield (
            f"broker{'s' if len(dead) > 1 else ''} {ids(dead)} {'are' if len(dead) > 1 else 'is'} not alive: "
            f"{some(held_up)} wait for it; start it again, or `kctl reassign cancel PLAN --move-controller`"
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


Sizes = Mapping[tuple[TopicPartition, int], int]  # bytes of each replica


def copy_rates(before: Sizes, after: Sizes, seconds: float) -> dict[tuple[TopicPartition, int], float]:
    """Bytes a second by which each replica has grown; 0 for one that became smaller (retention, compaction).

    A follower's log grows in steps of whole fetches, and stands still between them where it is throttled: looks should
    lie some seconds apart.
    """
    return {key: max(size - before.get(key, 0), 0) / seconds for key, size in after.items()}


def with_rates(
    standings: Iterable[Standing],
    sizes: Sizes,
    rates: Mapping[tuple[TopicPartition, int], float] | None,
    state: ClusterState,
) -> list[Standing]:
    """The standings with the rate seen, where it was measured, and the time left.

    That is the time of the slowest replica at the rate seen, if all grow; of what is throttled, it is the time in which
    the throttle lets through everything that the same broker is still to give or get.
    """
    listed = list(standings)
    if rates is not None:
        listed = [_with_rate(standing, sizes, rates) for standing in listed]
    return _at_throttles(listed, sizes, state)


def _at_throttles(listed: list[Standing], sizes: Sizes, state: ClusterState) -> list[Standing]:
    throttles = {
        one.partition: list(_throttles_of(one, sizes, state))
        for one in listed
        if one.state != DONE and one.bytes_left
    }
    shared: Counter[tuple[int, str]] = Counter()
    for uses in throttles.values():
        for broker, key, left in uses:
            shared[broker, key] += left

    def timed(one: Standing) -> Standing:
        seconds = [
            -(-shared[broker, key] // _rate_of(broker, key, state))
            for broker, key, _ in throttles.get(one.partition, ())
        ]
        return one._replace(seconds_left=max(seconds)) if seconds else one

    return [timed(one) for one in listed]


def _throttles_of(one: Standing, sizes: Sizes, state: ClusterState) -> Iterator[tuple[int, str, int]]:
    """The throttles that a move goes through: broker, key of its rate, and the bytes that are still to go through."""
    whole = max((sizes.get((one.partition, b), 0) for b in one.replicas), default=0)
    for key, list_key, brokers in (
        (FOLLOWER_RATE, FOLLOWER_REPLICAS, one.missing),
        (LEADER_RATE, LEADER_REPLICAS, () if one.leader is None else (one.leader,)),
    ):
        for broker in brokers:
            if _is_named(one.partition, broker, list_key, state) and _rate_of(broker, key, state):
                is_leader = key == LEADER_RATE
                left = one.bytes_left if is_leader else max(whole - sizes.get((one.partition, broker), 0), 0)
                yield broker, key, left or 0


def _rate_of(broker: int, key: str, state: ClusterState) -> int:
    """The rate of a throttle in bytes a second; 0 where there is none."""
    rate = state.config("brokers", str(broker)).get(key) or state.config("brokers", "<default>").get(key, "")
    return whole_number(rate) or 0


def _with_rate(one: Standing, sizes: Sizes, rates: Mapping[tuple[TopicPartition, int], float]) -> Standing:
    behind = [(one.partition, broker) for broker in one.missing]
    if one.state == DONE or not behind or one.bytes_left is None:
        return one
    seen = [rates.get(key, 0.0) for key in behind]
    whole = max((sizes.get((one.partition, b), 0) for b in one.replicas), default=0)
    left = [max(whole - sizes.get(key, 0), 0) for key in behind]
    seconds = None
    if all(rate > 0 or not missing for rate, missing in zip(seen, left, strict=True)):
        seconds = max(-(-missing // max(int(rate), 1)) for rate, missing in zip(seen, left, strict=True))
    return one._replace(bytes_per_second=int(sum(seen)), seconds_left=seconds)
