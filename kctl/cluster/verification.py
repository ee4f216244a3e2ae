"""Where each partition of a plan stands, and whose throttles are still set.

Done is only what is where the plan says, in the plan's order, in sync. A plan's throttles are known from the
journal of whoever executed it; where there is none, from the lists themselves: what they say about the plan's
partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kctl.cluster.state import ClusterState, Replicas
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.changes.entry import Entry
    from kctl.changes.intents import ClearThrottle
    from kctl.cluster.disk_sizes import ReplicaSize
    from kctl.cluster.reassignment import Targets

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
    seconds_left: int | None = None  # at that rate

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
            yield Standing(partition=tp, state=FAILED, target=target, reason="there is no such partition")
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
    from kctl.cluster.reassignment import waits_for

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


def by_replica(replicas: Iterable[ReplicaSize]) -> dict[tuple[TopicPartition, int], int]:
    """Sizes by partition and broker; replicas whose broker nothing tells are left out."""
    found: dict[tuple[TopicPartition, int], int] = {}
    for one in replicas:
        if one.broker_id is not None:
            key = one.partition, one.broker_id
            found[key] = max(found.get(key, 0), one.size_in_bytes)
    return found


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
    from kctl.cluster.throttles import throttle_of_partitions

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
