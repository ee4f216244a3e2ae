"""Which leadership dropped records: by the epochs of the present lineage, else by who led when they were written."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kctl.model import TopicPartition
from kctl.replica.copies import Moment
from kctl.replica.leaders import Leaders, Led
from kctl.replica.lost_parts import HeldCopy, LostPart
from kctl.replica.present import Present
from kctl.replica.testimony import Testimony

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
    isr_before: tuple[int, ...] | None = None
    proofs: list[Proof] = field(default_factory=list)
    is_handover: bool = False
    """Whether a member of the ISR took over from a leader that was told to stop, and nothing else is known."""


@dataclass(frozen=True)
class Scene:
    """All that is known about one partition while its losses are looked at."""

    partition: TopicPartition
    present: Present
    leaders: Leaders
    testimony: Testimony
    held: Sequence[HeldCopy]
    epoch_then: Mapping[Moment, int] = field(default_factory=dict)
    """The leader epoch that the znodes of each moment name."""

    def copies_of(self, broker_id: int) -> Iterable[HeldCopy]:
        """The copies of one broker."""
        return (held for held in self.held if held.copy.broker_id == broker_id)


def dropping_epoch(scene: Scene, part: LostPart, parts: Sequence[LostPart]) -> int | None:
    """The epoch of the leadership that dropped a part; None where nothing says. `parts` are those of all copies."""
    return _by_epochs(scene, part.epoch, part.from_offset) or _by_leaders(scene, part, parts)


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


def _by_leaders(scene: Scene, part: LostPart, parts: Sequence[LostPart]) -> int | None:
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
        may_lack = previous is not None and not _goes_on(scene, previous, led) and not _kept(scene, part, led)
        if in_time and may_lack:
            candidates.append(led)
            if is_unclean(scene.leaders, led) or _lacked(scene, led, part.from_offset):
                fitting.append(led)
        previous = led
    had = _had_then(scene, part, parts) if newest is None else None
    if had is not None:
        then = scene.epoch_then[part.held.copy.moment]
        fitting = [led for led in fitting if (led.leader_epoch > then) == had]
        candidates = [led for led in candidates if (led.leader_epoch > then) == had]
    elif newest is None and len(fitting) > 1:
        return None  # nothing dates the records
    if fitting:
        return (fitting[0] if newest is not None or had else fitting[-1]).leader_epoch
    changes = [led for led in candidates if had or led.leader != part.held.copy.broker_id]
    return changes[0].leader_epoch if len(changes) == 1 else None


def _goes_on(scene: Scene, previous: Led, led: Led) -> bool:
    """Whether a leader went on leading, only the ISR being decided anew: it drops nothing of its own."""
    if previous.leader != led.leader or led.leader_epoch != previous.leader_epoch + 1 or led.leader is None:
        return False
    if led.leader not in scene.testimony.starts or previous.from_ms is None or led.from_ms is None:
        return False
    until = _soon_after(scene.leaders, led, led.from_ms, SLACK_MS)
    return not scene.testimony.started_between(led.leader, previous.from_ms, until)


def _soon_after(leaders: Leaders, led: Led, from_ms: int, slack_ms: int) -> int:
    """Until when what is said still belongs to the beginning of a leadership: never to the one after it."""
    later = (one.from_ms for one in leaders.known if one.leader_epoch > led.leader_epoch)
    over = (ms for ms in later if ms is not None and ms > from_ms)
    return min([from_ms + slack_ms, *over])


def _kept(scene: Scene, part: LostPart, led: Led) -> bool:
    """Whether the leader's own disk still has the records at a moment after it began to lead."""
    copy = part.held.copy
    return led.leader == copy.broker_id and led.leader_epoch <= scene.epoch_then.get(copy.moment, -1)


def _had_then(scene: Scene, part: LostPart, parts: Sequence[LostPart]) -> bool | None:
    """Whether the leader of a part's moment had the records too, so that they were dropped later; None: nobody knows.

    Messages of format 0 have no times, so that the moment of the copy alone dates them.
    """
    copy = part.held.copy
    leader = scene.leaders.leader_of(scene.epoch_then.get(copy.moment))
    if leader is None or leader == copy.broker_id:
        return None if leader is None else True
    if not any(held.copy.moment == copy.moment for held in scene.copies_of(leader)):
        return None
    theirs = [p for p in parts if p.held.copy.moment == copy.moment and p.held.copy.broker_id == leader]
    return any(p.from_offset < part.to_offset and part.from_offset < p.to_offset for p in theirs)


def _newest_timestamp(part: LostPart) -> int | None:
    found = part.held.log.newest_timestamp
    return found if found > 0 else None


def is_unclean(leaders: Leaders, led: Led) -> bool:
    """Whether a leader was not in the last ISR that had members."""
    if led.how in HANDOVERS:
        return False  # the controller takes a member of the ISR, also of one that a leader without logs here changed
    isr, _, is_last, eligible = leaders.isr_before(led.leader_epoch)
    if led.leader in eligible:
        return False
    if isr is None or leaders.is_doubtful or not is_last:
        return led.how == "unclean"
    if led.how == "unclean" and led.leader in isr:
        return len(isr) > 1  # who was alone in it comes back cleanly, whatever controllers before 1.1 warn of
    return led.leader not in isr


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
    until = _soon_after(scene.leaders, led, led.from_ms, PROMPT_MS)
    for note in notes:
        if note.time_ms > until:
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
