"""Who led the metadata quorum of KRaft in which epoch, which elections nobody won, and why a leader's time ended.

Members print each role that they take: `Completed transition to Leader(…, epoch=3, …)`
(`raft/src/main/java/org/apache/kafka/raft/QuorumState.java` @ 2.8.2 to 4.3.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from formats.values import Struct, field
from kctl.broker_logs.events import Event
from kctl.broker_logs.history.leaderships import SURE
from kctl.model import TopicPartition
from kctl.times import iso

METADATA = TopicPartition("__cluster_metadata", 0)
TAKES_ROLE, LOSES_MAJORITY, SHUTS_DOWN = "Q23", "Q41", "Q32"
HEARS_NOTHING = frozenset(("Q25", "J41"))
QUORUM_LINES = frozenset((TAKES_ROLE, LOSES_MAJORITY, SHUTS_DOWN)) | HEARS_NOTHING
ROLE = re.compile(r"(Leader|Follower|Candidate|Prospective|Resigned|Unattached|Voted)(?:State)?\(")
# Words that are looked for come before the place that they begin at: `re` finds them many times as fast.
EPOCH = re.compile(r"epoch=(?<=\bepoch=)(\d{1,19})")
LEADER = re.compile(r"leader(?<=\bleader)(?:Id)?=(?:OptionalInt\[)?(\d{1,19})")
VOTED = re.compile(r"voted(?<=\bvoted)(?:Id=|Key=(?:Optional\[)?ReplicaKey\(id=)(\d{1,19})")
MOST_PROOFS = 20


class Role(NamedTuple):
    """A role that a member takes."""

    name: str
    """In lower case; what the roles of 4.x that know whom they voted for were called before."""
    epoch: int
    leader: int | None
    voted_for: int | None


def role_of(event: Event) -> Role | None:
    """The role that a line says its member has taken."""
    text = event.message.partition("Completed transition to ")[2].partition(" from ")[0]
    role, epoch = ROLE.match(text), EPOCH.search(text)
    if role is None or epoch is None:
        return None
    name = role[1].lower()
    leader, voted = LEADER.search(text), VOTED.search(text)
    if name == "unattached" and voted and not leader:
        name = "voted"
    led = event.broker_id if name == "leader" else int(leader[1]) if leader else None
    return Role(name, int(epoch[1]), led, int(voted[1]) if voted else None)


class QuorumTerm(Struct):
    """An epoch of the metadata quorum."""

    epoch: int
    from_ms: int
    leader: int | None = None
    to_ms: int | None = None
    ended: str | None = None
    """Why the leader's time ended, where it says so."""
    unheard: list[int] = field(default_factory=list)
    """Members that stood for election in this epoch because they heard nothing of the leader before."""
    proofs: list[dict[str, object]] = field(default_factory=list)

    def prove(self, event: Event) -> None:
        """Keep a line as evidence."""
        if len(self.proofs) < MOST_PROOFS:
            self.proofs.append(event.proof())


class QuorumTerms:
    """The epochs of one cluster's metadata quorum."""

    def __init__(self) -> None:
        self._terms: dict[int, QuorumTerm] = {}
        self._led_by: dict[int | None, QuorumTerm] = {}
        self._unheard: dict[int | None, Event] = {}

    def note(self, event: Event, time_ms: int) -> None:
        """Take a line into account."""
        member = event.broker_id
        if event.event == TAKES_ROLE:
            self._take_role(event, time_ms)
        elif event.event in HEARS_NOTHING:
            self._unheard[member] = event
        elif event.event in (LOSES_MAJORITY, SHUTS_DOWN) and member in self._led_by:
            why = "shut down" if event.event == SHUTS_DOWN else "lost the majority of the voters"
            self._end(self._led_by.pop(member), why, event, time_ms)

    def _take_role(self, event: Event, time_ms: int) -> None:
        role = role_of(event)
        if role is None:
            return
        number, member = role.epoch, event.broker_id
        led = self._led_by.pop(member, None)
        if led is not None and led.epoch < number:
            self._end(led, "heard of a later epoch", event, time_ms)
        if role.name == "leader":
            self._led_by[member] = self._elected(number, member, event, time_ms)
        elif role.name == "follower" and role.leader is not None:
            self._elected(number, role.leader, event, time_ms)
        elif role.name == "candidate":
            term = self._term(number, time_ms)
            term.prove(event)
            if (unheard := self._unheard.pop(member, None)) and member is not None:
                term.unheard.append(member)
                term.prove(unheard)
        elif role.name == "resigned" and number in self._terms:
            self._end(self._terms[number], "resigned", event, time_ms)

    def _term(self, epoch: int, time_ms: int) -> QuorumTerm:
        return self._terms.setdefault(epoch, QuorumTerm(epoch, time_ms))

    def _elected(self, epoch: int, leader: int | None, event: Event, time_ms: int) -> QuorumTerm:
        term = self._term(epoch, time_ms)
        if term.leader is None:
            term.leader, term.from_ms = leader, time_ms
            term.proofs.insert(0, event.proof())
        return term

    @staticmethod
    def _end(term: QuorumTerm, why: str, event: Event, time_ms: int) -> None:
        if term.leader is not None and term.to_ms is None:
            term.to_ms, term.ended = time_ms, why
            term.prove(event)

    def rows(self, cluster: int, ahead: Mapping[int, int]) -> list[dict[str, object]]:
        """Rows of kind `leader`, one a leader and one for epochs after each other that had none.

        `ahead` are clocks that are off, see `Merge.ahead`.
        """
        from kctl.rows.state_log import LEADER as LEADER_ROW

        ordered = [self._terms[epoch] for epoch in sorted(self._terms)]
        runs: list[list[QuorumTerm]] = []
        for is_led, run_of in groupby(ordered, key=lambda term: term.leader is not None):
            terms = list(run_of)
            runs.extend([[term] for term in terms] if is_led else [terms])
        rows = []
        for number, run in enumerate(runs):
            first, last = run[0], run[-1]
            before = next((r[-1] for r in reversed(runs[:number]) if r[-1].leader is not None), None)
            following = runs[number + 1][0] if number + 1 < len(runs) else None
            ends = [t for t in (last.to_ms, following.from_ms if following else None) if t is not None]
            how, cause = _why(run, runs[number - 1] if number else [], before)
            rows.append(
                LEADER_ROW(
                    topic=METADATA.topic,
                    partition=METADATA.partition,
                    leader=-1 if first.leader is None else first.leader,
                    leader_epoch=first.epoch,
                    controller_epoch=None,
                    isr=None,
                    isr_changes=[],
                    from_time=iso(first.from_ms),
                    to_time=iso(max(first.from_ms, min(ends))) if ends else None,
                    how=how,
                    evidence=[proof for term in run for proof in term.proofs][:MOST_PROOFS],
                    cause=cause,
                    began_before=False,
                    cluster=cluster,
                    strength=None if how == "unknown" else SURE,
                    topic_id=None,
                    incarnation=1,
                    clock_offset_ms=next((ahead.get(writer) for writer in _writers(run)), None),
                )
            )
        return rows


def _writers(run: list[QuorumTerm]) -> Iterator[int]:
    """Who wrote the lines that prove the terms."""
    for term in run:
        for proof in term.proofs:
            writer = proof["broker_id"]
            yield writer if isinstance(writer, int) else -1


def _why(
    run: list[QuorumTerm], run_before: list[QuorumTerm], before: QuorumTerm | None
) -> tuple[str, str | None]:
    """How a run of epochs came to be, and why in words."""
    unheard = sorted({member for term in (*run_before, *run) for member in term.unheard})
    if run[0].leader is None:
        elections = "an election" if len(run) == 1 else f"{len(run)} elections to epoch {run[-1].epoch}"
        return "none", f"{elections} without a winner"
    if before is None:
        return "unknown", None
    if before.ended == "shut down":
        return "controlled_shutdown", f"node {before.leader} shut down"
    if before.ended == "lost the majority of the voters":
        return "failure", f"node {before.leader} {before.ended}"
    if unheard:
        return "failure", f"node {', '.join(map(str, unheard))} heard nothing of node {before.leader}"
    return "unknown", None if before.ended is None else f"node {before.leader} {before.ended}"
