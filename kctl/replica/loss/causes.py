"""Which leadership dropped records, and why it did not have them.

The epochs of the present lineage name the leadership, else the times of the records and of the leaderships do.

An election is unclean where the new leader was not in the last ISR that had members. A clean one can drop committed
records too: before leader epochs a follower that restarted cut to a stale high watermark and stayed in the ISR, and an
ISR member that lost its page cache is in the ISR anyway. A leader that was cut off from ZooKeeper and went on
acknowledges records into a leadership that is over.

Records that an unclean election drops are on the disks of the ISR until they follow the new leader, and in their logs
from then on. Without either nobody can tell the cost: `costs_unknown` names such elections.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from formats.values import Struct, field
from formats.znodes.cluster import NO_LEADER
from kctl.broker_logs.history.leaderships import place_of, shown_by
from kctl.findings import Finding, Place
from kctl.findings import replica as say
from kctl.model import TopicPartition
from kctl.replica.copies.copy import Moment
from kctl.replica.copies.leaders import Leaders, LeaderTerm
from kctl.replica.copies.log_notes import LogNotes, Note
from kctl.replica.copies.moments import PartitionState, Znodes
from kctl.replica.copies.replica_log import HeldCopy
from kctl.replica.loss.lost_parts import LostPart
from kctl.replica.loss.present_lineage import PresentLeader

# Clocks of producers and brokers differ a little.
SLACK_MS = 10_000
# How a leadership began whose leader before was alive, and was told to stop.
HANDOVERS = ("controlled_shutdown", "preferred", "reassignment")
# A leader that is told of its successor within this time was no zombie.
PROMPT_MS = 1_000


class Cause(enum.StrEnum):
    """Why a leadership did not have records that were once led."""

    UNCLEAN_ELECTION = "unclean_election"
    HIGH_WATERMARK_TRUNCATION = "high_watermark_truncation"
    POWER_FAILURE_TAIL = "power_failure_tail"
    DISK_LOST = "disk_lost"
    ZOMBIE_LEADER = "zombie_leader"
    HANDOVER = "handover"
    UNKNOWN = "unknown"


class Proof(Struct, frozen=True):
    """A piece of evidence. `kind` is short and stable, `strength` is sure, good or weak."""

    kind: str
    strength: str
    text: str
    broker_id: int | None = None
    moment: str | None = None
    file: str | None = None
    line: int | None = None

    def row(self) -> dict[str, object]:
        """As rows hold it."""
        return {
            "kind": self.kind,
            "strength": self.strength,
            "broker_id": self.broker_id,
            "moment": self.moment,
            "file": self.file,
            "line": self.line,
            "text": self.text,
        }


def line_proof(kind: str, proof: object, strength: str = "sure") -> Proof:
    """A log line as a proof."""
    values = proof if isinstance(proof, dict) else {}
    return Proof(
        kind,
        strength,
        str(values.get("text", "")),
        values.get("broker_id"),
        None,
        values.get("file"),
        values.get("line"),
    )


class Drop(Struct):
    """A leadership that dropped records: epoch and leader where they are known, the cause, and what proves it."""

    leader_epoch: int | None = None
    leader: int | None = None
    cause: Cause = Cause.UNKNOWN
    written_in_epoch: int | None = None
    written_by: int | None = None
    isr_before: tuple[int, ...] | None = None
    proofs: list[Proof] = field(default_factory=list)
    is_handover: bool = False
    """Whether a member of the ISR took over from a leader that was told to stop, and nothing else is known."""


class PartitionFacts(Struct, frozen=True, dict=True):
    """All facts about one partition that the search for its losses uses."""

    partition: TopicPartition
    present: PresentLeader
    leaders: Leaders
    log_notes: LogNotes
    held_copies: Sequence[HeldCopy]
    znodes: Mapping[Moment, Znodes] = field(default_factory=dict)

    @cached_property
    def epoch_then(self) -> dict[Moment, int]:
        """The leader epoch in the znodes of each moment."""
        return {
            moment: znodes.states[self.partition].leader_epoch
            for moment, znodes in self.znodes.items()
            if self.partition in znodes.states
        }

    def state_at(self, moment: Moment) -> PartitionState | None:
        """The state of the partition at a moment, where it is known and had a leader."""
        return self.znodes[moment].state(self.partition) if moment in self.znodes else None

    def copies_of(self, broker_id: int) -> Iterable[HeldCopy]:
        """The copies of one broker."""
        return (held_copy for held_copy in self.held_copies if held_copy.copy.broker_id == broker_id)


def dropping_epoch(facts: PartitionFacts, part: LostPart, parts: Sequence[LostPart]) -> int | None:
    """The epoch of the leadership that dropped a part; None if unknown. `parts` are those of all copies."""
    return _by_epochs(facts, part.epoch, part.from_offset) or _by_leaders(facts, part, parts)


def claimed_epoch(facts: PartitionFacts, epoch: int | None, from_offset: int, time_ms: int) -> int | None:
    """The same for records of `epoch` whose truncation only log lines show, at a time."""
    dropping_epoch = _by_epochs(facts, -1 if epoch is None else epoch, from_offset)
    if dropping_epoch is not None:
        if epoch is not None:
            return dropping_epoch
        at_offset = [known for known, start in facts.present.recorded if start == from_offset]
        return min(at_offset, default=dropping_epoch)
    before = [term for term in facts.leaders.known if term.from_ms is not None and term.from_ms <= time_ms]
    return before[-1].leader_epoch if before else None


def _by_epochs(facts: PartitionFacts, epoch: int | None, from_offset: int) -> int | None:
    if epoch is None:
        return None
    known = [e for e, start in facts.present.recorded if e > epoch and start <= from_offset]
    return min(known, default=None)


def _by_leaders(facts: PartitionFacts, part: LostPart, parts: Sequence[LostPart]) -> int | None:
    """Without epochs in the log: the first leadership after the records whose leader cannot have had them."""
    newest = part.held_copy.log.newest_timestamp if part.held_copy.log.newest_timestamp > 0 else None
    fitting = []
    candidates = []
    previous: LeaderTerm | None = None
    for term in facts.leaders.known:
        if part.epoch is not None and term.leader_epoch <= part.epoch:
            previous = term if term.leader_id is not None else previous
            continue
        if term.leader_id is None:
            continue
        in_time = newest is None or term.from_ms is None or term.from_ms >= newest - SLACK_MS
        may_lack = (
            previous is not None
            and not _goes_on(facts, previous, term)
            and not _still_held_later(facts, part, term)
        )
        if in_time and may_lack:
            candidates.append(term)
            if is_unclean(facts.leaders, term) or _lacked(facts, term, part.from_offset):
                fitting.append(term)
        previous = term
    had = _had_then(facts, part, parts) if newest is None else None
    if had is not None:
        then = facts.epoch_then[part.held_copy.copy.moment]
        fitting = [term for term in fitting if (term.leader_epoch > then) == had]
        candidates = [term for term in candidates if (term.leader_epoch > then) == had]
    elif newest is None and len(fitting) > 1:
        return None  # nothing dates the records
    if fitting:
        return (fitting[0] if newest is not None or had else fitting[-1]).leader_epoch
    changes = [term for term in candidates if had or term.leader != part.held_copy.copy.broker_id]
    return changes[0].leader_epoch if len(changes) == 1 else None


def _goes_on(facts: PartitionFacts, previous: LeaderTerm, term: LeaderTerm) -> bool:
    """Whether the same leader continued and only the ISR changed: it drops none of its own records."""
    if (
        previous.leader != term.leader
        or term.leader_epoch != previous.leader_epoch + 1
        or term.leader is None
    ):
        return False
    if term.leader not in facts.log_notes.starts or previous.from_ms is None or term.from_ms is None:
        return False
    until = _soon_after(facts.leaders, term, term.from_ms, SLACK_MS)
    return not facts.log_notes.started_between(term.leader, previous.from_ms, until)


def _soon_after(leaders: Leaders, term: LeaderTerm, from_ms: int, slack_ms: int) -> int:
    """The end of the time in which log lines belong to the start of a leadership, and not to the next one."""
    later = (
        leadership.from_ms for leadership in leaders.known if leadership.leader_epoch > term.leader_epoch
    )
    over = (ms for ms in later if ms is not None and ms > from_ms)
    return min([from_ms + slack_ms, *over])


def _still_held_later(facts: PartitionFacts, part: LostPart, term: LeaderTerm) -> bool:
    """Whether the leader's own log still has the records at a moment after its election."""
    copy = part.held_copy.copy
    return term.leader == copy.broker_id and term.leader_epoch <= facts.epoch_then.get(copy.moment, -1)


def _had_then(facts: PartitionFacts, part: LostPart, parts: Sequence[LostPart]) -> bool | None:
    """Whether the leader at the part's moment had the records too, so that they were dropped later; None if unknown.

    Messages of format 0 have no times, so that the moment of the copy alone dates them.
    """
    copy = part.held_copy.copy
    leader = facts.leaders.leader_of(facts.epoch_then.get(copy.moment))
    if leader is None or leader == copy.broker_id:
        return None if leader is None else True
    if not any(held_copy.copy.moment == copy.moment for held_copy in facts.copies_of(leader)):
        return None
    theirs = [
        other_part
        for other_part in parts
        if other_part.held_copy.copy.moment == copy.moment and other_part.held_copy.copy.broker_id == leader
    ]
    return any(
        other_part.from_offset < part.to_offset and part.from_offset < other_part.to_offset
        for other_part in theirs
    )


def is_unclean(leaders: Leaders, term: LeaderTerm) -> bool:
    """Whether a leader was not in the last ISR that had members."""
    is_stated_unclean = term.how == "unclean"
    if term.is_decided:
        return is_stated_unclean
    if term.how in HANDOVERS:
        return False  # the controller takes a member of the ISR, also of one that a leader without logs here changed
    isr, _, is_last, eligible = leaders.isr_before(term.leader_epoch)
    if term.leader in eligible:
        return False
    if isr is None or leaders.is_doubtful or not is_last:
        return is_stated_unclean
    if term.how == "unclean" and term.leader in isr:
        return len(isr) > 1  # who was alone in it comes back cleanly, whatever controllers before 1.1 warn of
    return term.leader not in isr


def _lacked(facts: PartitionFacts, term: LeaderTerm, offset: int) -> bool:
    """Whether the leader's log ended at or below an offset when it was loaded before the election."""
    assert term.leader is not None
    end = end_when_elected(facts, term)
    return end is not None and end <= offset


def end_when_elected(facts: PartitionFacts, term: LeaderTerm) -> int | None:
    """The log end offset of a leader at its election; None if unknown."""
    if term.leader is None or term.from_ms is None:
        return None
    notes = facts.log_notes.of(
        facts.partition, "loaded", "asked_to_cut", "cut", "created", broker_id=term.leader
    )
    end: int | None = None
    until = _soon_after(facts.leaders, term, term.from_ms, PROMPT_MS)
    for note in notes:
        if note.time_ms > until:
            break
        if note.what == "loaded":
            end = note.log_end_offset
        elif note.what == "created":
            end = None  # a new log: it was filled since
        elif end is not None and note.offset is not None:
            end = min(end, note.offset)
    starts = facts.log_notes.of(facts.partition, "leader", broker_id=term.leader)
    stated_ends = [
        note.offset for note in starts if note.leader_epoch == term.leader_epoch and note.offset is not None
    ]
    return stated_ends[0] if stated_ends else end


def explain_drop(
    facts: PartitionFacts,
    leader_epoch: int | None,
    from_offset: int,
    written_in: int | None,
    holders: Sequence[int],
    written_ms: int | None = None,
) -> Drop:
    """The drop with its cause. `holders` are the brokers that held the records; `written_ms` is of the first."""
    drop = Drop(leader_epoch, written_in_epoch=written_in)
    term = facts.leaders.of(leader_epoch)
    drop.leader = term.leader_id if term else None
    _note_writer(facts, drop, holders, written_ms)
    if drop.leader is None or term is None:
        _without_decision(facts, drop, from_offset)
        return drop
    isr, complete, *_ = facts.leaders.isr_before(term.leader_epoch)
    drop.isr_before = isr
    if term.proofs:
        drop.proofs.append(line_proof("election", term.proofs[0]))
    if is_unclean(facts.leaders, term):
        drop.cause = Cause.UNCLEAN_ELECTION
        drop.proofs += [line_proof("election", proof) for proof in term.proofs[1:2]]
        return drop
    checks = (_disk_lost, _power_failure, _high_watermark_truncation, _zombie)
    for check in checks:
        if check(facts, drop, term, from_offset):
            return drop
    drop.is_handover = complete and term.how in HANDOVERS and term.leader in (isr or ())
    if not complete and isr is not None:
        drop.proofs.append(
            Proof(
                "decisions_missing", "weak", "decisions between the two leaderships are not in the evidence"
            )
        )
    return drop


def _note_writer(facts: PartitionFacts, drop: Drop, holders: Sequence[int], written_ms: int | None) -> None:
    """Note who led when the records were written: by their epoch, else by their timestamp, else the previous leader."""
    if drop.written_in_epoch is not None:
        drop.written_by = facts.leaders.leader_of(drop.written_in_epoch)
        return
    if drop.leader_epoch is None:
        return
    before = [term for term in facts.leaders.before(drop.leader_epoch) if term.leader_id is not None]
    if written_ms is not None:
        before = [term for term in before if term.from_ms is None or term.from_ms <= written_ms + PROMPT_MS]
    else:
        before = [term for term in before if term.leader in holders and term.leader != drop.leader] or before
    if before:
        drop.written_by = before[0].leader
        drop.written_in_epoch = before[0].leader_epoch if written_ms is not None else None


def _without_decision(facts: PartitionFacts, drop: Drop, from_offset: int) -> None:
    """The drop by the end of a copy alone, if no log line or znode shows the election."""
    for held_copy in facts.held_copies:
        if held_copy.copy.broker_id != facts.present.copy.broker_id:
            continue
        if _lost_its_tail(held_copy, from_offset):
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs.append(_tail_proof(held_copy))
            return


def _lost_its_tail(held_copy: HeldCopy, from_offset: int) -> bool:
    high_watermark = held_copy.copy.checkpoint("high_watermark")
    return (
        high_watermark is not None
        and high_watermark > held_copy.lineage.log_end_offset
        and held_copy.lineage.log_end_offset <= from_offset
    )


def _tail_proof(held_copy: HeldCopy) -> Proof:
    high_watermark = held_copy.copy.checkpoint("high_watermark")
    return Proof(
        "tail_lost",
        "sure",
        f"the log of {held_copy.copy.who} ends at {held_copy.lineage.log_end_offset}, its high watermark was {high_watermark}",
        held_copy.copy.broker_id,
        held_copy.copy.moment,
        held_copy.copy.place.file,
    )


def _disk_lost(facts: PartitionFacts, drop: Drop, term: LeaderTerm, from_offset: int) -> bool:
    """The cause if the new leader's log was created anew, and it led before it had fetched the records again."""
    kinds = ("leader", "follower", "loaded", "cut", "asked_to_cut", "created")
    notes = _notes_before(facts, term, *kinds)
    created = max((at for at, note in enumerate(notes) if note.what == "created"), default=0)
    if not created or any(note.what in ("cut", "asked_to_cut") for note in notes[created:]):
        return False
    before = [note for note in notes[:created] if note.what != "loaded" or note.log_end_offset]
    written = facts.leaders.of(drop.written_in_epoch)
    wrote = drop.written_by == term.leader and written is not None and written.from_ms is not None
    had = (
        any(max(note.log_end_offset or 0, note.offset or 0) > from_offset for note in before)
        or (wrote and written is not None and (written.from_ms or 0) < notes[created].time_ms)
        or _had_more(facts, term, from_offset)
    )
    # A new topic's leader is told before its log is created: only a log that was there can be lost.
    existed = any(
        note.what in ("created", "loaded") or note.log_end_offset or note.offset for note in before
    ) or (bool(before) and notes[created].time_ms - before[0].time_ms > PROMPT_MS)
    if existed and had:
        drop.cause = Cause.DISK_LOST
        drop.proofs += [line_proof("disk_lost", note.proof) for note in (before[-1], notes[created])]
    return drop.cause is Cause.DISK_LOST


def _had_more(facts: PartitionFacts, term: LeaderTerm, from_offset: int) -> bool:
    """Whether a copy of the leader from before it led holds the records, or its checkpoint says that it did."""
    assert term.leader is not None
    return any(
        held_copy.lineage.log_end_offset > from_offset
        or (held_copy.copy.checkpoint("high_watermark") or 0) > from_offset
        for held_copy in facts.copies_of(term.leader)
        if _is_before(facts, held_copy, term)
    )


def _power_failure(facts: PartitionFacts, drop: Drop, term: LeaderTerm, from_offset: int) -> bool:
    """The cause if the new leader had lost the end of its log before the log was loaded."""
    assert term.leader is not None
    for held_copy in facts.copies_of(term.leader):
        if _lost_its_tail(held_copy, from_offset):
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs.append(_tail_proof(held_copy))
            break
    before = [
        note
        for note in _notes_before(facts, term, "loaded", "recovered", "created")
        if note.what != "created"
    ]
    repaired = [
        note
        for note in before
        if note.what == "recovered" and note.offset is not None and note.offset <= from_offset
    ]
    loads = [note for note in before if note.what == "loaded"]
    last = loads[-1] if loads else None
    short = last is not None and last.log_end_offset is not None and last.log_end_offset <= from_offset
    if short and last is not None and facts.log_notes.started_between(term.leader, 0, last.time_ms):
        if repaired or _had_more(facts, term, from_offset) or drop.cause is Cause.POWER_FAILURE_TAIL:
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs += [line_proof("tail_lost", note.proof) for note in (*repaired[-1:], last)]
    elif repaired and not loads:
        drop.cause = Cause.POWER_FAILURE_TAIL
        drop.proofs += [line_proof("tail_lost", note.proof) for note in repaired[-1:]]
    return drop.cause is Cause.POWER_FAILURE_TAIL


def _is_before(facts: PartitionFacts, held_copy: HeldCopy, term: LeaderTerm) -> bool:
    """Whether a copy holds nothing of the leadership yet: it was taken before, as far as its records tell.

    Messages of format 0 tell no time: then the znodes of its moment do, or nothing does.
    """
    if held_copy.lineage.epochs:
        return held_copy.lineage.last_epoch < term.leader_epoch
    then = facts.epoch_then.get(held_copy.copy.moment)
    if then is not None:
        return then < term.leader_epoch
    newest = held_copy.log.newest_timestamp
    return newest > 0 and (term.from_ms is None or newest < term.from_ms)


def _notes_before(facts: PartitionFacts, term: LeaderTerm, *what: str) -> list[Note]:
    notes = facts.log_notes.of(facts.partition, *what, broker_id=term.leader)
    until = term.from_ms
    return [note for note in notes if until is None or note.time_ms <= until + PROMPT_MS]


def _high_watermark_truncation(facts: PartitionFacts, drop: Drop, term: LeaderTerm, from_offset: int) -> bool:
    """The cause if the new leader had the records when its log was loaded, and truncated them as a follower.

    With leader epochs, only a follower that got no answer truncates to its high watermark. A truncation before the records
    were written concerns other records at these offsets.
    """
    end: int | None = None
    loaded: Note | None = None
    fell_back = False
    has_epochs = bool(facts.present.recorded)
    written = facts.leaders.of(drop.written_in_epoch)
    since = (written.from_ms or 0) - PROMPT_MS if written else 0
    for note in _notes_before(facts, term, "loaded", "asked_to_cut", "cut", "fell_back"):
        if note.what == "loaded":
            end, loaded, fell_back = note.log_end_offset, note, False
        elif note.what == "fell_back":
            fell_back = True
        elif note.what in ("asked_to_cut", "cut") and note.offset is not None:
            cuts = note.offset <= from_offset and end is not None and end > from_offset
            cuts = cuts and note.time_ms >= since and (fell_back or not has_epochs)
            fell_back = False
            if cuts and loaded is not None:
                drop.cause = Cause.HIGH_WATERMARK_TRUNCATION
                drop.proofs += [line_proof("truncation", loaded.proof), line_proof("truncation", note.proof)]
            end = note.offset if end is None else min(end, note.offset)
    return drop.cause is Cause.HIGH_WATERMARK_TRUNCATION


def _zombie(facts: PartitionFacts, drop: Drop, term: LeaderTerm, from_offset: int) -> bool:
    """The cause if the old leader was alive, and learned late that it no longer leads."""
    zombie = drop.written_by
    if zombie is None or term.from_ms is None or zombie == term.leader or term.how in HANDOVERS:
        return False
    notes = facts.log_notes.of(facts.partition, "follower", "cut", "reset", broker_id=zombie)
    stop_notes = [note for note in notes if note.time_ms >= term.from_ms]
    if not stop_notes or stop_notes[0].time_ms - term.from_ms < PROMPT_MS:
        return False
    began = [
        earlier.from_ms for earlier in facts.leaders.before(term.leader_epoch) if earlier.leader == zombie
    ]
    since = next(
        (ms for ms in began if ms is not None), term.from_ms
    )  # its last term: it may have led before
    if facts.log_notes.started_between(zombie, since, stop_notes[0].time_ms):
        return False
    drop.cause = Cause.ZOMBIE_LEADER
    signs = facts.log_notes.of(facts.partition, "stale", "shrank", "isr_of_leader", broker_id=zombie)
    late = [note for note in signs if term.from_ms <= note.time_ms <= stop_notes[0].time_ms + PROMPT_MS]
    drop.proofs += [line_proof("zombie", note.proof) for note in (*late[:2], *stop_notes[:2])]
    return True


def costs_unknown(facts: PartitionFacts, dropped_by: Iterable[int | None]) -> Iterator[Finding]:
    """A finding for each unclean election whose cost nothing shows. `dropped_by` are epochs with known losses."""
    known = set(dropped_by)
    for term in facts.leaders.known:
        if term.leader_id is None:
            continue
        if term.leader_epoch in known or not _is_surely_unclean(facts, term):
            continue
        isr, *_ = facts.leaders.isr_before(term.leader_epoch)
        if not isr or any(_is_witness(facts, term, broker_id) for broker_id in isr):
            continue
        start = next((at for epoch, at in facts.present.recorded if epoch >= term.leader_epoch), None)
        topic, partition = facts.partition
        proof = term.proofs[0] if term.proofs else {}
        place = Place(
            topic=topic,
            partition=partition,
            broker_id=term.leader,
            **shown_by(proof),
            base_offset=start,
        )
        yield say.UNCLEAN_COST_UNKNOWN.at(
            place,
            partition=facts.partition,
            leader=term.leader,
            epoch=term.leader_epoch,
            start="an unknown offset" if start is None else f"offset {start}",
            isr=", ".join(map(str, isr)),
            where=place_of(proof) if proof else "no line says where",
        )


def _is_surely_unclean(facts: PartitionFacts, term: LeaderTerm) -> bool:
    """Whether logs name the election unclean, or the new leader is not in the ISR of the state without leader before it."""
    before = next(iter(facts.leaders.before(term.leader_epoch)), None)
    decided = (
        before is not None and before.leader == NO_LEADER and before.leader_epoch == term.leader_epoch - 1
    )
    is_stated = term.how == "unclean" or (decided and before is not None and bool(before.isr))
    return is_stated and is_unclean(facts.leaders, term)


def _is_witness(facts: PartitionFacts, term: LeaderTerm, broker_id: int) -> bool:
    """Whether a member of the previous ISR shows what it had: by its later log lines, or by a copy from before it followed."""
    log_notes = facts.log_notes
    current = facts.present.current_epoch
    if current is not None and current < term.leader_epoch:
        return False  # every copy is from before the election
    since = term.from_ms
    kinds = ("loaded", "follower", "cut", "reset", "asked_to_cut", "created")
    notes = log_notes.of(facts.partition, *kinds, broker_id=broker_id)
    after = [note for note in notes if since is not None and note.time_ms >= since]
    kinds_after = [note.what for note in after if note.what != "loaded" or note.log_end_offset]
    if after and (not kinds_after or kinds_after[0] != "created"):
        return True  # where the log is created anew, its disk was lost: what follows tells of a new log
    for held_copy in facts.copies_of(broker_id):
        state = facts.state_at(held_copy.copy.moment)
        is_after = state is not None and state.leader_epoch >= term.leader_epoch
        was_down = state is not None and broker_id not in facts.znodes[held_copy.copy.moment].live
        has_followed = bool(held_copy.lineage.epochs) and held_copy.lineage.last_epoch >= term.leader_epoch
        is_new = not held_copy.lineage.log_end_offset and bool(facts.present.log_end_offset)
        if (is_after or was_down) and not has_followed and not is_new:
            return True
    return False
