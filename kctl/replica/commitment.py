"""How much of what was lost had been committed, and what proves it.

A high watermark in a checkpoint is a lower bound: up to there everything was committed on that branch. Upper bounds
are a leader's own words about its high watermark as it stopped leading, and the log end of a member of the ISR. On 2.8 to 3.4 a follower
took over its leader's high watermark before it truncated (KAFKA-14704), so that the checkpoint of one that was
about to truncate is not sure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kctl.replica.copies import CHECKPOINTS, Moment
from kctl.replica.drops import PROMPT_MS, Drop, Proof, Scene, line_proof
from kctl.replica.log_claims import Claim
from kctl.replica.lost_parts import LostPart
from kctl.replica.moments import Znodes
from kctl.replica.testimony import Note


@dataclass(frozen=True, slots=True)
class CommittedUpTo:
    """Everything below the offset was committed on the lost branch, and why."""

    offset: int
    proof: Proof


@dataclass
class Commitment:
    """What is known: committed below `lower`, not committed from `upper` on (None: nobody says)."""

    lower: int
    upper: int | None = None
    proofs: list[Proof] = field(default_factory=list)


@dataclass(frozen=True)
class ExternalOffset:
    """An offset that someone outside the logs committed to: a consumer group, a remote segment."""

    kind: str
    strength: str
    offset: int
    epoch: int | None
    text: str
    file: str | None = None
    moment: Moment = None
    is_of_before: bool = False
    """Whether it is from a moment before the present one, under another leadership."""

    def at_moment(self, *, is_before: bool) -> ExternalOffset:
        """The same, told whether it is of before."""
        return replace(self, is_of_before=self.is_of_before or is_before)


def commitment_of(
    scene: Scene,
    znodes: Mapping[Moment, Znodes],
    drop: Drop,
    start: int,
    end: int | None,
    parts: Sequence[LostPart],
    claims: Sequence[Claim],
    external: Sequence[ExternalOffset] = (),
) -> Commitment:
    """How much of the lost range [start, end) was committed."""
    found = [
        *_checkpoints(scene, parts, start),
        *_lines(scene, drop, parts, claims),
        *_isr_presence(scene, znodes, parts, start),
        *_isr_of_one(scene, znodes, drop, parts, start),
        *_external(scene, drop, external),
    ]
    result = Commitment(start)
    for one in sorted((f for f in found if f.offset > start), key=lambda f: -f.offset):
        result.lower = max(result.lower, one.offset if end is None else min(one.offset, end))
        if len(result.proofs) < 8:
            result.proofs.append(one.proof)
    for claim in claims:
        mark = claim.high_watermark
        if mark is not None and mark <= claim.from_offset and result.lower <= start:
            result.upper = mark
            said = [n for n in claim.notes if n.high_watermark is not None]
            result.proofs += [line_proof("high_watermark_line", n.proof) for n in said[-1:]]
    survived = _not_reached(scene, drop)
    if survived is not None and result.upper is None and result.lower <= start:
        result.upper = survived.offset
        result.proofs.append(survived.proof)
    return result


def _not_reached(scene: Scene, drop: Drop) -> CommittedUpTo | None:
    """Where the log of a new leader ended that was in the ISR and ran all along: nothing beyond was committed.

    A high watermark is never above the log end of a member of the ISR. One that started or cut its log during the
    leadership before may have had more.
    """
    led = scene.leaders.of(drop.leader_epoch)
    if led is None or led.from_ms is None or drop.leader not in scene.testimony.starts:
        return None
    assert drop.leader is not None
    isr, complete, is_last, _ = scene.leaders.isr_before(led.leader_epoch)
    before = next((one for one in scene.leaders.before(led.leader_epoch) if (one.leader or -1) >= 0), None)
    if not (complete and is_last and drop.leader in (isr or ())) or before is None or before.from_ms is None:
        return None
    if scene.testimony.started_between(drop.leader, before.from_ms, led.from_ms):
        return None
    cuts = scene.testimony.of(scene.partition, "cut", "asked_to_cut", "reset", broker_id=drop.leader)
    if any(before.from_ms - PROMPT_MS <= note.time_ms <= led.from_ms for note in cuts):
        return None
    end = next((first for epoch, first in scene.present.recorded if epoch == led.leader_epoch), None)
    if end is None or scene.leaders.is_doubtful:
        return None
    text = f"broker {drop.leader} was in the ISR, ran all along, and had nothing from offset {end} on"
    return CommittedUpTo(end, Proof("isr_member_without", "good", text, drop.leader))


def _checkpoints(scene: Scene, parts: Sequence[LostPart], start: int) -> Iterator[CommittedUpTo]:
    for part in parts:
        copy = part.held.copy
        mark = copy.checkpoint("high_watermark")
        if mark is None or mark <= start:
            continue
        state = scene.present.state if copy.moment == scene.present.moment else None
        follows = (
            state is not None
            and state.leader != copy.broker_id
            and scene.present.live is not None
            and copy.broker_id in scene.present.live
        )
        if follows and part.held.lineage.log_end_offset > part.to_offset:
            continue  # it has fetched from the new leader since: the mark is that one's
        text = f"{CHECKPOINTS['high_watermark']} of {copy.who} says {mark}"
        proof = Proof(
            "high_watermark_checkpoint",
            "good" if follows else "sure",
            text,
            copy.broker_id,
            copy.moment,
            copy.place.file,
        )
        yield CommittedUpTo(min(mark, part.to_offset), proof)


def _lines(
    scene: Scene, drop: Drop, parts: Sequence[LostPart], claims: Sequence[Claim]
) -> Iterator[CommittedUpTo]:
    """High watermarks that the holders of the lost records printed before they were cut."""
    holders = {p.held.copy.broker_id for p in parts} | {c.broker_id for c in claims}
    ends = {p.held.copy.broker_id: p.to_offset for p in parts}
    led = scene.leaders.of(drop.leader_epoch)
    since = scene.testimony.began_at(scene.partition)
    for broker_id in holders:
        cut = _first_cut(scene, broker_id, led.from_ms if led else None, claims)
        kinds = ("leader", "follower", "shrank", "initial_high_watermark")
        for note in scene.testimony.of(scene.partition, *kinds, broker_id=broker_id):
            if note.high_watermark is None or note.time_ms < since:
                continue
            if cut is not None and note.time_ms > cut:
                break
            of_later = drop.leader_epoch is not None and (note.leader_epoch or 0) >= drop.leader_epoch
            if note.what == "leader" and of_later:
                continue
            end = min(note.high_watermark, ends.get(broker_id, note.high_watermark))
            yield CommittedUpTo(end, line_proof("high_watermark_line", note.proof))


def _first_cut(scene: Scene, broker_id: int, dropped_ms: int | None, claims: Sequence[Claim]) -> int | None:
    """When the broker first cut its log after the drop; without a cut, when it became a follower; None: never."""
    cuts = [c.time_ms for c in claims if c.broker_id == broker_id]
    notes: list[Note] = scene.testimony.of(scene.partition, "cut", "reset", broker_id=broker_id)
    cuts += [n.time_ms for n in notes if dropped_ms is not None and n.time_ms >= dropped_ms]
    if cuts:
        return min(cuts)
    roles = scene.testimony.of(scene.partition, "follower", "asked_to_cut", broker_id=broker_id)
    after = [n.time_ms for n in roles if dropped_ms is not None and n.time_ms >= dropped_ms]
    return min(after, default=None)


def _isr_presence(
    scene: Scene, znodes: Mapping[Moment, Znodes], parts: Sequence[LostPart], start: int
) -> Iterator[CommittedUpTo]:
    """Records that every ISR member of one moment held, with the leader of then among them."""
    for moment in dict.fromkeys(part.held.copy.moment for part in parts):
        state = znodes[moment].state(scene.partition) if moment in znodes else None
        if state is None or state.leader not in state.isr or _is_too_small(scene, znodes, state.isr):
            continue
        ends = {
            p.held.copy.broker_id: p.to_offset
            for p in parts
            if p.held.copy.moment == moment and p.from_offset <= start
        }
        if not all(broker_id in ends for broker_id in state.isr):
            continue
        end = min(ends[broker_id] for broker_id in state.isr)
        text = f"every member of the ISR {list(state.isr)} held them"
        yield CommittedUpTo(end, Proof("isr_presence", "sure", text, state.leader, moment, state.file))


def _is_too_small(scene: Scene, znodes: Mapping[Moment, Znodes], isr: Sequence[int]) -> bool:
    """Whether an ISR is known to be below min.insync.replicas: from 3.7 on its high watermark stands still.

    Brokers from 2.8 on give every topic an id; where one of ZooKeeper has none, they are older (KIP-516).
    """
    topic = scene.partition.topic
    if any(one.created.get(topic) and topic not in one.topic_ids for one in znodes.values()):
        return False
    said = [one.minimum_isr for one in znodes.values()]
    if scene.testimony.history:
        said.append(scene.testimony.history.minimum_isr)
    return len(isr) < max((one.get(topic, one.get("", 1)) for one in said), default=1)


def _isr_of_one(
    scene: Scene, znodes: Mapping[Moment, Znodes], drop: Drop, parts: Sequence[LostPart], start: int
) -> Iterator[CommittedUpTo]:
    """What a leader alone in its ISR took was committed at once: with an ISR of one, one disk is enough."""
    if drop.leader_epoch is None:
        return
    isr, _, is_last, _ = scene.leaders.isr_before(drop.leader_epoch)
    if isr is None or len(isr) != 1 or not is_last or _is_too_small(scene, znodes, isr):
        return
    for part in parts:
        if part.held.copy.broker_id != isr[0] or part.from_offset > start:
            continue
        for led in scene.leaders.before(drop.leader_epoch):
            if led.leader == isr[0]:
                proof = line_proof("isr_of_one", led.proofs[0] if led.proofs else {}, "good")
                yield CommittedUpTo(part.to_offset, proof)
                break


def _external(scene: Scene, drop: Drop, external: Sequence[ExternalOffset]) -> Iterator[CommittedUpTo]:
    for one in external:
        if one.epoch is not None and drop.leader_epoch is not None and one.epoch >= drop.leader_epoch:
            continue  # of the lineage that is present
        if one.epoch is None and one.offset <= scene.present.log_end_offset:
            continue  # without an epoch only what is above the present end says anything
        yield CommittedUpTo(one.offset, Proof(one.kind, one.strength, one.text, file=one.file))
