"""Which leadership dropped records, and why it did not have them.

An election is unclean where the new leader was not in the last ISR that had members. A clean one can drop
committed records too: before leader epochs a follower that restarted cut to a stale high watermark and stayed in
the ISR, and an ISR member that lost its page cache is in the ISR all the same. A leader that was cut off from
ZooKeeper and went on acknowledges records into a leadership that is over.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kctl.model import TopicPartition
from kctl.replica.leaders import Leaders, Led
from kctl.replica.lost_parts import HeldCopy, LostPart
from kctl.replica.present import Present
from kctl.replica.testimony import Note, Testimony

# Clocks of producers and brokers differ a little.
SLACK_MS = 10_000
# A leader that is told of its successor within this time was no zombie.
PROMPT_MS = 1_000


class Cause(enum.StrEnum):
    """Why a leadership did not have records that were once led."""

    UNCLEAN_ELECTION = "unclean_election"
    HIGH_WATERMARK_TRUNCATION = "high_watermark_truncation"
    POWER_FAILURE_TAIL = "power_failure_tail"
    ZOMBIE_LEADER = "zombie_leader"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Proof:
    """Something to point at. `kind` is short and stable, `strength` is sure, good or weak."""

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
    """A log line as a proof, from what the readers of logs give."""
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


@dataclass
class Drop:
    """A leadership that dropped records: epoch and leader where they are known, the cause, and what proves it."""

    leader_epoch: int | None = None
    leader: int | None = None
    cause: Cause = Cause.UNKNOWN
    written_in_epoch: int | None = None
    written_by: int | None = None
    proofs: list[Proof] = field(default_factory=list)


@dataclass(frozen=True)
class Scene:
    """All that is known about one partition while its losses are looked at."""

    partition: TopicPartition
    present: Present
    leaders: Leaders
    testimony: Testimony
    held: Sequence[HeldCopy]

    def copies_of(self, broker_id: int) -> Iterable[HeldCopy]:
        """The copies of one broker."""
        return (held for held in self.held if held.copy.broker_id == broker_id)


def dropping_epoch(scene: Scene, part: LostPart) -> int | None:
    """The epoch of the leadership that dropped a part; None where nothing says."""
    return _by_epochs(scene, part.epoch, part.from_offset) or _by_leaders(scene, part)


def claimed_epoch(scene: Scene, epoch: int | None, from_offset: int, time_ms: int) -> int | None:
    """The same for what only lines tell of: records of `epoch` cut away at a time."""
    found = _by_epochs(scene, -1 if epoch is None else epoch, from_offset)
    if found is not None:
        if epoch is not None:
            return found
        at = [known for known, start in scene.present.recorded if start == from_offset]
        return min(at, default=found)
    before = [led for led in scene.leaders.known if led.from_ms is not None and led.from_ms <= time_ms]
    return before[-1].leader_epoch if before else None


def _by_epochs(scene: Scene, epoch: int | None, from_offset: int) -> int | None:
    if epoch is None:
        return None
    known = [e for e, start in scene.present.recorded if e > epoch and start <= from_offset]
    return min(known, default=None)


def _by_leaders(scene: Scene, part: LostPart) -> int | None:
    """Without epochs in the log: the first leadership after the records whose leader cannot have had them."""
    newest = _newest_timestamp(part)
    fitting = []
    candidates = []
    previous: Led | None = None
    for led in scene.leaders.known:
        if part.epoch is not None and led.leader_epoch <= part.epoch:
            previous = led if led.leader is not None and led.leader >= 0 else previous
            continue
        if led.leader is None or led.leader < 0:
            continue
        in_time = newest is None or led.from_ms is None or led.from_ms >= newest - SLACK_MS
        if previous is not None and in_time:
            candidates.append(led)
            if is_unclean(scene.leaders, led) or _lacked(scene, led, part.from_offset):
                fitting.append(led)
        previous = led
    if fitting:
        return (fitting[0] if newest is not None else fitting[-1]).leader_epoch
    changes = [led for led in candidates if led.leader != part.held.copy.broker_id]
    return changes[0].leader_epoch if len(changes) == 1 else None


def _newest_timestamp(part: LostPart) -> int | None:
    found = part.held.log.newest_timestamp
    return found if found > 0 else None


def is_unclean(leaders: Leaders, led: Led) -> bool:
    """Whether a leader was not in the last ISR that had members."""
    isr, complete = leaders.isr_before(led.leader_epoch)
    if isr is None:
        return led.how == "unclean"
    return led.leader not in isr and (complete or led.how == "unclean")


def _lacked(scene: Scene, led: Led, offset: int) -> bool:
    """Whether the leader's log, as it was loaded before it led, ended at or below an offset."""
    assert led.leader is not None
    end = end_when_elected(scene, led)
    return end is not None and end <= offset


def end_when_elected(scene: Scene, led: Led) -> int | None:
    """Where the log of a leader ended when it began to lead; None where nothing says."""
    if led.leader is None or led.from_ms is None:
        return None
    notes = scene.testimony.of(
        scene.partition, "loaded", "asked_to_cut", "cut", "created", broker_id=led.leader
    )
    end: int | None = None
    for note in notes:
        if note.time_ms > led.from_ms + PROMPT_MS:
            break
        if note.what == "loaded":
            end = note.log_end_offset
        elif note.what == "created":
            end = None  # a new log: it was filled since
        elif end is not None and note.offset is not None:
            end = min(end, note.offset)
    starts = scene.testimony.of(scene.partition, "leader", broker_id=led.leader)
    said = [n.offset for n in starts if n.leader_epoch == led.leader_epoch and n.offset is not None]
    return said[0] if said else end


def explain_drop(
    scene: Scene,
    leader_epoch: int | None,
    from_offset: int,
    written_in: int | None,
    holders: Sequence[int],
    written_ms: int | None = None,
) -> Drop:
    """The drop with its cause. `holders` are the brokers that held the records; `written_ms` is of the first."""
    drop = Drop(leader_epoch, written_in_epoch=written_in)
    led = scene.leaders.of(leader_epoch)
    drop.leader = led.leader if led and led.leader is not None and led.leader >= 0 else None
    _note_writer(scene, drop, holders, written_ms)
    if drop.leader is None or led is None:
        _without_decision(scene, drop, from_offset)
        return drop
    isr, complete = scene.leaders.isr_before(led.leader_epoch)
    if led.proofs:
        drop.proofs.append(line_proof("election", led.proofs[0]))
    if is_unclean(scene.leaders, led):
        drop.cause = Cause.UNCLEAN_ELECTION
        drop.proofs += [line_proof("election", proof) for proof in led.proofs[1:2]]
        return drop
    checks = (_power_failure, _high_watermark_truncation, _zombie)
    for check in checks:
        if check(scene, drop, led, from_offset):
            return drop
    if not complete and isr is not None:
        drop.proofs.append(
            Proof(
                "decisions_missing", "weak", "decisions between the two leaderships are not in the evidence"
            )
        )
    return drop


def _note_writer(scene: Scene, drop: Drop, holders: Sequence[int], written_ms: int | None) -> None:
    """Who led when the records were written: by their epoch, else by their timestamp, else who led before."""
    if drop.written_in_epoch is not None:
        drop.written_by = scene.leaders.leader_of(drop.written_in_epoch)
        return
    if drop.leader_epoch is None:
        return
    before = [led for led in scene.leaders.before(drop.leader_epoch) if (led.leader or -1) >= 0]
    if written_ms is not None:
        before = [led for led in before if led.from_ms is None or led.from_ms <= written_ms + PROMPT_MS]
    else:
        before = [led for led in before if led.leader in holders and led.leader != drop.leader] or before
    if before:
        drop.written_by = before[0].leader
        drop.written_in_epoch = before[0].leader_epoch if written_ms is not None else None


def _without_decision(scene: Scene, drop: Drop, from_offset: int) -> None:
    """No line or znode about the election: what the dropped end of a copy shows."""
    for held in scene.held:
        if held.copy.broker_id != scene.present.copy.broker_id:
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


def _power_failure(scene: Scene, drop: Drop, led: Led, from_offset: int) -> bool:
    """The new leader had lost the end of its log before it was loaded."""
    assert led.leader is not None
    for held in scene.copies_of(led.leader):
        if _lost_its_tail(held, from_offset):
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs.append(_tail_proof(held))
            break
    before = [n for n in _notes_before(scene, led, "loaded", "recovered", "created") if n.what != "created"]
    repaired = [
        n for n in before if n.what == "recovered" and n.offset is not None and n.offset <= from_offset
    ]
    loads = [n for n in before if n.what == "loaded"]
    last = loads[-1] if loads else None
    had_more = any(
        held.lineage.log_end_offset > from_offset
        or (held.copy.checkpoint("high_watermark") or 0) > from_offset
        for held in scene.copies_of(led.leader)
        if _is_before(scene, held, led)
    )
    short = last is not None and last.log_end_offset is not None and last.log_end_offset <= from_offset
    if short and last is not None and scene.testimony.started_between(led.leader, 0, last.time_ms):
        if repaired or had_more or drop.cause is Cause.POWER_FAILURE_TAIL:
            drop.cause = Cause.POWER_FAILURE_TAIL
            drop.proofs += [line_proof("tail_lost", n.proof) for n in (*repaired[-1:], last)]
    elif repaired and not loads:
        drop.cause = Cause.POWER_FAILURE_TAIL
        drop.proofs += [line_proof("tail_lost", n.proof) for n in repaired[-1:]]
    return drop.cause is Cause.POWER_FAILURE_TAIL


def _is_before(scene: Scene, held: HeldCopy, led: Led) -> bool:
    """Whether a copy holds nothing of the leadership yet: it was taken before, as far as its records tell."""
    if held.lineage.epochs:
        return held.lineage.last_epoch < led.leader_epoch
    return led.from_ms is None or held.log.newest_timestamp < led.from_ms


def _notes_before(scene: Scene, led: Led, *what: str) -> list[Note]:
    notes = scene.testimony.of(scene.partition, *what, broker_id=led.leader)
    until = led.from_ms
    return [n for n in notes if until is None or n.time_ms <= until + PROMPT_MS]


def _high_watermark_truncation(scene: Scene, drop: Drop, led: Led, from_offset: int) -> bool:
    """The new leader had the records when it was loaded, and cut them away as a follower."""
    end: int | None = None
    loaded: Note | None = None
    for note in _notes_before(scene, led, "loaded", "asked_to_cut", "cut", "fell_back"):
        if note.what == "loaded":
            end, loaded = note.log_end_offset, note
        elif note.what in ("asked_to_cut", "cut") and note.offset is not None:
            cuts = note.offset <= from_offset and end is not None and end > from_offset
            if cuts and loaded is not None:
                drop.cause = Cause.HIGH_WATERMARK_TRUNCATION
                drop.proofs += [line_proof("truncation", loaded.proof), line_proof("truncation", note.proof)]
            end = note.offset if end is None else min(end, note.offset)
    return drop.cause is Cause.HIGH_WATERMARK_TRUNCATION


def _zombie(scene: Scene, drop: Drop, led: Led, from_offset: int) -> bool:
    """The old leader was alive all the time, and learnt late that it leads no more."""
    zombie = drop.written_by
    if zombie is None or led.from_ms is None or zombie == led.leader:
        return False
    notes = scene.testimony.of(scene.partition, "follower", "cut", "reset", broker_id=zombie)
    told = [n for n in notes if n.time_ms >= led.from_ms]
    if not told or told[0].time_ms - led.from_ms < PROMPT_MS:
        return False
    began = [one.from_ms for one in scene.leaders.before(led.leader_epoch) if one.leader == zombie]
    since = min((ms for ms in began if ms is not None), default=led.from_ms)
    if scene.testimony.started_between(zombie, since, told[0].time_ms):
        return False
    drop.cause = Cause.ZOMBIE_LEADER
    signs = scene.testimony.of(scene.partition, "stale", "shrank", "isr_of_leader", broker_id=zombie)
    late = [n for n in signs if led.from_ms <= n.time_ms <= told[0].time_ms + PROMPT_MS]
    drop.proofs += [line_proof("zombie", n.proof) for n in (*late[:2], *told[:2])]
    return True
