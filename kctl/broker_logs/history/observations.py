"""Which lines say something about a partition's leader, and what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kctl.broker_logs.events import Event
from kctl.broker_logs.history.leaderships import Observation
from kctl.model import TopicPartition

# Template to the field that holds a printed partition state.
STATES = {
    "C01": "partition_state", "C02": "state", "C04": "partition_state", "C05": "partition_state", "C06": "state",
    "C15": "leader_and_isr", "C20": "partition_state", "C28": "partition_state", "C29": "partition_state",
    "B01": "state", "B02": "state", "B36": "state", "E15": "leader_and_isr", "E17": "leader_and_isr", "F72": "leader_and_isr",
    "L06": "state", "L08": "state", "L12": "registration", "L13": "registration", "Q03": "registration", "Q04": "registration",
}  # fmt: skip
FOR_CLIENTS = frozenset(("C04", "C05", "C06", "B36"))
LEADER_STARTS = frozenset(("L01", "L03", "S12", "S13"))
# E24 tells the epoch alone, as the leader stays.
FOLLOWER_STARTS = frozenset(("L02", "L04", "E24"))
PREVIOUS = re.compile(r"-?\d{1,19}")
DIFFS = frozenset(("Q02", "Q05", "Q06"))


def observations(event: Event) -> Iterator[tuple[TopicPartition, Observation]]:
    """What a line says about leader epochs."""
    find = FINDERS.get(event.event or "")
    if find is not None:
        observation = find(event)
        partition = event.topic_partition
        if observation is not None and partition is not None:
            if (previous := _previous_state(observation)) is not None:
                yield partition, previous
            yield partition, observation


def _previous_state(observation: Observation) -> Observation | None:
    """The epoch that a new leader knew last, and whether anybody led in it; None where the line does not say."""
    fields = observation.event.fields if observation.event.event == "L03" else {}
    leader, epoch = (
        PREVIOUS.search(str(fields.get(name))) for name in ("previous_leader", "previous_leader_epoch")
    )
    if not leader or not epoch or not 0 <= int(epoch[0]) < observation.leader_epoch:
        return None
    return Observation(observation.event, int(epoch[0]), int(leader[0]), is_mention=True)


def _from_state(event: Event) -> Observation | None:
    fields = event.fields
    state = fields.get(STATES[event.event or ""])
    if not isinstance(state, dict):
        return None
    epoch, leader = state.get("leader_epoch"), state.get("leader")
    if not isinstance(epoch, int) or not isinstance(leader, int):
        return None
    written_by = state.get("controller_epoch")
    if not isinstance(written_by, int) and event.event in ("C15", "E17", "E15", "C20"):
        written_by = fields.get("controller_epoch")
    from_state = fields.get("from_state")
    version = state.get("partition_epoch", state.get("zk_version"))
    recovery = state.get("leader_recovery_state")
    leaving = _ids(state.get("removing_replicas")) or ()
    target = tuple(replica for replica in _replicas(event, state) if replica not in leaving)
    return Observation(
        event,
        epoch,
        leader,
        _ids(state.get("isr")),
        written_by if isinstance(written_by, int) and written_by >= 0 else None,
        version if isinstance(version, int) else None,
        target or None,
        from_state if isinstance(from_state, str) else None,
        recovery if isinstance(recovery, str) else None,
    )


def _replicas(event: Event, state: dict[str, object]) -> tuple[int, ...]:
    """The replicas that a state is to have. What is sent for clients' sake has those on their way out too."""
    return () if event.event in FOR_CLIENTS else _ids(state.get("replicas")) or ()


def _ids(value: object) -> tuple[int, ...] | None:
    return (
        tuple(broker_id for broker_id in value if isinstance(broker_id, int))
        if isinstance(value, list)
        else None
    )


def _from_leader(event: Event) -> Observation | None:
    epoch = event.number("leader_epoch")
    if epoch is None or event.broker_id is None:
        return None
    isr, version = _ids(event.fields.get("isr")), event.number("partition_epoch")
    return Observation(event, epoch, event.broker_id, isr, version=version)


def _from_follower(event: Event) -> Observation | None:
    epoch = event.number("leader_epoch")
    return None if epoch is None else Observation(event, epoch, event.number("leader"))


def _from_changes(event: Event) -> Observation | None:
    """A change of a KRaft partition, where it names the new leader and its epoch."""
    changes = event.fields.get("changes")
    if not isinstance(changes, dict) or "leader_epoch" not in changes:
        return None

    def after(name: str) -> object:
        return changes[name][1] if name in changes else None

    epoch, leader, recovery, version = map(
        after, ("leader_epoch", "leader", "leader_recovery_state", "partition_epoch")
    )
    if not isinstance(epoch, int):
        return None
    return Observation(
        event,
        epoch,
        leader if isinstance(leader, int) else None,
        _ids(after("isr")),
        version=version if isinstance(version, int) else None,
        recovery_state=recovery if isinstance(recovery, str) else None,
    )


FINDERS: dict[str, Callable[[Event], Observation | None]] = {
    **dict.fromkeys(STATES, _from_state),
    **dict.fromkeys(LEADER_STARTS, _from_leader),
    **dict.fromkeys(FOLLOWER_STARTS, _from_follower),
    **dict.fromkeys(DIFFS, _from_changes),
}
