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
from kctl.replica.copies.leaders import Leaders, Led
from kctl.replica.copies.log_notes import LogNotes, Note
from kctl.replica.copies.moments import PartitionState, Znodes
from kctl.replica.copies.replica_log import HeldCopy
from kctl.replica.loss.lost_parts import LostPart
from kctl.replica.loss.present_lineage import Present

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
    present: Present
    leaders: Leaders
    log_notes: LogNotes
    held: Sequence[HeldCopy]
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
        return (held for held in self.held if held.copy.broker_id == broker_id)


def dropping_epoch(facts: PartitionFacts, part: LostPart, parts: Sequence[LostPart]) -> int | None:
    """The epoch of the leadership that dropped a part; None if unknown. `parts` are those of all copies."""
    return _by_epochs(facts, part.epoch, part.from_offset) or _by_leaders(facts, part, parts)


def claimed_epoch(facts: PartitionFacts, epoch: int | None, from_offset: int, time_ms: int) -> int | None:
    """The same for records of `epoch` whose truncation only log lines show, at a time."""
    found = _by_epochs(facts, -1 if epoch is None else epoch, from_offset)
    if found is not None:
        if epoch is not None:
            return found
        at = [known for known, start in facts.present.recorded if start == from_offset]
        return min(at, default=found)
    before = [led for led in facts.leaders.known if led.from_ms is not None and led.from_ms <= time_ms]
    return before[-1].leader_epoch if before else None


def _by_epochs(facts: PartitionFacts, epoch: int | None, from_offset: int) -> int | None:
    if epoch is None:
        return None
    known = [e for e, start in facts.present.recorded if e > epoch and start <= from_offset]
    return min(known, default=None)


def _by_leaders(facts: PartitionFacts, part: LostPart, parts: Sequence[LostPart]) -> int | None:
    """Without epochs in the log: the first leadership after the records whose leader cannot have had them."""
    newest = part.held.log.newest_timestamp if part.held.log.newest_timestamp > 0 else None
    fitting = []
    candidates = []
    previous: Led | None = None
    for led in facts.leaders.known:
        if part.epoch is not None and led.leader_epoch <= part.epoch:
            previous = led if led.leader_id is not None else previous
            continue
        if led.leader_id is None:
            continue
        in_time = newest is None or led.from_ms is None or led.from_ms >= newest - SLACK_MS
        may_lack = previous is not None and not _goes_on(facts, previous, led) and not _kept(facts, part, led)
        if in_time and may_lack:
            candidates.append(led)
            if is_unclean(facts.leaders, led) or _lacked(facts, led, part.from_offset):
                fitting.append(led)
        previous = led
    had = _had_then(facts, part, parts) if newest is None else None
    if had is not None:
        then = facts.epoch_then[part.held.copy.moment]
        fitting = [led for led in fitting if (led.leader_epoch > then) == had]
        candidates = [led for led in candidates if (led.leader_epoch > then) == had]
    elif newest is None and len(fitting) > 1:
        return None  # nothing dates the records
    if fitting:
        return (fitting[0] if newest is not None or had else fitting[-1]).leader_epoch
    changes = [led for led in candidates if had or led.leader != part.held.copy.broker_id]
    return changes[0].leader_epoch if len(changes) == 1 else None


def _goes_on(facts: PartitionFacts, previous: Led, led: Led) -> bool:
    """Whether the same leader continued and only the ISR changed: it drops none of its own records."""
    if previous.leader != led.leader or led.leader_epoch != previous.leader_epoch + 1 or led.leader is None:
        return False
    if led.leader not in facts.log_notes.starts or previous.from_ms is None or led.from_ms is None:
        return False
    until = _soon_after(facts.leaders, led, led.from_ms, SLACK_MS)
    return not facts.log_notes.started_between(led.leader, previous.from_ms, until)


def _soon_after(leaders: Leaders, led: Led, from_ms: int, slack_ms: int) -> int:
    """The end of the time in which log lines belong to the start of a leadership, and not to the next one."""
    later = (leadership.from_ms for leadership in leaders.known if leadership.leader_epoch > led.leader_epoch)
    over = (ms for ms in later if ms is not None and ms > from_ms)
    return min([from_ms + slack_ms, *over])


def _kept(facts: PartitionFacts, part: LostPart, led: Led) -> bool:
    """Whether the leader's own log still has the records at a moment after its election."""
    copy = part.held.copy
    return led.leader == copy.broker_id and led.leader_epoch <= facts.epoch_then.get(copy.moment, -1)


def _had_then(facts: PartitionFacts, part: LostPart, parts: Sequence[LostPart]) -> bool | None:
    """Whether the leader at the part's moment had the records too, so that they were dropped later; None if unknown.

    Messages of format 0 have no times, so that the moment of the copy alone dates them.
    """
    copy = part.held.copy
    leader = facts.leaders.leader_of(facts.epoch_then.get(copy.moment))
    if leader is None or leader == copy.broker_id:
        return None if leader is None else True
    if not any(held.copy.moment == copy.moment for held in facts.copies_of(leader)):
        return None
    theirs = [p for p in parts if p.held.copy.moment == copy.moment and p.held.copy.broker_id == leader]
    return any(p.from_offset < part.to_offset and part.from_offset < p.to_offset for p in theirs)


def is_unclean(leaders: Leaders, led: Led) -> bool:
    """Whether a leader was not in the last ISR that had members."""
    is_told_unclean = led.how == "unclean"
    if led.is_decided:
        return is_told_unclean
    if led.how in HANDOVERS:
        return False  # the controller takes a member of the ISR, also of one that a leader without logs here changed
    isr, _, is_last, eligible = leaders.isr_before(led.leader_epoch)
    if led.leader in eligible:
        return False
    if isr is None or leaders.is_doubtful or not is_last:
        return is_told_unclean
    if led.how == "unclean" and led.leader in isr:
        return len(isr) > 1  # who was alone in it comes back cleanly, whatever controllers before 1.1 warn of
    return led.leader not in isr


def _lacked(facts: PartitionFacts, led: Led, offset: int) -> bool:
    """Whether the leader's log ended at or below an offset when it was loaded before the election."""
    assert led.leader is not None
    end = end_when_elected(facts, led)
    return end is not None and end <= offset


def end_when_elected(facts: PartitionFacts, led: Led) -> int | None:
    """The log end offset of a leader at its election; None if unknown."""
    if led.leader is None or led.from_ms is None:
        return None
    notes = facts.log_notes.of(
        facts.partition, "loaded", "asked_to_cut", "cut", "created", broker_id=led.leader
    )
    end: int | None = None
    until = _soon_after(facts.leaders, led, led.from_ms, PROMPT_MS)
    for note in notes:
        if note.time_ms > until:
            break
        if note.what == "loaded":
            end = note.log_end_offset
        elif note.what == "created":
            end = None  # a new log: it was filled since
        elif end is not None and note.offset is not None:
            end = min(end, note.offset)
    starts = facts.log_notes.of(facts.partition, "leader", broker_id=led.leader)
    said = [n.offset for n in starts if n.leader_epoch == led.leader_epoch and n.offset is not None]
    return said[0] if said else end


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
    led = facts.leaders.of(leader_epoch)
    drop.leader = led.leader_id if led else None
    _note_writer(facts, drop, holders, written_ms)
    if drop.leader is None or led is None:
        _without_decision(facts, drop, from_offset)
        return drop
    isr, complete, *_ = facts.leaders.isr_before(led.leader_epoch)
    drop.isr_before = isr
    if led.proofs:
        drop.proofs.append(line_proof("election", led.proofs[0]))
    if is_unclean(facts.leaders, led):
        drop.cause = Cause.UNCLEAN_ELECTION
        drop.proofs += [line_proof("election", proof) for proof in led.proofs[1:2]]
        return drop
    checks = (_disk_lost, _power_failure, _high_watermark_truncation, _zombie)
    for check in checks:
        if check(facts, drop, led, from_offset):
            return drop
    drop.is_handover = complete and led.how in HANDOVERS and led.leader in (isr or ())
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
    before = [led for led in facts.leaders.before(drop.leader_epoch) if led.leader_id is not None]
    if written_ms is not None:
        before = [led for led in before if led.from_ms is None or led.from_ms <= written_ms + PROMPT_MS]
    else:
        before = [led for led in before if led.leader in holders and led.leader != drop.leader] or before
    if before:
        drop.written_by = before[0].leader
        drop.written_in_epoch = before[0].leader_epoch if written_ms is not None else None


def _without_decision(facts: PartitionFacts, drop: Drop, from_offset: int) -> None:
    """The drop by the end of a copy alone, if no log line or znode shows the election."""
    for held in facts.held:
        if held.copy.broker_id != facts.present.copy.broker_id:
            continue
        if _lost_its_tail(held, from_offset):
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs.append(_tail_proof(held))
            return


def _lost_its_tail(held: HeldCopy, from_offset: int) -> bool:
    mark = held.copy.checkpoint("high_watermark")
    return (
        mark is not None and mark > held.lineage.log_end_offset and held.lineage.log_end_offset <= from_offset
    )


def _tail_proof(held: HeldCopy) -> Proof:
    mark = held.copy.checkpoint("high_watermark")
    return Proof(
        "tail_lost",
        "sure",
        f"the log of {held.copy.who} ends at {held.lineage.log_end_offset}, its high watermark was {mark}",
        held.copy.broker_id,
        held.copy.moment,
        held.copy.place.file,
    )


def _disk_lost(facts: PartitionFacts, drop: Drop, led: Led, from_offset: int) -> bool:
    """The cause if the new leader's log was created anew, and it led before it had fetched the records again."""
    kinds = ("leader", "follower", "loaded", "cut", "asked_to_cut", "created")
    notes = _notes_before(facts, led, *kinds)
    created = max((at for at, note in enumerate(notes) if note.what == "created"), default=0)
    if not created or any(note.what in ("cut", "asked_to_cut") for note in notes[created:]):
        return False
    before = [n for n in notes[:created] if n.what != "loaded" or n.log_end_offset]
    written = facts.leaders.of(drop.written_in_epoch)
    wrote = drop.written_by == led.leader and written is not None and written.from_ms is not None
    had = (
        any(max(n.log_end_offset or 0, n.offset or 0) > from_offset for n in before)
        or (wrote and written is not None and (written.from_ms or 0) < notes[created].time_ms)
        or _had_more(facts, led, from_offset)
    )
    # A new topic's leader is told before its log is created: only a log that was there can be lost.
    existed = any(n.what in ("created", "loaded") or n.log_end_offset or n.offset for n in before) or (
        bool(before) and notes[created].time_ms - before[0].time_ms > PROMPT_MS
    )
    if existed and had:
        drop.cause = Cause.DISK_LOST
        drop.proofs += [line_proof("disk_lost", n.proof) for n in (before[-1], notes[created])]
    return drop.cause is Cause.DISK_LOST


def _had_more(facts: PartitionFacts, led: Led, from_offset: int) -> bool:
    """Whether a copy of the leader from before it led holds the records, or its checkpoint says that it did."""
    assert led.leader is not None
    return any(
        held.lineage.log_end_offset > from_offset
        or (held.copy.checkpoint("high_watermark") or 0) > from_offset
        for held in facts.copies_of(led.leader)
        if _is_before(facts, held, led)
    )


def _power_failure(facts: PartitionFacts, drop: Drop, led: Led, from_offset: int) -> bool:
    """The cause if the new leader had lost the end of its log before the log was loaded."""
    assert led.leader is not None
    for held in facts.copies_of(led.leader):
        if _lost_its_tail(held, from_offset):
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs.append(_tail_proof(held))
            break
    before = [n for n in _notes_before(facts, led, "loaded", "recovered", "created") if n.what != "created"]
    repaired = [
        n for n in before if n.what == "recovered" and n.offset is not None and n.offset <= from_offset
    ]
    loads = [n for n in before if n.what == "loaded"]
    last = loads[-1] if loads else None
    short = last is not None and last.log_end_offset is not None and last.log_end_offset <= from_offset
    if short and last is not None and facts.log_notes.started_between(led.leader, 0, last.time_ms):
        if repaired or _had_more(facts, led, from_offset) or drop.cause is Cause.POWER_FAILURE_TAIL:
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs += [line_proof("tail_lost", n.proof) for n in (*repaired[-1:], last)]
    elif repaired and not loads:
        drop.cause = Cause.POWER_FAILURE_TAIL
        drop.proofs += [line_proof("tail_lost", n.proof) for n in repaired[-1:]]
    return drop.cause is Cause.POWER_FAILURE_TAIL


def _is_before(facts: PartitionFacts, held: HeldCopy, led: Led) -> bool:
    """Whether a copy holds nothing of the leadership yet: it was taken before, as far as its records tell.

    Messages of format 0 tell no time: then the znodes of its moment do, or nothing does.
    """
    if held.lineage.epochs:
        return held.lineage.last_epoch < led.leader_epoch
    then = facts.epoch_then.get(held.copy.moment)
    if then is not None:
        return then < led.leader_epoch
    newest = held.log.newest_timestamp
    return newest > 0 and (led.from_ms is None or newest < led.from_ms)


def _notes_before(facts: PartitionFacts, led: Led, *what: str) -> list[Note]:
    notes = facts.log_notes.of(facts.partition, *what, broker_id=led.leader)
    until = led.from_ms
    return [n for n in notes if until is None or n.time_ms <= until + PROMPT_MS]


def _high_watermark_truncation(facts: PartitionFacts, drop: Drop, led: Led, from_offset: int) -> bool:
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
    for note in _notes_before(facts, led, "loaded", "asked_to_cut", "cut", "fell_back"):
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


def _zombie(facts: PartitionFacts, drop: Drop, led: Led, from_offset: int) -> bool:
    """The cause if the old leader was alive, and learned late that it no longer leads."""
    zombie = drop.written_by
    if zombie is None or led.from_ms is None or zombie == led.leader or led.how in HANDOVERS:
        return False
    notes = facts.log_notes.of(facts.partition, "follower", "cut", "reset", broker_id=zombie)
    told = [n for n in notes if n.time_ms >= led.from_ms]
    if not told or told[0].time_ms - led.from_ms < PROMPT_MS:
        return False
    began = [one.from_ms for one in facts.leaders.before(led.leader_epoch) if one.leader == zombie]
    since = next((ms for ms in began if ms is not None), led.from_ms)  # its last term: it may have led before
    if facts.log_notes.started_between(zombie, since, told[0].time_ms):
        return False
    drop.cause = Cause.ZOMBIE_LEADER
    signs = facts.log_notes.of(facts.partition, "stale", "shrank", "isr_of_leader", broker_id=zombie)
    late = [n for n in signs if led.from_ms <= n.time_ms <= told[0].time_ms + PROMPT_MS]
    drop.proofs += [line_proof("zombie", n.proof) for n in (*late[:2], *told[:2])]
    return True


def costs_unknown(facts: PartitionFacts, dropped_by: Iterable[int | None]) -> Iterator[Finding]:
    """A finding for each unclean election whose cost nothing shows. `dropped_by` are epochs with known losses."""
    known = set(dropped_by)
    for led in facts.leaders.known:
        if led.leader_id is None:
            continue
        if led.leader_epoch in known or not _is_surely_unclean(facts, led):
            continue
        isr, *_ = facts.leaders.isr_before(led.leader_epoch)
        if not isr or any(_is_witness(facts, led, broker_id) for broker_id in isr):
            continue
        start = next((at for epoch, at in facts.present.recorded if epoch >= led.leader_epoch), None)
        topic, partition = facts.partition
        proof = led.proofs[0] if led.proofs else {}
        place = Place(
            topic=topic,
            partition=partition,
            broker_id=led.leader,
            **shown_by(proof),
            base_offset=start,
        )
        yield say.UNCLEAN_COST_UNKNOWN.at(
            place,
            partition=facts.partition,
            leader=led.leader,
            epoch=led.leader_epoch,
            start="an unknown offset" if start is None else f"offset {start}",
            isr=", ".join(map(str, isr)),
            where=place_of(proof) if proof else "no line says where",
        )


def _is_surely_unclean(facts: PartitionFacts, led: Led) -> bool:
    """Whether logs name the election unclean, or the new leader is not in the ISR of the state without leader before it."""
    before = next(iter(facts.leaders.before(led.leader_epoch)), None)
    decided = (
        before is not None and before.leader == NO_LEADER and before.leader_epoch == led.leader_epoch - 1
    )
    is_told = led.how == "unclean" or (decided and before is not None and bool(before.isr))
    return is_told and is_unclean(facts.leaders, led)


def _is_witness(facts: PartitionFacts, led: Led, broker_id: int) -> bool:
    """Whether a member of the previous ISR shows what it had: by its later log lines, or by a copy from before it followed."""
    log_notes = facts.log_notes
    current = facts.present.current_epoch
    if current is not None and current < led.leader_epoch:
        return False  # every copy is from before the election
    since = led.from_ms
    kinds = ("loaded", "follower", "cut", "reset", "asked_to_cut", "created")
    notes = log_notes.of(facts.partition, *kinds, broker_id=broker_id)
    after = [note for note in notes if since is not None and note.time_ms >= since]
    told = [note.what for note in after if note.what != "loaded" or note.log_end_offset]
    if after and (not told or told[0] != "created"):
        return True  # where the log is created anew, its disk was lost: what follows tells of a new log
    for held in facts.copies_of(broker_id):
        state = facts.state_at(held.copy.moment)
        is_after = state is not None and state.leader_epoch >= led.leader_epoch
        was_down = state is not None and broker_id not in facts.znodes[held.copy.moment].live
        has_followed = bool(held.lineage.epochs) and held.lineage.last_epoch >= led.leader_epoch
        is_new = not held.lineage.log_end_offset and bool(facts.present.log_end_offset)
        if (is_after or was_down) and not has_followed and not is_new:
            return True
    return False
