"""Leaderships that began when no replica is known to have kept everything that was committed.

Brokers acknowledge records before they are on a disk, and rely on other replicas to keep them. A process that ends
without a shutdown loses nothing by that; if its host lost power, it loses what was not flushed, and cuts a torn batch
without a trace as it starts. No copy tells as long as another member of the ISR ran all along: it leads on, or its log
shows what it had to cut. Where each of them ended so, committed records may be gone from every copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from formats.values import Struct, field
from formats.znodes.cluster import NO_LEADER
from kctl.broker_logs.history.leaderships import place_of, shown_by
from kctl.broker_logs.history.lives import BrokerState
from kctl.copies.leaders import LeaderTerm
from kctl.findings import Finding, Place
from kctl.findings import replica as replica_findings
from kctl.replica.loss.causes import PartitionFacts, is_unclean, offset_words

# A follower that is still in the ISR so long after it started has fetched what it lacked, or it would be out of it.
CAUGHT_UP_MS = 30_000


# How a process says itself that it ends.
ENDED_IN_ORDER = frozenset(("down", "halted"))
# A log that is created so soon after its broker started was not there.
AFTER_START_MS = 60_000


class End(NamedTuple):
    """The end of a replica's process or disk, between the two times, after which it may lack what it held."""

    broker_id: int | None
    time_ms: int
    until_ms: int
    proof: dict[str, object]


class Unproven(Struct, frozen=True):
    """A leadership before which each member of the ISR may have lost what it held; `kills` tell how."""

    term: LeaderTerm
    isr: tuple[int, ...]
    kills: tuple[End, ...]

    def finding(self, facts: PartitionFacts) -> Finding:
        """The finding about the records that may be lost."""
        start, proof = facts.present.start_from(self.term.leader_epoch), self.kills[0].proof
        place = offset_words(start)
        if self.term.leader == NO_LEADER:
            when = f"Nobody leads {facts.partition} since epoch {self.term.leader_epoch}, at {place};"
        else:
            who = (
                f"broker {self.term.leader} began to lead {facts.partition} in epoch {self.term.leader_epoch}"
            )
            when = f"When {who}, at {place},"
        return replica_findings.TAIL_UNPROVEN.at(
            Place(self.term.leader_id, **shown_by(proof), base_offset=start).in_partition(facts.partition),
            when=when,
            isr=", ".join(map(str, self.isr)),
            where=place_of(proof),
        )


class _Replicas(Struct):
    """The ISR in which records may have been acknowledged last, and what became of its members."""

    kills: list[End]
    minimum: int
    """How many members an ISR needs for a record to be acknowledged."""
    isr: tuple[int, ...] = ()
    acknowledging: tuple[int, ...] = ()
    """The last ISR that had enough of them."""
    may_lack: dict[int, End] = field(default_factory=dict)
    """Replicas that ended without a shutdown while they were in the ISR, and have not caught up since."""

    def end(self, kill: End) -> None:
        if kill.broker_id is not None and kill.broker_id in (*self.isr, *self.acknowledging):
            self.may_lack[kill.broker_id] = kill

    def change(self, isr: tuple[int, ...], leader: int | None, at_ms: int) -> None:
        """Note a changed ISR: a replica that joins it, or has stayed in it for long, has all that its leader has."""
        is_led = leader is not None and leader not in self.may_lack
        for broker_id, kill in list(self.may_lack.items()):
            is_back = broker_id in isr and broker_id not in self.isr and broker_id != leader
            has_stayed = broker_id in isr and at_ms - kill.until_ms > CAUGHT_UP_MS
            if is_led and (is_back or has_stayed):
                del self.may_lack[broker_id]
        self.isr = isr
        if len(isr) >= self.minimum:
            self.acknowledging = isr

    def began(self, leader: int, isr: tuple[int, ...]) -> None:
        """Note a new leader: its log is the truth from now on, whatever other replicas had."""
        self.may_lack.pop(leader, None)
        self.acknowledging = isr if len(isr) >= self.minimum else ()

    def ended(self, broker_id: int, at_ms: int | None) -> End | None:
        """The end without a shutdown after which a replica may lack records, at this time or in the end; None for none."""
        dead = (
            kill
            for kill in self.kills
            if kill.broker_id == broker_id and at_ms is not None and kill.time_ms <= at_ms <= kill.until_ms
        )
        return self.may_lack.get(broker_id) or next(dead, None)

    def open_ends(self, at_ms: int | None) -> tuple[End, ...]:
        """The ends of all members of the ISR that acknowledged last; none if one of them ran throughout.

        That one has what was acknowledged, or its log shows what it cut.
        """
        ends = [end for broker_id in self.acknowledging if (end := self.ended(broker_id, at_ms)) is not None]
        return tuple(ends) if len(ends) == len(self.acknowledging) else ()


def unproven(facts: PartitionFacts, *, minimum: int) -> Iterator[Unproven]:
    """The leaderships that may lack acknowledged records of which no copy and no line tells.

    `minimum` is how many members an ISR needs for a record to be acknowledged.
    """
    kills = list(_unclean_ends(facts))
    if not kills:
        return
    replicas = _Replicas(kills, minimum)
    waiting = sorted(kills, key=lambda kill: kill.until_ms)
    last: LeaderTerm | None = None
    leader: int | None = None
    for at_ms, term, isr in _isr_states(facts):
        while waiting and waiting[0].until_ms <= at_ms:
            replicas.end(waiting.pop(0))
        if term is not last and term.leader_id is not None:
            leader = term.leader_id
            if leader in replicas.may_lack or is_unclean(facts.leaders, term):
                if ends := replicas.open_ends(at_ms):
                    yield Unproven(term, replicas.acknowledging, ends)
                replicas.began(leader, isr or (leader,))
        last = term
        replicas.change(isr or replicas.isr, leader, at_ms)
    for kill in waiting:
        replicas.end(kill)
    # Nobody leads any more; or it led on, in the same epoch.
    is_led = last is not None and last.leader != NO_LEADER
    if last is not None and (last.leader_id in replicas.may_lack if is_led else not _is_deleted(facts)):
        ends = replicas.open_ends(max(kill.until_ms for kill in kills) if is_led else None)
        if ends:
            yield Unproven(last, replicas.acknowledging, ends)


def _is_deleted(facts: PartitionFacts) -> bool:
    """Whether the logs show that the topic was deleted."""
    leaderships = facts.log_notes.leaderships(facts.partition)
    return bool(leaderships) and leaderships[-1].to_ms is not None


def _unclean_ends(facts: PartitionFacts) -> Iterator[End]:
    """Processes that ended without a shutdown, and logs that were created anew: their disk was lost or replaced."""
    history, notes = facts.log_notes.history, facts.log_notes
    for state in history.brokers if history else ():
        if (state.state, state.how) == ("killed", "no_shutdown"):
            proof = state.proofs[0] if state.proofs else {}
            yield End(state.broker_id, state.time_ms, state.until_ms or state.time_ms, proof)
    yield from _found_dead(facts)
    first_ms: dict[int, int] = {}
    for note in notes.of(facts.partition, "leader", "follower", "loaded", "created"):
        if note.time_ms < notes.began_at(facts.partition):
            continue  # of an earlier topic of this name
        before_ms = first_ms.setdefault(note.broker_id, note.time_ms)
        if note.what != "created":
            continue
        since_ms = max((ms for ms in notes.starts.get(note.broker_id, ()) if ms <= note.time_ms), default=0)
        if before_ms < since_ms and note.time_ms - since_ms < AFTER_START_MS:
            yield End(note.broker_id, since_ms, since_ms, note.proof)  # it was gone when the process began


def _found_dead(facts: PartitionFacts) -> Iterator[End]:
    """Brokers that a controller found dead, whose own logs end without a shutdown, and that did not start again."""
    notes = facts.log_notes
    last_state: dict[int | None, BrokerState] = {}
    clean = {holder.copy.broker_id for holder in facts.holders if holder.copy.replica.log_dir.is_clean}
    stopped: set[int | None] = {*clean}
    for state in notes.history.brokers if notes.history else ():
        if state.state in ("starting", "up") and state.broker_id not in clean:
            stopped.discard(state.broker_id)
        elif state.state in ENDED_IN_ORDER and not _is_said_by_others(state):
            stopped.add(state.broker_id)
        last_state[state.broker_id] = state
    for broker_id, state in last_state.items():
        own_ms = None if broker_id is None else notes.last_ms.get(broker_id)
        is_found_dead = state.state in ("down", "fenced") and _is_said_by_others(state)
        if own_ms is not None and is_found_dead and own_ms <= state.time_ms and broker_id not in stopped:
            yield End(broker_id, own_ms, max(notes.last_ms.values()), state.proofs[0])


def _is_said_by_others(state: BrokerState) -> bool:
    """Whether another node logged the state of the broker."""
    return bool(state.proofs) and state.proofs[0].get("broker_id") != state.broker_id


def minimum_isr(facts: PartitionFacts) -> int:
    """The least min.insync.replicas that the topic is known to have had."""
    topic, logged = facts.partition.topic, facts.logged_minimum_isr
    return min((znodes.minimum_isr(topic, logged) for znodes in facts.znodes.values()), default=logged)


def _isr_states(facts: PartitionFacts) -> Iterator[tuple[int, LeaderTerm, tuple[int, ...] | None]]:
    """The ISRs of each leadership in order, with when each began; the times never go back."""
    changes: dict[int, set[tuple[int, tuple[int, ...]]]] = {}
    for leadership in facts.log_notes.leaderships(facts.partition):
        changes[leadership.leader_epoch] = {(change.time_ms, change.isr) for change in leadership.isr_changes}
    for decision in chain.from_iterable(
        znodes.decisions.get(facts.partition, ()) for znodes in facts.znodes.values()
    ):
        changes.setdefault(decision.leader_epoch, set()).add((decision.time_ms, decision.isr))
    at_ms = 0
    for term in facts.leaders.known:
        at_ms = max(at_ms, term.from_ms or 0)
        yield at_ms, term, term.isr
        for changed_ms, isr in sorted(changes.get(term.leader_epoch, ())):
            at_ms = max(at_ms, changed_ms)
            yield at_ms, term, isr
