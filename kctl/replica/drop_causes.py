"""Why a leadership did not have the records that it dropped.

An election is unclean where the new leader was not in the last ISR that had members. A clean one can drop
committed records too: before leader epochs a follower that restarted cut to a stale high watermark and stayed in
the ISR, and an ISR member that lost its page cache is in the ISR all the same. A leader that was cut off from
ZooKeeper and went on acknowledges records into a leadership that is over.
"""

from __future__ import annotations

from collections.abc import Sequence

from kctl.replica.drops import HANDOVERS, PROMPT_MS, Cause, Drop, Proof, Scene, is_unclean, line_proof
from kctl.replica.leaders import Led
from kctl.replica.lost_parts import HeldCopy
from kctl.replica.testimony import Note


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
    isr, complete, *_ = scene.leaders.isr_before(led.leader_epoch)
    drop.isr_before = isr
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
    drop.is_handover = complete and led.how in HANDOVERS and led.leader in (isr or ())
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
    """Whether a copy holds nothing of the leadership yet: it was taken before, as far as its records tell.

    Messages of format 0 tell no time: then the znodes of its moment do, or nothing does.
    """
    if held.lineage.epochs:
        return held.lineage.last_epoch < led.leader_epoch
    then = scene.epoch_then.get(held.copy.moment)
    if then is not None:
        return then < led.leader_epoch
    newest = held.log.newest_timestamp
    return newest > 0 and (led.from_ms is None or newest < led.from_ms)


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
    if zombie is None or led.from_ms is None or zombie == led.leader or led.how in HANDOVERS:
        return False
    notes = scene.testimony.of(scene.partition, "follower", "cut", "reset", broker_id=zombie)
    told = [n for n in notes if n.time_ms >= led.from_ms]
    if not told or told[0].time_ms - led.from_ms < PROMPT_MS:
        return False
    began = [one.from_ms for one in scene.leaders.before(led.leader_epoch) if one.leader == zombie]
    since = next((ms for ms in began if ms is not None), led.from_ms)  # its last term: it may have led before
    if scene.testimony.started_between(zombie, since, told[0].time_ms):
        return False
    drop.cause = Cause.ZOMBIE_LEADER
    signs = scene.testimony.of(scene.partition, "stale", "shrank", "isr_of_leader", broker_id=zombie)
    late = [n for n in signs if led.from_ms <= n.time_ms <= told[0].time_ms + PROMPT_MS]
    drop.proofs += [line_proof("zombie", n.proof) for n in (*late[:2], *told[:2])]
    return True
