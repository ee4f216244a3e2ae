"""Where lost records still are: in remote segments and in copies; from copies they are exported.

A tier holds segments of the epochs that were cut, copied before the election. A segment below the last stable offset
survives every truncation: brokers no longer read it, and retention keeps it until all its epochs are old.

Records are written as a segment file, and as JSON lines to produce again. Producer ids, epochs and sequences are left
out, since a broker would reject or drop them; offsets and leader epochs are kept for reference. Transaction
markers and records of aborted transactions are left out. A record of an open transaction is marked: a data batch
belongs to the transaction that the next marker of its producer ends.

Source: core/src/main/java/kafka/log/remote/RemoteLogManager.java, storage/.../internals/log/ProducerAppendInfo.java,
clients/.../record/ControlRecordType.java @ 3.9.0-rc3
"""

from __future__ import annotations

import base64
import enum
import json
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError
from formats.log.control_records import ControlType, read_key
from formats.log.record_batch import Record, write_batch
from formats.log.records import LogEntry, iterate_records
from formats.messages.remote_log_metadata import SegmentMetadata, SegmentState
from kctl.copies.replica_log import NO_END, batches_between
from kctl.errors import Refused, UnreadableFile, file_error
from kctl.evidence.model import FoundEvidence
from kctl.evidence.replica_copies import Copy
from kctl.model import TopicPartition
from kctl.replica.comparison.pairs import LIMIT, entries
from kctl.replica.loss.lost_parts import LostPart
from kctl.replica.loss.partition import Loss

Segments = Mapping[TopicPartition, Sequence[SegmentMetadata]]
METADATA_TOPIC = "__remote_log_metadata"


def remote_segments(evidence: FoundEvidence, partitions: Container[TopicPartition]) -> Segments:
    """The finished copies of these partitions by the newest metadata and by earlier metadata."""
    if not any(replica.topic == METADATA_TOPIC for replica in evidence.replicas):
        return {}
    from kctl.tier.metadata.fold import folded
    from kctl.tier.metadata.forgotten import forgotten_segments
    from kctl.tier.metadata.log import find_metadata

    segments_by_partition: dict[TopicPartition, list[SegmentMetadata]] = {}
    known = folded(find_metadata(evidence).chunks(), lambda finding: None, keep_deleted=True)
    segments = [segment.metadata for segment in known.segments()]
    ids = {segment.remote_log_segment_id for segment in segments}
    for segment in [*segments, *(forgotten for _, forgotten in forgotten_segments(evidence, ids))]:
        where = segment.topic_id_partition
        partition = TopicPartition(where.topic, where.partition)
        if partition in partitions and segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            segments_by_partition.setdefault(partition, []).append(segment)
    return segments_by_partition


def tier_ranges(loss: Loss, segments: Segments) -> Iterator[tuple[str, int, int]]:
    """Remote segments with records of a loss: the id, and the range [from, to) of the epochs that were cut."""
    if loss.to_offset is None:
        return
    topic_ids = {part.holder.copy.replica.topic_id for part in loss.parts} - {None}
    for segment in segments.get(loss.partition, ()):
        if topic_ids and segment.topic_id_partition.topic_id not in topic_ids:
            continue
        ranges = [
            (max(first, loss.from_offset), min(after, loss.to_offset))
            for epoch, first, after in _epochs(segment)
            if first < loss.to_offset and after > loss.from_offset and _was_cut(loss, epoch, first)
        ]
        if ranges:
            yield segment.remote_log_segment_id, ranges[0][0], ranges[-1][1]


def _epochs(segment: SegmentMetadata) -> Iterator[tuple[int, int, int]]:
    """The epochs of a segment with their offsets [first, after)."""
    starts = [start for _, start in segment.segment_leader_epochs]
    ends = [*starts[1:], segment.end_offset + 1]
    for (epoch, start), end in zip(segment.segment_leader_epochs, ends, strict=True):
        yield epoch, start, end


def _was_cut(loss: Loss, epoch: int, first: int) -> bool:
    """Whether the lost records at an offset were written in this epoch."""
    offset = max(first, loss.from_offset)
    holders = (part.holder for part in loss.parts if part.covers(offset, offset + 1))
    epochs = {holder.lineage.epoch_at(offset) for holder in holders} - {None}
    return epoch in epochs if epochs else epoch == loss.drop.written_in_epoch


class TransactionOutcome(enum.StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


OUTCOMES: dict[int, TransactionOutcome] = {
    ControlType.ABORT: TransactionOutcome.ABORTED,
    ControlType.COMMIT: TransactionOutcome.COMMITTED,
}


def transaction_outcomes(copy: Copy, start: int, end: int) -> dict[int, TransactionOutcome]:
    """The outcome of each transactional data batch of [start, end) by base offset; reads on to the last marker."""
    outcomes: dict[int, TransactionOutcome] = {}
    waiting: dict[int, list[int]] = {}  # producer id -> base offsets
    for log, batches in batches_between(copy, start, NO_END):
        for row in range(len(batches)):
            if batches.first_offset[row] >= end and not waiting:
                return outcomes
            for entry in entries(log, batches, [row]):
                if entry.batch is None or not entry.batch.is_transactional:
                    continue
                producer = entry.batch.producer_id
                if entry.batch.is_control:
                    outcome = _outcome(entry)
                    outcomes |= dict.fromkeys(waiting.pop(producer, ()), outcome)
                elif entry.base_offset < end:
                    waiting.setdefault(producer, []).append(entry.base_offset)
    outcomes |= {base: TransactionOutcome.OPEN for bases in waiting.values() for base in bases}
    return outcomes


def _outcome(marker: LogEntry) -> TransactionOutcome:
    """The outcome that a marker gives; open if it cannot be read."""
    try:
        kind = read_key(next(iterate_records(marker, limit=LIMIT)).key).type
    except (FormatError, StopIteration):
        return TransactionOutcome.OPEN
    return OUTCOMES.get(kind, TransactionOutcome.OPEN)


def refuse_hashes(evidence: FoundEvidence) -> None:
    """Refuse evidence whose records are to be written, or compared with those of a cluster, and are hashes alone.

    Raises Refused.
    """
    if evidence.hashed:
        raise Refused(
            f"{evidence.hashed[0].parent}: has hashes in the place of what records held",
            "records come from the originals alone: ask the one who made the copy by `kctl collect --headers`",
        )


def check_target(folder: Path, evidence: FoundEvidence) -> None:
    """Refuse a folder that is, holds or lies in evidence: evidence is never written to."""
    target = folder.resolve()
    for root in evidence.roots:
        if target == root.path or target.is_relative_to(root.path) or root.path.is_relative_to(target):
            raise Refused(f"{folder} is part of the evidence", "give a folder outside of it")


def export_loss(loss: Loss, folder: Path) -> str | None:
    """Write what copies still hold of a loss below the folder; return the segment's path, None without records.

    Raises `Refused` if a file exists already, `UnreadableFile` if one cannot be written.
    """
    if loss.to_offset is None or not loss.parts:
        return None
    epoch = "unknown" if loss.drop.leader_epoch is None else str(loss.drop.leader_epoch)
    target = folder / f"lost-in-epoch-{epoch}" / str(loss.partition)
    segment = target / f"{loss.from_offset:020d}.log"
    try:
        target.mkdir(parents=True, exist_ok=True)
        with segment.open("xb") as log, segment.with_suffix(".jsonl").open("x", encoding="utf-8") as lines:
            for batch in lost_batches(loss):
                if batch.outcome is TransactionOutcome.ABORTED or not batch.records:
                    continue
                lost_epoch = max(batch.leader_epoch, 0)
                log.write(write_batch(batch.records, codec=batch.codec, partition_leader_epoch=lost_epoch))
                for record in batch.records:
                    lines.write(_line(loss, record, batch.outcome) + "\n")
    except FileExistsError as error:
        raise Refused(f"{error.filename} already exists", "give a new folder") from error
    except OSError as error:
        for half in (segment, segment.with_suffix(".jsonl")):
            half.unlink(missing_ok=True)
        raise file_error(target, error, UnreadableFile, "what was begun there is removed") from error
    return str(segment)


class LostBatch(NamedTuple):
    """The lost records of one batch of a copy."""

    leader_epoch: int  # -1 before message format 2
    codec: int
    records: list[Record]
    outcome: TransactionOutcome | None  # None: of no transaction
    unreadable: int = 0  # records that its header counts and that cannot be decoded


def lost_batches(loss: Loss) -> Iterator[LostBatch]:
    """The data batches of a loss that copies hold, each offset once, from the fullest copies; no control batches."""
    at, end = loss.from_offset, loss.to_offset
    assert end is not None
    while at < end:
        part = _best(loss.parts, at)
        if part is None:
            following = [p.from_offset for p in loss.parts if p.from_offset > at]
            if not following:
                return
            at = min(following)
            continue
        until = min(part.to_offset, end)
        yield from _batches_of(part, at, until)
        at = until


def _best(parts: list[LostPart], offset: int) -> LostPart | None:
    holding = [part for part in parts if part.covers(offset, offset + 1)]
    return max(holding, key=lambda part: part.to_offset, default=None)


def _batches_of(part: LostPart, start: int, end: int) -> Iterator[LostBatch]:
    outcomes: dict[int, TransactionOutcome] | None = None
    copy = part.holder.copy
    for log, batches in batches_between(copy, start, end):
        for row in range(len(batches)):
            for entry in entries(log, batches, [row]):
                if entry.batch is not None and entry.batch.is_control:
                    continue
                outcome = None
                if entry.batch is not None and entry.batch.is_transactional:
                    if outcomes is None:
                        outcomes = transaction_outcomes(copy, start, end)
                    outcome = outcomes.get(entry.base_offset, TransactionOutcome.OPEN)
                unreadable, records = 0, list[Record]()
                try:
                    records += (r for r in iterate_records(entry, limit=LIMIT) if start <= r.offset < end)
                except FormatError:  # `replica loss` has the number of records in the headers
                    records, unreadable = [], max(1, int(batches.records[row]))
                if records or unreadable:
                    epoch = int(batches.leader_epoch[row])
                    yield LostBatch(epoch, entry.header.codec, records, outcome, unreadable)


def _line(loss: Loss, record: Record, outcome: TransactionOutcome | None) -> str:
    row: dict[str, object] = {
        "topic": loss.partition.topic,
        "partition": loss.partition.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_named("key", record.key),
        **_named("value", record.value),
        "headers": [{**_named("key", key), **_named("value", value)} for key, value in record.headers],
    }
    if outcome is TransactionOutcome.OPEN:
        row["transaction"] = str(outcome)
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _named(name: str, data: bytes | None) -> dict[str, object]:
    """Bytes as `NAME` if they are UTF-8, else as `NAME_base64`; null if absent."""
    if data is None:
        return {name: None}
    try:
        return {name: bytes(data).decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}
