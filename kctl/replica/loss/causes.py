"""Which leadership dropped records, and why its leader did not have them.

The epochs of the present lineage name the leadership; without them, the times of records and leaderships do.

An election is unclean if the new leader was not in the last ISR that had members. A clean one can drop committed
records too: before leader epochs a restarted follower cut to a stale high watermark and stayed in the ISR, and an
ISR member that lost its page cache stays in the ISR. A leader that is cut off from ZooKeeper goes on to acknowledge
records of a leadership that is over.

Records that an unclean election drops are on the disks of the ISR until these brokers follow the new leader, and in
their logs from then on. Without either the cost is unknown: `costs_unknown` names such elections.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from formats.values import Struct, field
from formats.znodes.cluster import NO_LEADER
from kctl.broker_logs.history.leaderships import LIKELY, SURE, place_of, shown_by
from kctl.copies.leaders import Leaders, LeaderTerm
from kctl.copies.log_notes import LogNotes, Note
from kctl.copies.moments import RecordedState, Znodes
from kctl.copies.replica_log import Holder
from kctl.evidence.replica_copies import Copy, Moment
from kctl.findings import Finding, Place
from kctl.findings import replica as replica_findings
from kctl.model import TopicPartition
from kctl.replica.loss.lost_parts import LostPart
from kctl.replica.loss.present_lineage import PresentLeader

# Clocks of producers and brokers differ a little.
SLACK_MS = 10_000
# How a leadership began if the leader before it was alive and was told to stop.
HANDOVERS = ("controlled_shutdown", "preferred", "reassignment")
# A leader that learns of its successor within this time was no zombie.
PROMPT_MS = 1_000


class Cause(enum.StrEnum):
    """Why a leader did not have records that an earlier leader had."""

    UNCLEAN_ELECTION = "unclean_election"
    HIGH_WATERMARK_TRUNCATION = "high_watermark_truncation"
    POWER_FAILURE_TAIL = "power_failure_tail"
    DISK_LOST = "disk_lost"
    ZOMBIE_LEADER = "zombie_leader"
    HANDOVER = "handover"
    UNKNOWN = "unknown"


PROOF_KEYS = ("kind", "strength", "broker_id", "moment", "file", "line", "text")


class Proof(Struct, frozen=True):
    """A piece of evidence. `kind` is a stable code, `strength` is sure, good or weak."""

    kind: str
    strength: str
    text: str
    broker_id: int | None = None
    moment: str | None = None
    file: str | None = None
    line: int | None = None

    def row(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in PROOF_KEYS}


def line_proof(kind: str, proof: object, strength: str = "sure") -> Proof:
    """A log line as a proof."""
    values = proof if isinstance(proof, dict) else {}
    text, broker_id = str(values.get("text", "")), values.get("broker_id")
    return Proof(kind, strength, text, broker_id, file=values.get("file"), line=values.get("line"))


def copy_proof(kind: str, strength: str, text: str, copy: Copy) -> Proof:
    """What a copy shows as a proof."""
    return Proof(kind, strength, text, copy.broker_id, copy.moment, copy.place.file)


class Drop(Struct):
    """A leadership that dropped records: epoch and leader if known, the cause and the proofs."""

    leader_epoch: int | None = None
    leader: int | None = None
    cause: Cause = Cause.UNKNOWN
    written_in_epoch: int | None = None
    written_by: int | None = None
    isr_before: tuple[int, ...] | None = None
    proofs: list[Proof] = field(default_factory=list)
    strength: str = SURE
    """Whether states and words decide the leadership and the cause, or only times that are near each other."""
    is_handover: bool = False
    """Whether an ISR member took over from a leader that was told to stop, and nothing else is known."""


class PartitionFacts(Struct, frozen=True, dict=True):
    """All facts about one partition that the search for its losses uses."""

    partition: TopicPartition
    present: PresentLeader
    leaders: Leaders
    log_notes: LogNotes
    holders: Sequence[Holder]
    znodes: Mapping[Moment, Znodes] = field(default_factory=dict)

    @cached_property
    def topic_id(self) -> str | None:
        """The id of the topic that the present lineage is of; None where nothing names one."""
        leaderships = self.log_notes.leaderships(self.partition)
        of_now = self.znodes.get(self.present.moment)
        named = (
            self.present.copy.replica.topic_id,
            of_now.topic_ids.get(self.partition.topic) if of_now else None,
            leaderships[-1].topic_id if leaderships else None,
            *(holder.copy.replica.topic_id for holder in self.holders if not holder.is_doubtful),
        )
        return next(filter(None, named), None)

    @cached_property
    def incarnation(self) -> int | None:
        """Its number among the topics of this name in the brokers' logs; None without any."""
        leaderships = self.log_notes.leaderships(self.partition)
        return leaderships[-1].incarnation if leaderships else None

    @property
    def logged_minimum_isr(self) -> int:
        """The topic's min.insync.replicas by the brokers' logs, 1 where they do not say."""
        history = self.log_notes.history
        return history.minimum_isr_of(self.partition.topic) if history else 1

    @cached_property
    def epoch_then(self) -> dict[Moment, int]:
        """The leader epoch in the znodes of each moment."""
        return {
            moment: znodes.states[self.partition].leader_epoch
            for moment, znodes in self.znodes.items()
            if self.partition in znodes.states
        }

    def state_at(self, moment: Moment) -> RecordedState | None:
        """The state of the partition at a moment; None if unknown or without a leader."""
        return self.znodes[moment].state(self.partition) if moment in self.znodes else None

    def copies_of(self, broker_id: int) -> Iterable[Holder]:
        return (holder for holder in self.holders if holder.copy.broker_id == broker_id)


def dropping_epoch(facts: PartitionFacts, part: LostPart, parts: Sequence[LostPart]) -> int | None:
    """The epoch of the leadership that dropped a part; None if unknown. `parts` are the parts of all copies."""
    return _by_epochs(facts, part.epoch, part.from_offset) or _by_leaders(facts, part, parts)


def claimed_epoch(facts: PartitionFacts, epoch: int | None, from_offset: int, time_ms: int) -> int | None:
    """The same for records of `epoch` whose truncation at `time_ms` only log lines show."""
    dropped_in = _by_epochs(facts, -1 if epoch is None else epoch, from_offset)
    if dropped_in is not None:
        if epoch is not None:
            return dropped_in
        return min(
            (known for known, start in facts.present.recorded if start == from_offset), default=dropped_in
        )
    before = [term for term in facts.leaders.known if term.from_ms is not None and term.from_ms <= time_ms]
    return before[-1].leader_epoch if before else None


def _by_epochs(facts: PartitionFacts, epoch: int | None, from_offset: int) -> int | None:
    if epoch is None:
        return None
    recorded = min(
        (e for e, start in facts.present.recorded if e > epoch and start <= from_offset), default=None
    )
    if recorded is None or epoch < 0:
        return recorded
    # A leader that wrote nothing leaves no epoch behind; its log says where it began to lead.
    began = (
        note.leader_epoch
        for note in facts.log_notes.of(facts.partition, "leader")
        if note.leader_epoch is not None
        and note.offset is not None
        and note.offset <= from_offset
        and note.time_ms >= facts.log_notes.began_at(facts.partition)
    )
    return min((e for e in began if epoch < e < recorded), default=recorded)


def _by_leaders(facts: PartitionFacts, part: LostPart, parts: Sequence[LostPart]) -> int | None:
    """Without epochs in the log: the first later leadership whose leader cannot have had the records."""
    newest = part.holder.log.newest_timestamp if part.holder.log.newest_timestamp > 0 else None
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
        is_new = previous is not None and not _same_leader_continued(facts, previous, term)
        if in_time and is_new and not _has_later(facts, part, term):
            candidates.append(term)
            end = end_when_elected(facts, term)
            if is_unclean(facts.leaders, term) or (end is not None and end <= part.from_offset):
                fitting.append(term)
        previous = term
    had = _leader_had_at_moment(facts, part, parts) if newest is None else None
    if had is not None:
        then = facts.epoch_then[part.holder.copy.moment]
        fitting = [term for term in fitting if (term.leader_epoch > then) == had]
        candidates = [term for term in candidates if (term.leader_epoch > then) == had]
    elif newest is None and len(fitting) > 1:
        return None  # the records have no time
    if fitting:
        return (fitting[0] if newest is not None or had else fitting[-1]).leader_epoch
    changes = [term for term in candidates if had or term.leader != part.holder.copy.broker_id]
    return changes[0].leader_epoch if len(changes) == 1 else None


def _same_leader_continued(facts: PartitionFacts, previous: LeaderTerm, term: LeaderTerm) -> bool:
    """Whether the leader stayed the same and only the ISR changed, so that it dropped none of its records."""
    if term.leader is None or (term.leader, term.leader_epoch) != (
        previous.leader,
        previous.leader_epoch + 1,
    ):
        return False
    if term.leader not in facts.log_notes.starts or previous.from_ms is None or term.from_ms is None:
        return False
    until = _soon_after(facts.leaders, term, term.from_ms, SLACK_MS)
    return not facts.log_notes.started_between(term.leader, previous.from_ms, until)


def _soon_after(leaders: Leaders, term: LeaderTerm, from_ms: int, slack_ms: int) -> int:
    """The end of the time in which log lines belong to the start of this leadership and not to the next one."""
    later = (known.from_ms for known in leaders.known if known.leader_epoch > term.leader_epoch)
    return min([from_ms + slack_ms, *(ms for ms in later if ms is not None and ms > from_ms)])


def _has_later(facts: PartitionFacts, part: LostPart, term: LeaderTerm) -> bool:
    """Whether the leader's own log still has the records at a moment after its election."""
    copy = part.holder.copy
    return term.leader == copy.broker_id and term.leader_epoch <= facts.epoch_then.get(copy.moment, -1)


def _leader_had_at_moment(facts: PartitionFacts, part: LostPart, parts: Sequence[LostPart]) -> bool | None:
    """Whether the leader at the part's moment had the records too, so that they were dropped later; None if unknown.

    Messages of format 0 have no times: only the moment of the copy dates them.
    """
    copy = part.holder.copy
    leader = facts.leaders.leader_of(facts.epoch_then.get(copy.moment))
    if leader is None or leader == copy.broker_id:
        return None if leader is None else True
    if not any(holder.copy.moment == copy.moment for holder in facts.copies_of(leader)):
        return None
    return any(
        (lost.holder.copy.moment, lost.holder.copy.broker_id) == (copy.moment, leader)
        and lost.overlaps(part.from_offset, part.to_offset)
        for lost in parts
    )


def is_unclean(leaders: Leaders, term: LeaderTerm) -> bool:
    """Whether the leader was not in the last ISR that had members."""
    is_stated_unclean = term.how == "unclean"
    if term.is_decided:
        return is_stated_unclean
    if term.how in HANDOVERS:
        return False  # the controller elects an ISR member, even of an ISR that a leader without logs changed
    isr, _, is_last, eligible = leaders.isr_before(term.leader_epoch)
    if term.leader in eligible:
        return False
    if isr is None or leaders.is_doubtful or not is_last:
        return is_stated_unclean
    if term.how == "unclean" and term.leader in isr:
        return len(isr) > 1  # the only member comes back cleanly, whatever controllers before 1.1 warn of
    return term.leader not in isr


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
            end = None  # a new log, filled since
        elif end is not None and note.offset is not None:
            end = min(end, note.offset)
    starts = facts.log_notes.of(facts.partition, "leader", broker_id=term.leader)
    stated = (note.offset for note in starts if note.leader_epoch == term.leader_epoch)
    return next((offset for offset in stated if offset is not None), end)


def explain_drop(
    facts: PartitionFacts,
    leader_epoch: int | None,
    from_offset: int,
    written_in: int | None,
    broker_ids: Sequence[int],
    written_ms: int | None = None,
) -> Drop:
    """The drop with its cause. `broker_ids` are the brokers that held the records; `written_ms` is of the first."""
    term = facts.leaders.of(leader_epoch)
    drop = Drop(leader_epoch, written_in_epoch=written_in, strength=term.strength if term else SURE)
    named = {epoch for epoch, _ in facts.present.recorded}
    stated = None if written_in is None else _by_epochs(facts, written_in, from_offset)
    if leader_epoch not in {*named, stated}:
        drop.strength = (
            LIKELY  # neither an epoch of the log nor its leader names it: it was found by its time
        )
    drop.leader = term.leader_id if term else None
    _note_writer(facts, drop, broker_ids, written_ms)
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
    for check in (_disk_lost, _power_failure, _high_watermark_truncation, _zombie):
        if check(facts, drop, term, from_offset):
            return drop
    drop.is_handover = complete and term.how in HANDOVERS and term.leader in (isr or ())
    if not complete and isr is not None:
        text = "decisions between the two leaderships are not in the evidence"
        drop.proofs.append(Proof("decisions_missing", "weak", text))
    return drop


def _note_writer(
    facts: PartitionFacts, drop: Drop, broker_ids: Sequence[int], written_ms: int | None
) -> None:
    """Note who led when the records were written: by their epoch, else their timestamp, else the previous leader."""
    if drop.written_in_epoch is not None:
        drop.written_by = facts.leaders.leader_of(drop.written_in_epoch)
        return
    if drop.leader_epoch is None:
        return
    before = [term for term in facts.leaders.before(drop.leader_epoch) if term.leader_id is not None]
    if written_ms is not None:
        before = [term for term in before if term.from_ms is None or term.from_ms <= written_ms + PROMPT_MS]
    else:
        others = [term for term in before if term.leader in broker_ids and term.leader != drop.leader]
        before = others or before
    if before:
        drop.written_by = before[0].leader
        drop.written_in_epoch = before[0].leader_epoch if written_ms is not None else None


def _without_decision(facts: PartitionFacts, drop: Drop, from_offset: int) -> None:
    """Judge by the end of a copy alone, if no log line or znode shows the election."""
    for holder in facts.holders:
        is_present = holder.copy.broker_id == facts.present.copy.broker_id
        if is_present and _lost_its_tail(facts, holder, from_offset):
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs.append(_tail_proof(holder))
            return


def _lost_its_tail(facts: PartitionFacts, holder: Holder, from_offset: int) -> bool:
    end = holder.lineage.log_end_offset
    return _highest_reached(facts, holder) > end and end <= from_offset


def _highest_reached(facts: PartitionFacts, holder: Holder) -> int:
    """The high watermark of a copy, which its log once reached; 0 where it is not known.

    A cut in the middle of a batch takes the batch whole, and the broker goes on from where it meant to cut: such a mark
    was not reached.
    """
    cuts = facts.log_notes.of(facts.partition, "cut", broker_id=holder.copy.broker_id)
    high_watermark = holder.copy.checkpoint("high_watermark") or 0
    return 0 if any(note.offset == high_watermark for note in cuts) else high_watermark


def _tail_proof(holder: Holder) -> Proof:
    copy, end = holder.copy, holder.lineage.log_end_offset
    text = f"the log of {copy.who} ends at {end}, its high watermark was {copy.checkpoint('high_watermark')}"
    return copy_proof("tail_lost", "sure", text, copy)


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
        or _earlier_copy_has(facts, term, from_offset)
    )
    # A new topic's leader is told before its log is created: only a log that existed can be lost.
    existed = any(
        note.what in ("created", "loaded") or note.log_end_offset or note.offset for note in before
    ) or (bool(before) and notes[created].time_ms - before[0].time_ms > PROMPT_MS)
    if existed and had:
        drop.cause = Cause.DISK_LOST
        drop.proofs += [line_proof("disk_lost", note.proof) for note in (before[-1], notes[created])]
    return drop.cause is Cause.DISK_LOST


def _earlier_copy_has(facts: PartitionFacts, term: LeaderTerm, from_offset: int) -> bool:
    """Whether an earlier copy of the leader holds the records, or its checkpoint says that it did."""
    assert term.leader is not None
    return any(
        holder.lineage.log_end_offset > from_offset or _highest_reached(facts, holder) > from_offset
        for holder in facts.copies_of(term.leader)
        if _is_before(facts, holder, term)
    )


def _power_failure(facts: PartitionFacts, drop: Drop, term: LeaderTerm, from_offset: int) -> bool:
    """The cause if the new leader had lost the end of its log before it was loaded."""
    assert term.leader is not None
    for holder in facts.copies_of(term.leader):
        if _lost_its_tail(facts, holder, from_offset):
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs.append(_tail_proof(holder))
            break
    recovered = _notes_before(facts, term, "recovered")
    repaired = [note for note in recovered if note.offset is not None and note.offset <= from_offset]
    loads = _notes_before(facts, term, "loaded")
    last = loads[-1] if loads else None
    short = last is not None and last.log_end_offset is not None and last.log_end_offset <= from_offset
    if short and last is not None and facts.log_notes.started_between(term.leader, 0, last.time_ms):
        if repaired or _earlier_copy_has(facts, term, from_offset) or drop.cause is Cause.POWER_FAILURE_TAIL:
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs += [line_proof("tail_lost", note.proof) for note in (*repaired[-1:], last)]
    elif repaired and not loads:
        drop.cause = Cause.POWER_FAILURE_TAIL
        drop.proofs += [line_proof("tail_lost", note.proof) for note in repaired[-1:]]
    return drop.cause is Cause.POWER_FAILURE_TAIL


def _is_before(facts: PartitionFacts, holder: Holder, term: LeaderTerm) -> bool:
    """Whether a copy has nothing of the leadership yet: its records show that it was taken before.

    Messages of format 0 have no times: then only the znodes of its moment can tell.
    """
    if holder.lineage.epochs:
        return holder.lineage.last_epoch < term.leader_epoch
    then = facts.epoch_then.get(holder.copy.moment)
    if then is not None:
        return then < term.leader_epoch
    newest = holder.log.newest_timestamp
    return newest > 0 and (term.from_ms is None or newest < term.from_ms)


def _notes_before(facts: PartitionFacts, term: LeaderTerm, *what: str) -> list[Note]:
    notes = facts.log_notes.of(facts.partition, *what, broker_id=term.leader)
    since, until = facts.log_notes.began_at(facts.partition), term.from_ms
    return [
        note
        for note in notes
        if note.time_ms >= since and (until is None or note.time_ms <= until + PROMPT_MS)
    ]


def _high_watermark_truncation(facts: PartitionFacts, drop: Drop, term: LeaderTerm, from_offset: int) -> bool:
    """The cause if the new leader had the records when its log was loaded, and truncated them as a follower.

    With leader epochs, only a follower that got no answer truncates to its high watermark. A truncation from before the
    records were written concerns other records at these offsets.
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
    """The cause if the old leader was alive and learned late that it no longer leads."""
    zombie = drop.written_by
    if zombie is None or term.from_ms is None or zombie == term.leader or term.how in HANDOVERS:
        return False
    notes = facts.log_notes.of(facts.partition, "follower", "cut", "reset", broker_id=zombie)
    stop_notes = [note for note in notes if note.time_ms >= term.from_ms]
    if not stop_notes or stop_notes[0].time_ms - term.from_ms < PROMPT_MS:
        return False
    # Its last term: it may have led before.
    terms = (earlier for earlier in facts.leaders.before(term.leader_epoch) if earlier.leader == zombie)
    since = next((earlier.from_ms for earlier in terms if earlier.from_ms is not None), term.from_ms)
    if facts.log_notes.started_between(zombie, since, stop_notes[0].time_ms):
        return False
    drop.cause = Cause.ZOMBIE_LEADER
    signs = facts.log_notes.of(facts.partition, "stale", "shrank", "isr_of_leader", broker_id=zombie)
    late = [note for note in signs if term.from_ms <= note.time_ms <= stop_notes[0].time_ms + PROMPT_MS]
    drop.proofs += [line_proof("zombie", note.proof) for note in (*late[:2], *stop_notes[:2])]
    if not late:
        drop.strength = LIKELY
    return True


def costs_unknown(facts: PartitionFacts, dropped_by: Iterable[int | None]) -> Iterator[Finding]:
    """A finding for each unclean election whose cost is unknown. `dropped_by` are the epochs with known losses."""
    known = set(dropped_by)
    for term in facts.leaders.known:
        if term.leader_id is None or term.leader_epoch in known or not _is_surely_unclean(facts, term):
            continue
        isr, *_ = facts.leaders.isr_before(term.leader_epoch)
        if not isr or any(_is_witness(facts, term, broker_id) for broker_id in isr):
            continue
        start = facts.present.start_from(term.leader_epoch)
        proof = term.proofs[0] if term.proofs else {}
        place = Place(term.leader, **shown_by(proof), base_offset=start)
        yield replica_findings.UNCLEAN_COST_UNKNOWN.at(
            place.in_partition(facts.partition),
            partition=facts.partition,
            leader=term.leader,
            epoch=term.leader_epoch,
            start=offset_words(start),
            isr=", ".join(map(str, isr)),
            where=place_of(proof),
        )


def offset_words(offset: int | None) -> str:
    """An offset in a sentence."""
    return "an unknown offset" if offset is None else f"offset {offset}"


def _is_surely_unclean(facts: PartitionFacts, term: LeaderTerm) -> bool:
    """Whether logs call the election unclean, or the leader is not in the ISR of the leaderless state before it."""
    before = facts.leaders.of(term.leader_epoch - 1)
    is_stated = before is not None and before.leader == NO_LEADER and bool(before.isr)
    return (is_stated or term.how == "unclean") and is_unclean(facts.leaders, term)


def _is_witness(facts: PartitionFacts, term: LeaderTerm, broker_id: int) -> bool:
    """Whether a member of the previous ISR shows what it had: by later log lines, or by a copy from before it followed."""
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
        return True  # if the log is created anew, its disk was lost: later lines are about a new log
    for holder in facts.copies_of(broker_id):
        state = facts.state_at(holder.copy.moment)
        is_after = state is not None and state.leader_epoch >= term.leader_epoch
        was_down = state is not None and broker_id not in facts.znodes[holder.copy.moment].live
        has_followed = bool(holder.lineage.epochs) and holder.lineage.last_epoch >= term.leader_epoch
        is_new = not holder.lineage.log_end_offset and bool(facts.present.log_end_offset)
        if (is_after or was_down) and not has_followed and not is_new:
            return True
    return False
