"""Who led a partition in which epoch, from brokers' logs if there are any, else from the znodes of each moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from formats.values import Struct, field, replace
from formats.znodes.cluster import NO_LEADER
from kctl.broker_logs.history.decided import how_it_began
from kctl.broker_logs.history.leaderships import SURE
from kctl.copies.log_notes import LogNotes
from kctl.copies.moments import RecordedState, Znodes
from kctl.model import TopicPartition


class LeaderTerm(Struct, frozen=True):
    """One leadership. `isr` is as decided, `last_isr` as it was at the end; None if unknown."""

    leader_epoch: int
    leader: int | None
    isr: tuple[int, ...] | None = None
    last_isr: tuple[int, ...] | None = None
    from_ms: int | None = None
    how: str = "unknown"
    proofs: tuple[Mapping[str, object], ...] = ()
    is_isr_last: bool = False
    """Whether every change of the ISR is known: the leader's own log names the changes that it made."""
    eligible: tuple[int, ...] = ()
    """Eligible leader replicas besides the ISR; electing one of them is clean too (KIP-966)."""
    is_decided: bool = False
    """Whether a metadata log says how it began; then lines of brokers do not count."""
    strength: str = SURE
    """Whether states and words decide how it began, or only that the words were said about then."""

    @property
    def leader_id(self) -> int | None:
        """The broker that led; None without a leader, or if it is unknown."""
        return self.leader if self.leader is not None and self.leader >= 0 else None


class IsrBefore(NamedTuple):
    """The last ISR that had members before an election."""

    isr: tuple[int, ...] | None
    is_complete: bool
    """Whether every decision in between is known."""
    is_last: bool
    """Whether it was certainly the last ISR: no member can have come back unnoticed."""
    eligible: tuple[int, ...] = ()
    """Eligible leader replicas outside the ISR."""


class Leaders(Struct, frozen=True):
    """The known leaderships, ascending; epochs that are missing are unknown."""

    known: tuple[LeaderTerm, ...] = ()
    by_epoch: Mapping[int, LeaderTerm] = field(default_factory=dict)
    is_doubtful: bool = False
    """Whether the order of times is unreliable, so that the last ISR of an epoch is unknown."""

    def of(self, leader_epoch: int | None) -> LeaderTerm | None:
        """The leadership of an epoch; None if unknown."""
        return self.by_epoch.get(leader_epoch) if leader_epoch is not None else None

    def leader_of(self, leader_epoch: int | None) -> int | None:
        """Who led in an epoch; None if unknown, or without a leader."""
        term = self.of(leader_epoch)
        return term.leader_id if term else None

    def before(self, leader_epoch: int) -> Sequence[LeaderTerm]:
        """The leaderships of lower epochs, nearest first."""
        return [term for term in reversed(self.known) if term.leader_epoch < leader_epoch]

    def isr_before(self, leader_epoch: int) -> IsrBefore:
        """The last ISR that had members before an epoch.

        A state without a leader may have an empty ISR (0.8.2 to 1.0): then the leader before it was alone in the ISR.
        """
        expected = leader_epoch - 1
        complete, emptied = True, False
        eligible = next((term.eligible for term in self.before(leader_epoch)), ())
        for term in self.before(leader_epoch):
            complete = complete and term.leader_epoch == expected and term.leader is not None
            expected = term.leader_epoch - 1
            isr = term.last_isr or term.isr
            if isr and emptied and complete and term.leader is not None and term.leader in isr:
                return IsrBefore((term.leader,), True, True, eligible)
            if isr:
                return IsrBefore(isr, complete, complete and term.is_isr_last, eligible)
            emptied = term.leader == NO_LEADER and term.isr is not None
        return IsrBefore(None, False, False)


def leaders_of(partition: TopicPartition, log_notes: LogNotes, moments: Iterable[Znodes]) -> Leaders:
    """The leaderships of a partition from logs, completed from znodes."""
    terms: dict[int, LeaderTerm] = {}
    servers = log_notes.history.servers if log_notes.history else frozenset()
    for leadership in log_notes.leaderships(partition):
        if leadership.leader is None and leadership.cause:
            continue  # a gap that the timeline names as such
        terms[leadership.leader_epoch] = LeaderTerm(
            leadership.leader_epoch,
            leadership.leader,
            leadership.isr,
            leadership.last_isr,
            leadership.from_ms,
            leadership.how,
            tuple(leadership.proofs),
            leadership.leader == NO_LEADER or leadership.leader in servers,
            strength=leadership.strength,
        )
    same = of_present_topic(partition.topic, moments)
    for decided in _decided(partition, same).values():
        logged = terms.get(decided.leader_epoch)
        if logged is not None:
            how = how_it_began(decided.how, logged.how)
            if not decided.is_decided:
                how, decided = logged.how, replace(decided, strength=logged.strength)
            # Its time is compared with those of lines.
            from_ms, proofs = logged.from_ms or decided.from_ms, (*decided.proofs, *logged.proofs)
            decided = replace(decided, how=how, from_ms=from_ms, proofs=proofs)
        terms[decided.leader_epoch] = decided
    for znodes in same:
        state = znodes.states.get(partition)
        if state is None or partition in znodes.decisions:
            continue
        known = terms.get(state.leader_epoch)
        if known is None:
            terms[state.leader_epoch] = _stated(state, is_isr_last=state.leader == NO_LEADER)
        elif not log_notes.history:
            terms[state.leader_epoch] = replace(known, last_isr=state.isr, eligible=())
    ordered = tuple(terms[epoch] for epoch in sorted(terms))
    return Leaders(ordered, {term.leader_epoch: term for term in ordered}, log_notes.is_doubtful)


def _stated(state: RecordedState, *, is_isr_last: bool = False) -> LeaderTerm:
    """A leadership from a state znode or a record of the metadata log."""
    proof = {"file": state.file, "text": f"leader {state.leader}, ISR {list(state.isr)}"}
    return LeaderTerm(
        state.leader_epoch, state.leader, state.isr, state.isr, proofs=(proof,), is_isr_last=is_isr_last
    )


def of_present_topic(topic: str, moments: Iterable[Znodes]) -> list[Znodes]:
    """The moments without those at which the name belonged to another topic."""
    known = list(moments)
    created = next((export.created[topic] for export in reversed(known) if topic in export.created), None)
    topic_id = next(
        (export.topic_ids[topic] for export in reversed(known) if topic in export.topic_ids), None
    )
    return [
        export
        for export in known
        if export.created.get(topic, created) == created and export.topic_ids.get(topic, topic_id) == topic_id
    ]


def _decided(partition: TopicPartition, moments: Iterable[Znodes]) -> dict[int, LeaderTerm]:
    """The leaderships in a metadata log by epoch, with the ISR as decided and as it was at the end."""
    terms: dict[int, LeaderTerm] = {}
    for znodes in moments:
        for decision in znodes.decisions.get(partition, ()):
            first = terms.get(decision.leader_epoch) or LeaderTerm(
                decision.leader_epoch, decision.leader, decision.isr, None, decision.time_ms, decision.how, (decision.proof(),),
                is_isr_last=True, is_decided=decision.how != "unknown",
            )  # fmt: skip
            terms[decision.leader_epoch] = replace(first, last_isr=decision.isr, eligible=decision.eligible)
    return terms
