"""The story of one offset: who wrote it, where it is, when it became committed, and why it is gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from formats.values import Struct, field
from kctl.errors import KctlError, UnreadableFile
from kctl.model import TopicPartition
from kctl.replica.comparison.pairs import Content, contents
from kctl.replica.copies.copy import Moment
from kctl.replica.copies.log_notes import Note
from kctl.replica.copies.replica_log import HeldCopy, batches_between
from kctl.replica.loss.causes import PartitionFacts
from kctl.replica.loss.partition import Loss, PartitionLosses
from kctl.replica.loss.search import LossSearch
from kctl.rows.replica import EXPLANATION

Row = dict[str, object]
NAMES = "ABCDEFGH"
CAUSES = {
    "unclean_election": "the election was unclean: the new leader was not in the ISR",
    "high_watermark_truncation": "the election was clean, but the new leader had cut its log to a stale high watermark",
    "power_failure_tail": "the election was clean, but the new leader had lost the unflushed end of its log",
    "disk_lost": "the new leader's disk had been lost or replaced",
    "handover": "the old leader was told to stop and was the only one that had it: only producers with acks=0 or 1 lost it",
    "zombie_leader": "the old leader went on after its leadership was over, and cut what it had taken since",
    "unknown": "why the new leader did not have it is not in the evidence",
}


def explain_offset(search: LossSearch, partition: TopicPartition, offset: int) -> Iterator[Row]:
    """The rows of the story in order of telling; where the evidence tells none, that is reported.

    Raises `UnreadableFile` where no copy of the partition is here.
    """
    if partition not in search.partitions:
        raise UnreadableFile(
            f"no copy of {partition} is in the evidence",
            "name the log directories of brokers that hold the partition",
        )
    result = search.of(partition)
    whose: Row = {"topic": partition.topic, "partition": partition.partition, "offset": offset}
    if result.facts is None:
        for finding in result.findings:
            search.report(KctlError(finding.message, f"see `kctl finding {finding.code}`"))
        if not result.findings:
            text = "the topic is deleted: the znodes of the last moment no longer have it"
            yield EXPLANATION(**whose, what="led", text=text)
        return
    variants = _variants(result, offset)
    end = max(held_copy.lineage.log_end_offset for held_copy in result.facts.held_copies)
    if not variants and offset >= end:
        search.report(
            KctlError(
                f"offset {offset} of {partition} is beyond the end of every copy: the longest ends at {end}",
                "nothing here shows that it was ever written; a later copy of the leader may have it",
            )
        )
    for row in _written(result.facts, variants, offset):
        yield {**row, **whose}
    for row in _copies(result.facts, variants, offset, search.order):
        yield {**row, **whose}
    for row in _committed(result.facts, search, variants, offset):
        yield {**row, **whose}
    for row in _ending(result, variants, offset):
        yield {**row, **whose}


class _Variant(Struct):
    """One record that some copies hold at the offset; others may hold another one there.

    Without content it is one that was lost, and of which no copy is left.
    """

    content: Content | None
    epoch: int
    name: str = ""
    held_copies: list[HeldCopy] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    @property
    def timestamp(self) -> int:
        """Milliseconds; -1 before message format 1."""
        return -1 if self.content is None else self.content.timestamp


def _variants(result: PartitionLosses, offset: int) -> list[_Variant]:
    facts = result.facts
    assert facts is not None
    variants: list[_Variant] = []
    for held_copy in facts.held_copies:
        for log, batches in batches_between(held_copy.copy, offset, offset + 1):
            records = contents(log, batches, range(len(batches)))
            content = next((content for at, content in records if at == offset), None)
            if content is None:
                continue
            epoch = int(batches.leader_epoch[0])
            same = [variant for variant in variants if variant.content == content and variant.epoch == epoch]
            if not same:
                same = [_Variant(content, epoch)]
                variants += same
            same[0].held_copies.append(held_copy)
    for loss in result.losses:
        if _contains(loss, offset):
            _note_loss(variants, loss, offset)
    variants.sort(key=lambda variant: (variant.epoch, variant.timestamp))
    for number, variant in enumerate(variants):
        variant.name = f"record {NAMES[number % len(NAMES)]}" if len(variants) > 1 else "the record"
    return variants


def _note_loss(variants: list[_Variant], loss: Loss, offset: int) -> None:
    """Attach a loss to the record that was lost: one that a copy still holds, else a new variant without content."""
    losing_copies = [part.held_copy for part in loss.parts if part.from_offset <= offset < part.to_offset]
    lost = [
        variant
        for variant in variants
        if any(held_copy in losing_copies for held_copy in variant.held_copies)
    ]
    for variant in lost:
        variant.losses.append(loss)
    if not lost:
        epoch = loss.drop.written_in_epoch
        variants.append(_Variant(None, -1 if epoch is None else epoch, losses=[loss]))


def _time(millis: int | None) -> str | None:
    if millis is None or millis < 0:
        return None
    try:
        return (
            datetime.fromtimestamp(millis / 1000, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
    except (OverflowError, ValueError, OSError):
        return None


def _written(facts: PartitionFacts, variants: list[_Variant], offset: int) -> Iterator[Row]:
    for variant in variants:
        term = facts.leaders.of(variant.epoch) if variant.epoch >= 0 else None
        if variant.epoch < 0 and variant.timestamp >= 0:
            before = [
                earlier
                for earlier in facts.leaders.known
                if earlier.from_ms is None or earlier.from_ms <= variant.timestamp
            ]
            term = before[-1] if before else None
        leader = term.leader_id if term else None
        by = "an unknown leader" if leader is None else f"broker {leader}"
        epoch = term.leader_epoch if term else variant.epoch
        in_epoch = f" in leader epoch {epoch}" if epoch >= 0 else ""
        proof: Mapping[str, object] = term.proofs[0] if term and term.proofs else {}
        yield EXPLANATION(
            what="written",
            text=f"{variant.name}{_remark(variant, offset)} was written by {by}{in_epoch}",
            broker_id=leader,
            leader_epoch=epoch if epoch >= 0 else None,
            time=_time(variant.timestamp),
            file=proof.get("file"),
            line=proof.get("line"),
        )


def _remark(variant: _Variant, offset: int) -> str:
    """The words to add for a record that no copy holds; "" for one that a copy holds."""
    if variant.held_copies:
        return ""
    is_sure = any(_is_sure(loss, offset) for loss in variant.losses)
    return ", of which no copy is left," if is_sure else ", if there was one,"


def _copies(
    facts: PartitionFacts, variants: list[_Variant], offset: int, moments: Sequence[Moment]
) -> Iterator[Row]:
    holding = {id(held_copy): variant for variant in variants for held_copy in variant.held_copies}
    order = {moment: index for index, moment in enumerate(moments)}
    for held_copy in sorted(
        facts.held_copies, key=lambda held_copy: (order[held_copy.copy.moment], held_copy.copy.broker_id)
    ):
        variant = holding.get(id(held_copy))
        lineage = held_copy.lineage
        if variant is not None:
            what, text = "copy", f"{held_copy.copy.who} holds {variant.name}"
        elif offset >= lineage.log_end_offset:
            what, text = "absent", f"{held_copy.copy.who} ends at {lineage.log_end_offset}"
        elif offset < (lineage.local_log_start_offset or 0):
            what, text = (
                "absent",
                f"{held_copy.copy.who} begins at {lineage.local_log_start_offset}: retention",
            )
        else:
            what, text = "absent", f"{held_copy.copy.who} has no record at it: compaction, damage or a hole"
        yield EXPLANATION(
            what=what,
            text=text,
            broker_id=held_copy.copy.broker_id,
            moment=held_copy.copy.moment,
            leader_epoch=variant.epoch if variant and variant.epoch >= 0 else None,
            file=held_copy.copy.place.file,
        )


def _committed(
    facts: PartitionFacts, search: LossSearch, variants: list[_Variant], offset: int
) -> Iterator[Row]:
    """The first line and the first checkpoint with a high watermark above the offset, for each record."""
    for variant in variants:
        brokers = {held_copy.copy.broker_id for held_copy in variant.held_copies}
        note = _first_line(facts, variant, brokers, offset, is_contested=len(variants) > 1)
        if note is not None:
            yield EXPLANATION(
                what="committed",
                text=f"{variant.name} was committed by then: broker {note.broker_id} had high watermark {note.high_watermark}",
                broker_id=note.broker_id,
                time=_time(note.time_ms),
                file=note.proof.get("file"),
                line=note.proof.get("line"),
            )
        for held_copy in sorted(
            variant.held_copies, key=lambda held_copy: search.order.index(held_copy.copy.moment)
        ):
            high_watermark = held_copy.copy.checkpoint("high_watermark")
            if high_watermark is not None and high_watermark > offset:
                yield EXPLANATION(
                    what="committed",
                    text=f"{variant.name} was committed by then: the checkpoint of {held_copy.copy.who} has high watermark {high_watermark}",
                    broker_id=held_copy.copy.broker_id,
                    moment=held_copy.copy.moment,
                    file=_checkpoint_file(search, held_copy),
                )
                break


def _first_line(
    facts: PartitionFacts, variant: _Variant, brokers: set[int], offset: int, *, is_contested: bool
) -> Note | None:
    notes = facts.log_notes.of(facts.partition, "leader", "follower", "shrank", "initial_high_watermark")
    for note in notes:
        if note.broker_id not in brokers or note.high_watermark is None or note.high_watermark <= offset:
            continue
        if note.what == "leader" and variant.epoch >= 0 and (note.leader_epoch or 0) < variant.epoch:
            continue
        # A follower says what it had before it followed; of a loaded log nobody says which record it held.
        if note.what == "follower" and (note.leader_epoch or 0) <= variant.epoch:
            continue
        if note.what == "initial_high_watermark" and is_contested:
            continue
        if variant.timestamp >= 0 and note.time_ms < variant.timestamp:
            continue
        return note
    return None


def _checkpoint_file(search: LossSearch, held_copy: HeldCopy) -> str | None:
    log_dir = held_copy.copy.replica.log_dir
    return search.evidence.place_of(Path(log_dir.path) / "replication-offset-checkpoint", log_dir.root).file


def _ending(result: PartitionLosses, variants: list[_Variant], offset: int) -> Iterator[Row]:
    facts = result.facts
    assert facts is not None
    for variant in variants:
        for loss in variant.losses:
            yield from _lost(loss, variant.name if len(variants) > 1 else "", offset)
    present = facts.present
    assert present.lineage is not None
    present_variants = [
        variant
        for variant in variants
        if any(held_copy.copy is present.copy for held_copy in variant.held_copies)
    ]
    if present_variants and len(variants) > 1:
        text = f"{present_variants[0].name} is in the present lineage"
    elif any(variant.losses for variant in variants):
        return
    elif offset < present.lineage.log_start_offset:
        text = (
            f"the present log begins at {present.lineage.log_start_offset}: what was below went by retention"
        )
    elif offset >= present.log_end_offset:
        text = f"the present log ends at {present.log_end_offset}: nothing says that it was ever written"
    else:
        text = "it is in the present lineage; nothing was lost at this offset"
    yield EXPLANATION(what="led", text=text, broker_id=present.leader, moment=present.moment)


def _contains(loss: Loss, offset: int) -> bool:
    return loss.from_offset <= offset and (loss.to_offset is None or offset < loss.to_offset)


def _is_sure(loss: Loss, offset: int) -> bool:
    """Whether it is known that the loss reached so far; one without an end was seen up to some offset."""
    known_ends = [
        offsets.to_offset for offsets in (*loss.replaced, *loss.missing) if offsets.to_offset is not None
    ]
    return loss.to_offset is not None or offset < max(known_ends, default=loss.from_offset + 1)


def _lost(loss: Loss, name: str, offset: int) -> Iterator[Row]:
    drop = loss.drop
    leader = "an unknown leadership" if drop.leader is None else f"broker {drop.leader}"
    epoch = "" if drop.leader_epoch is None else f" in leader epoch {drop.leader_epoch}"
    what = f"{name}, {loss.loss_class}:" if name else f"{loss.loss_class}:"
    if not _is_sure(loss, offset):
        what += f" what began at {loss.from_offset} was"
    yield EXPLANATION(
        what="lost",
        text=f"{what} dropped by {leader}{epoch}; {CAUSES[str(drop.cause)]}"
        + ("" if _is_sure(loss, offset) else "; no evidence says how far it reached"),
        broker_id=drop.leader,
        leader_epoch=drop.leader_epoch,
    )
    for proof in loss.evidence:
        if proof.file is None or proof.line is None:
            continue
        yield EXPLANATION(
            what="log_line", text=proof.text, broker_id=proof.broker_id, file=proof.file, line=proof.line
        )
