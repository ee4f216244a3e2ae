"""Who led a partition in which epoch, from brokers' logs where there are any, else from the znodes of moments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from formats.znodes import NO_LEADER
from kctl.model import TopicPartition
from kctl.replica.moments import PartitionState, Znodes
from kctl.replica.testimony import Testimony


@dataclass(frozen=True, slots=True)
class Led:
    """One leadership. `isr` is as decided, `last_isr` as it was at its end; None where nobody says."""

    leader_epoch: int
    leader: int | None
    isr: tuple[int, ...] | None = None
    last_isr: tuple[int, ...] | None = None
    isr_changed: bool = False
    from_ms: int | None = None
    how: str = "unknown"
    proofs: tuple[Mapping[str, object], ...] = ()
    cause: str = ""
    is_isr_last: bool = False
    """Whether every change of the ISR is known: a leader's own log names those that it made."""
    eligible: tuple[int, ...] = ()
    """Who may be elected next besides the ISR, as cleanly (KIP-966)."""


class IsrBefore(NamedTuple):
    """The last ISR that had members before an election."""

    isr: tuple[int, ...] | None
    is_complete: bool
    """Whether every decision in between is known."""
    is_last: bool
    """Whether it was surely the last, no member having come back unseen."""
    eligible: tuple[int, ...] = ()
    """Who was eligible besides."""


@dataclass(frozen=True)
class Leaders:
    """The leaderships that are known, ascending; an epoch that is not there is not known."""

    known: tuple[Led, ...] = ()
    by_epoch: Mapping[int, Led] = field(default_factory=dict)
    is_doubtful: bool = False
    """Whether the order of times says nothing, so that nobody knows which ISR was the last of an epoch."""

    def of(self, leader_epoch: int | None) -> Led | None:
        """The leadership of an epoch."""
        return self.by_epoch.get(leader_epoch) if leader_epoch is not None else None

    def leader_of(self, leader_epoch: int | None) -> int | None:
        """Who led in an epoch; None where nobody knows, or nobody led."""
        found = self.of(leader_epoch)
        return found.leader if found and found.leader is not None and found.leader >= 0 else None

    def before(self, leader_epoch: int) -> Sequence[Led]:
        """The leaderships of lower epochs, the nearest first."""
        return [led for led in reversed(self.known) if led.leader_epoch < leader_epoch]

    def isr_before(self, leader_epoch: int) -> IsrBefore:
        """The last ISR that had members before an epoch.

        A state without a leader may have an empty ISR (0.8.2 to 1.0): then the leader before it was alone in its own.
        """
        expected = leader_epoch - 1
        complete, emptied = True, False
        eligible = next((led.eligible for led in self.before(leader_epoch)), ())
        for led in self.before(leader_epoch):
            complete = complete and led.leader_epoch == expected and led.leader is not None
            expected = led.leader_epoch - 1
            isr = led.last_isr or led.isr
            if isr and emptied and complete and led.leader is not None and led.leader in isr:
                return IsrBefore((led.leader,), True, True, eligible)
            if isr:
                return IsrBefore(isr, complete, complete and led.is_isr_last, eligible)
            emptied = led.leader == NO_LEADER and led.isr is not None
        return IsrBefore(None, False, False)


def leaders_of(partition: TopicPartition, testimony: Testimony, moments: Iterable[Znodes]) -> Leaders:
    """The leaderships of a partition; znodes fill in what the logs do not say."""
    found: dict[int, Led] = {}
    servers = testimony.history.servers if testimony.history else frozenset()
    for one in testimony.leaderships(partition):
        if one.leader is None and one.cause:
            continue  # a gap that the timeline names as such
        found[one.leader_epoch] = Led(
            one.leader_epoch,
            one.leader,
            one.isr,
            one.last_isr,
            bool(one.isr_changes),
            one.from_ms,
            one.how,
            tuple(one.proofs),
            one.cause,
            one.leader == NO_LEADER or one.leader in servers,
        )
    same = _of_present_topic(partition.topic, moments)
    for decided in _decided(partition, same).values():
        said = found.get(decided.leader_epoch, decided)
        found[decided.leader_epoch] = replace(
            said,
            leader=decided.leader,
            isr=decided.isr,
            last_isr=decided.last_isr,
            isr_changed=decided.isr_changed,
            is_isr_last=True,
            eligible=decided.eligible,
        )
    for znodes in same:
        state = znodes.states.get(partition)
        if state is None or partition in znodes.decisions:
            continue
        known = found.get(state.leader_epoch)
        if known is None:
            found[state.leader_epoch] = _from_znode(state)
        elif not testimony.history:
            found[state.leader_epoch] = Led(
                known.leader_epoch,
                known.leader,
                known.isr,
                state.isr,
                known.isr != state.isr,
                proofs=known.proofs,
                is_isr_last=known.is_isr_last,
            )
    ordered = tuple(found[epoch] for epoch in sorted(found))
    return Leaders(ordered, {led.leader_epoch: led for led in ordered}, testimony.is_doubtful)


def _from_znode(state: PartitionState) -> Led:
    """A leadership that a znode of one moment alone tells of."""
    proof = {"file": state.file, "text": f"leader {state.leader}, ISR {list(state.isr)}"}
    return Led(
        state.leader_epoch,
        state.leader,
        state.isr,
        state.isr,
        proofs=(proof,),
        is_isr_last=state.leader == NO_LEADER,
    )


def _of_present_topic(topic: str, moments: Iterable[Znodes]) -> list[Znodes]:
    """The moments but those at which another topic had the name."""
    known = list(moments)
    created = next((one.created[topic] for one in reversed(known) if topic in one.created), None)
    topic_id = next((one.topic_ids[topic] for one in reversed(known) if topic in one.topic_ids), None)
    return [
        one
        for one in known
        if one.created.get(topic, created) == created and one.topic_ids.get(topic, topic_id) == topic_id
    ]


def _decided(partition: TopicPartition, moments: Iterable[Znodes]) -> dict[int, Led]:
    """The leaderships of a metadata log, by epoch: the ISR as decided, and as it was at the end."""
    found: dict[int, Led] = {}
    for znodes in moments:
        for state in znodes.decisions.get(partition, ()):
            proof = {"file": state.file, "text": f"leader {state.leader}, ISR {list(state.isr)}"}
            one = Led(state.leader_epoch, state.leader, state.isr, state.isr, proofs=(proof,))
            first = found.setdefault(state.leader_epoch, one)
            if first.last_isr != state.isr:
                first = replace(first, last_isr=state.isr, isr_changed=True)
            found[state.leader_epoch] = replace(first, eligible=state.eligible)
    return found
