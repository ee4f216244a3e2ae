"""The history of one offset: who wrote it, where it is, when it was committed, and why it is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from formats.values import Struct, field
from kctl.copies.log_notes import Note
from kctl.copies.replica_log import Holder, batches_between
from kctl.errors import KctlError, UnreadableFile
from kctl.evidence.replica_copies import Moment
from kctl.model import Row, TopicPartition
from kctl.replica.comparison.pairs import Content, contents
from kctl.replica.loss.causes import Cause, PartitionFacts
from kctl.replica.loss.partition import Loss, PartitionLosses
from kctl.replica.loss.search import LossSearch
from kctl.rows.replica import EXPLANATION
from kctl.times import iso

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
    """The history of an offset as rows in order; if the evidence has none, that is reported.

    Raises `UnreadableFile` if the evidence has no copy of the partition.
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
    end = max(holder.lineage.log_end_offset for holder in result.facts.holders)
    if not variants and offset >= end:
        search.report(
            KctlError(
                f"offset {offset} of {partition} is beyond the end of every copy: the longest ends at {end}",
                "nothing here shows that it was ever written; a later copy of the leader may have it",
            )
        )
    whose["topic_id"] = result.facts.topic_id
    for row in _written(result.facts, variants, offset):
        yield {**row, **whose}
    for row in _copies(result.facts, variants, offset, search.order):
        yield {**row, **whose}
    for row in _committed(result.facts, search, variants, offset):
        yield {**row, **whose}
    for row in _ending(result, variants, offset):
        yield {**row, **whose}


class _Variant(Struct):
    """One record that some copies hold at the offset; others may hold another one.

    Without content it is a lost record of which no copy is left.
    """

    content: Content | None
    epoch: int
    name: str = ""
    holders: list[Holder] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    @property
    def timestamp(self) -> int:
        """Milliseconds; -1 before message format 1."""
        return -1 if self.content is None else self.content.timestamp


def _variants(result: PartitionLosses, offset: int) -> list[_Variant]:
    facts = result.facts
    assert facts is not None
    variants: list[_Variant] = []
    for holder in facts.holders:
        for log, batches in batches_between(holder.copy, offset, offset + 1):
            records = contents(log, batches, range(len(batches)))
            content = next((content for at, content in records if at == offset), None)
            if content is None:
                continue
            epoch = int(batches.leader_epoch[0])
            same = [variant for variant in variants if variant.content == content and variant.epoch == epoch]
            if not same:
                same = [_Variant(content, epoch)]
                variants += same
            same[0].holders.append(holder)
    for loss in result.losses:
        if _contains(loss, offset):
            _note_loss(variants, loss, offset)
    variants.sort(key=lambda variant: (variant.epoch, variant.timestamp))
    for number, variant in enumerate(variants):
        variant.name = f"record {NAMES[number % len(NAMES)]}" if len(variants) > 1 else "the record"
    return variants


def _note_loss(variants: list[_Variant], loss: Loss, offset: int) -> None:
    """Attach a loss to the lost record: one that a copy still holds, else a new variant without content."""
    losing_copies = [part.holder for part in loss.parts if part.covers(offset, offset + 1)]
    lost = [variant for variant in variants if any(holder in losing_copies for holder in variant.holders)]
    for variant in lost:
        variant.losses.append(loss)
    if not lost:
        epoch = loss.drop.written_in_epoch
        variants.append(_Variant(None, -1 if epoch is None else epoch, losses=[loss]))


def _time(millis: int | None) -> str | None:
    text = iso(millis) if millis is not None and millis >= 0 else ""
    return text if text.endswith("Z") else None


def _written(facts: PartitionFacts, variants: list[_Variant], offset: int) -> Iterator[Row]:
    for variant in variants:
        term = facts.leaders.of(variant.epoch) if variant.epoch >= 0 else None
        if variant.epoch < 0 and variant.timestamp >= 0:
            known = reversed(facts.leaders.known)
            term = next((t for t in known if t.from_ms is None or t.from_ms <= variant.timestamp), None)
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
    """The words to add for a record that no copy holds; "" if a copy holds it."""
    if variant.holders:
        return ""
    is_sure = any(_is_sure(loss, offset) for loss in variant.losses)
    return ", of which no copy is left," if is_sure else ", if there was one,"


def _copies(
    facts: PartitionFacts, variants: list[_Variant], offset: int, moments: Sequence[Moment]
) -> Iterator[Row]:
    holding = {id(holder): variant for variant in variants for holder in variant.holders}
    order = {moment: index for index, moment in enumerate(moments)}
    for holder in sorted(facts.holders, key=lambda held: (order[held.copy.moment], held.copy.broker_id)):
        variant = holding.get(id(holder))
        lineage = holder.lineage
        if variant is not None:
            what, text = "copy", f"{holder.copy.who} holds {variant.name}"
        elif offset >= lineage.log_end_offset:
            what, text = "absent", f"{holder.copy.who} ends at {lineage.log_end_offset}"
        elif offset < (lineage.local_log_start_offset or 0):
            begin = lineage.local_log_start_offset
            what, text = "absent", f"{holder.copy.who} begins at {begin}: retention"
        else:
            what, text = "absent", f"{holder.copy.who} has no record at it: compaction, damage or a hole"
        yield EXPLANATION(
            what=what,
            text=text,
            broker_id=holder.copy.broker_id,
            moment=holder.copy.moment,
            leader_epoch=variant.epoch if variant and variant.epoch >= 0 else None,
            file=holder.copy.place.file,
        )


def _committed(
    facts: PartitionFacts, search: LossSearch, variants: list[_Variant], offset: int
) -> Iterator[Row]:
    """For each record the first log line and the first checkpoint with a high watermark above the offset."""
    for variant in variants:
        brokers = {holder.copy.broker_id for holder in variant.holders}
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
        for holder in sorted(variant.holders, key=lambda holder: search.order.index(holder.copy.moment)):
            high_watermark = holder.copy.checkpoint("high_watermark")
            if high_watermark is not None and high_watermark > offset:
                yield EXPLANATION(
                    what="committed",
                    text=f"{variant.name} was committed by then: the checkpoint of {holder.copy.who} has high watermark {high_watermark}",
                    broker_id=holder.copy.broker_id,
                    moment=holder.copy.moment,
                    file=_checkpoint_file(search, holder),
                )
                break


def _first_line(
    facts: PartitionFacts, variant: _Variant, brokers: set[int], offset: int, *, is_contested: bool
) -> Note | None:
    notes = facts.log_notes.of(
        facts.partition, "leader", "follower", "fetching", "shrank", "initial_high_watermark"
    )
    for note in notes:
        if note.broker_id not in brokers or note.high_watermark is None or note.high_watermark <= offset:
            continue
        if note.what == "leader" and variant.epoch >= 0 and (note.leader_epoch or 0) < variant.epoch:
            continue
        # A follower logs what it had before it followed; for a loaded log it is unknown which record it held.
        if note.what in ("follower", "fetching") and (note.leader_epoch or 0) <= variant.epoch:
            continue
        if note.what == "initial_high_watermark" and is_contested:
            continue
        if variant.timestamp >= 0 and note.time_ms < variant.timestamp:
            continue
        return note
    return None


def _checkpoint_file(search: LossSearch, holder: Holder) -> str | None:
    log_dir = holder.copy.replica.log_dir
    return search.evidence.place_of(Path(log_dir.path) / "replication-offset-checkpoint", log_dir.root).file


def _ending(result: PartitionLosses, variants: list[_Variant], offset: int) -> Iterator[Row]:
    facts = result.facts
    assert facts is not None
    for variant in variants:
        for loss in variant.losses:
            yield from _lost(loss, variant.name if len(variants) > 1 else "", offset)
    present = facts.present
    assert present.lineage is not None
    copies = {id(holder.copy): variant for variant in reversed(variants) for holder in variant.holders}
    current = copies.get(id(present.copy))
    if current is not None and len(variants) > 1:
        text = f"{current.name} is in the present lineage"
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
    """Whether the loss is known to include the offset; a loss without an end is known up to some offset."""
    ends = (end for _, end in (*loss.replaced, *loss.missing))
    return loss.to_offset is not None or offset < max(ends, default=loss.from_offset + 1)


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
        strength=None if drop.cause is Cause.UNKNOWN else drop.strength,
    )
    for proof in loss.evidence:
        if proof.file is None or proof.line is None:
            continue
        yield EXPLANATION(
            what="log_line", text=proof.text, broker_id=proof.broker_id, file=proof.file, line=proof.line
        )
