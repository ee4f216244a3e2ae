"""Rows of remote segments, of metadata records, and totals a topic."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.remote_log_metadata import (
    PartitionDelete,
    RemoteLogMetadata,
    SegmentMetadata,
    SegmentMetadataSnapshot,
    SegmentState,
    TopicIdPartition,
)
from formats.remote_log_metadata_text import TYPE_NAMES
from kctl.findings import Finding, Place
from kctl.findings import remote as say
from kctl.remote.asking import NOW, AsOf
from kctl.remote.fold import Fold
from kctl.remote.fold_rows import Rows
from kctl.remote.metadata_log import METADATA_TOPIC, MetadataLog, Say, ValueChunk
from kctl.remote.partitioner import (
    DEFAULT_PARTITIONS,
    metadata_partition,
    metadata_partition_by_name,
    placing_hash,
)
from kctl.remote.remote_segments import RemoteSegment, custom_of, epochs_of, ids_of
from kctl.rows.remote import METADATA_RECORD, REMOTE_SEGMENT, REMOTE_TOTAL

Row = dict[str, object]
MOST_PARTITIONS = 1024  # tried where the evidence does not say how many the metadata topic has
_STATES = {
    SegmentState.COPY_SEGMENT_FINISHED: "readable",
    SegmentState.COPY_SEGMENT_STARTED: "unfinished",
    SegmentState.DELETE_SEGMENT_STARTED: "deleting",
}
STATE_NAMES = [state.name for state in SegmentState]
# What a row of a segment says as the table has it.
AS_IT_IS = ("start_offset", "end_offset", "size_in_bytes", "max_timestamp", "event_timestamp", "broker_id")


def custom_metadata(held: bytes | None) -> Row:
    """The two keys of custom metadata: text where it is UTF-8, else base64."""
    if held is None:
        return {}
    try:
        return {"custom_metadata": held.decode()}
    except UnicodeDecodeError:
        return {"custom_metadata_base64": base64.b64encode(held).decode()}


def segment_row(
    segment: RemoteSegment, newest: int | None = None, deletion: PartitionDelete | None = None
) -> Row:
    """The row of a segment; ages are counted from `newest` (ms)."""
    one = segment.metadata
    where = one.topic_id_partition
    return REMOTE_SEGMENT(
        topic_id=where.topic_id,
        topic=where.topic,
        partition=where.partition,
        remote_log_segment_id=one.remote_log_segment_id,
        state=one.state.name,
        start_offset=one.start_offset,
        end_offset=one.end_offset,
        segment_leader_epochs=[list(entry) for entry in one.segment_leader_epochs],
        size_in_bytes=one.size_in_bytes,
        max_timestamp=one.max_timestamp,
        event_timestamp=one.event_timestamp,
        broker_id=one.broker_id,
        **custom_metadata(one.custom_metadata),
        age_ms=None if newest is None else newest - one.event_timestamp,
        deletion_state=deletion.state.name if deletion else None,
        metadata_partition=segment.metadata_partition,
        metadata_offset=segment.last_offset if segment.last_offset >= 0 else None,
    )


def segment_rows(
    fold: Fold, totals: Totals, topic: str | None = None, partition: int | None = None
) -> Iterator[Row]:
    """The rows of all segments, or of those of a topic or partition number, counted in `totals`."""
    for columns in _columns(fold, totals, topic, partition):
        yield from REMOTE_SEGMENT.many(**columns)


def segment_lines(
    fold: Fold,
    totals: Totals,
    encode: Callable[[Any], bytes],
    topic: str | None = None,
    partition: int | None = None,
) -> Iterator[bytes]:
    """The same as lines of JSON, many at a time; `encode` gives the JSON of a value."""
    for columns in _columns(fold, totals, topic, partition):
        yield REMOTE_SEGMENT.lines(encode, **columns)


def _columns(
    fold: Fold, totals: Totals, topic: str | None, partition: int | None
) -> Iterator[dict[str, Sequence[object]]]:
    """The columns of rows, some thousand at a time."""
    wanted = np.array(
        [topic in (None, p.topic) and partition in (None, p.partition) for p in fold.partitions], np.bool_
    )
    deletions = [fold.deletions.get(where) for where in fold.partitions]
    deletion_states = [deletion and deletion.state.name for deletion in deletions]
    for rows in fold.runs(wanted):
        table = rows.table
        totals.add_rows(rows, fold.partitions)
        codes = table["partition"].tolist()
        where = [fold.partitions[code] for code in codes]
        yield {
            "topic_id": [one.topic_id for one in where],
            "topic": [one.topic for one in where],
            "partition": [one.partition for one in where],
            "remote_log_segment_id": ids_of(rows),
            "state": [STATE_NAMES[state] for state in table["state"].tolist()],
            "segment_leader_epochs": epochs_of(rows),
            **{name: table[name].tolist() for name in AS_IT_IS},
            **_spelt(rows),
            "age_ms": [fold.newest - stamp for stamp in table["event_timestamp"].tolist()],
            "deletion_state": [deletion_states[code] for code in codes],
            "metadata_partition": _known(table["metadata_partition"]),
            "metadata_offset": _known(table["offset"]),
        }


def _spelt(rows: Rows) -> dict[str, list[object]]:
    """The two columns of custom metadata; none where no row has any."""
    if (rows.table["custom_length"] < 0).all():
        return {}
    spelt = [custom_metadata(held) for held in custom_of(rows)]
    names = ("custom_metadata", "custom_metadata_base64")
    return {name: [one.get(name) for one in spelt] for name in names}


def _known(column: NDArray[Any]) -> list[int | None]:
    """The numbers, null for those below 0."""
    numbers: list[int | None] = column.tolist()
    return (
        [None if one is not None and one < 0 else one for one in numbers] if (column < 0).any() else numbers
    )


def record_row(metadata_partition: int | None, offset: int, record: RemoteLogMetadata) -> Row:
    """The row of a metadata record."""
    row = METADATA_RECORD(
        metadata_partition=metadata_partition,
        metadata_offset=offset if offset >= 0 else None,
        type=TYPE_NAMES[type(record)],
        state=record.state.name,
        event_timestamp=record.event_timestamp,
        broker_id=record.broker_id,
        layout=str(record.layout),
    )
    if not isinstance(record, SegmentMetadataSnapshot):
        row |= record.topic_id_partition._asdict()
    if not isinstance(record, PartitionDelete):
        row |= {
            "remote_log_segment_id": record.remote_log_segment_id,
            **custom_metadata(record.custom_metadata),
        }
    if isinstance(record, SegmentMetadata | SegmentMetadataSnapshot):
        for name in ("start_offset", "end_offset", "size_in_bytes", "max_timestamp"):
            row[name] = getattr(record, name)
        row["segment_leader_epochs"] = [list(entry) for entry in record.segment_leader_epochs]
    return row


def folded(chunks: Iterable[ValueChunk], say_: Say, as_of: AsOf = NOW, *, keep_deleted: bool = False) -> Fold:
    """The present state of all segments, or that of an earlier time or offset."""
    fold = Fold(say_, keep_deleted, until_time=as_of.time)
    for chunk in chunks:
        bounded = as_of.metadata_partition in (None, chunk.metadata_partition)
        fold.until_offset = as_of.offset if bounded else None
        fold.add(chunk)
    fold.finish()
    return fold


def fold_findings(fold: Fold, log: MetadataLog | None = None) -> Iterator[Finding]:
    """What the records as a whole have that is odd: layouts of two versions, wrong metadata partitions, ids."""
    old, new = (fold.layouts[layout] for layout in sorted(fold.layouts))
    if old and new:
        yield say.METADATA_LAYOUTS_MIXED.at(old=old, new=new)
    partitions = metadata_partitions(fold, log)
    if partitions is not None:
        yield from _wrong_partitions(fold, partitions)
    ids: dict[str, set[str]] = {}
    for partition in fold.partitions:
        ids.setdefault(partition.topic, set()).add(partition.topic_id)
    for topic, held in sorted(ids.items()):
        if len(held) > 1:
            yield say.TOPIC_IDS_DIFFER.at(Place(topic=topic), count=len(held), ids=", ".join(sorted(held)))


def metadata_partitions(fold: Fold, log: MetadataLog | None) -> int | None:
    """How many partitions the metadata topic has: from a znode, else as the records lie; None: not to be told."""
    if log is not None and log.partitions is not None:
        return log.partitions
    folders = max((number for number in (log.replicas if log else ()) if number is not None), default=-1) + 1
    return _partitions_that_fit(fold, folders)


def _wrong_partitions(fold: Fold, partitions: int) -> Iterator[Finding]:
    for (code, number), count in sorted(fold.found_in.items(), key=str):
        where = fold.partitions[code]
        expected = metadata_partition(where.topic_id, where.partition, partitions)
        if number is None or number == expected:
            continue
        by_name = metadata_partition_by_name(where.topic, where.partition, partitions)
        kip = ", and so does KIP-405's formula for where they are" if by_name == number else ""
        yield say.METADATA_WRONG_PARTITION.at(
            Place(topic=where.topic, partition=where.partition, file=f"{METADATA_TOPIC}-{number}"),
            count=count,
            found=number,
            partitions=partitions,
            expected=expected,
            kip=kip,
        )


def _partitions_that_fit(fold: Fold, folders: int) -> int | None:
    """A number of metadata partitions, where no znode says it: one that nine in ten records agree with.

    First the folders that are there are asked, then Kafka's default, then every other number.
    """
    held = [(code, number, count) for (code, number), count in fold.found_in.items() if number is not None]
    if not held:
        return None
    hashes = {
        code: placing_hash(fold.partitions[code].topic_id, fold.partitions[code].partition)
        for code, _, _ in held
    }
    hashed = np.array([hashes[code] for code, _, _ in held])
    numbers = np.array([number for _, number, _ in held])
    counts = np.array([count for _, _, count in held])
    tried: dict[int, None] = dict.fromkeys((folders, DEFAULT_PARTITIONS, *range(1, MOST_PARTITIONS)))
    for partitions in tried:
        if partitions and int(counts[hashed % partitions == numbers].sum()) * 10 >= int(counts.sum()) * 9:
            return partitions
    return None


class Totals:
    """Sums a topic id and of all, segment by segment."""

    def __init__(self) -> None:
        self._sums: dict[TopicIdPartition, dict[SegmentState, list[int]]] = {}

    def add(self, segment: SegmentMetadata) -> None:
        """Count a segment."""
        held = self._sums.setdefault(segment.topic_id_partition, {}).setdefault(segment.state, [0, 0])
        held[0] += 1
        held[1] += segment.size_in_bytes

    def add_rows(self, rows: Rows, partitions: Sequence[TopicIdPartition]) -> None:
        """Count all segments of rows."""
        table = rows.table
        pairs = table["partition"] * len(SegmentState) + table["state"]
        counts, sizes = np.bincount(pairs), np.bincount(pairs, table["size_in_bytes"].astype(np.float64))
        for pair in np.flatnonzero(counts).tolist():
            code, state = divmod(pair, len(SegmentState))
            held = self._sums.setdefault(partitions[code], {}).setdefault(SegmentState(state), [0, 0])
            held[0] += int(counts[pair])
            held[1] += int(sizes[pair])

    def rows(self) -> Iterator[Row]:
        """A row a topic id, then one of all."""
        topics: dict[tuple[str, str], list[dict[SegmentState, list[int]]]] = {}
        for where, sums in self._sums.items():
            topics.setdefault((where.topic, where.topic_id), []).append(sums)
        for (topic, topic_id), held in sorted(topics.items()):
            yield _total(topic, topic_id, held)
        yield _total(None, None, list(self._sums.values()))


def _total(topic: str | None, topic_id: str | None, partitions: list[dict[SegmentState, list[int]]]) -> Row:
    values: dict[str, int] = {"partitions": len(partitions), "segments": 0, "size_in_bytes": 0}
    for name in _STATES.values():
        values |= {f"{name}_segments": 0, f"{name}_bytes": 0}
    for state, (count, size) in ((state, pair) for sums in partitions for state, pair in sums.items()):
        values["segments"] += count
        values["size_in_bytes"] += size
        if state in _STATES:
            values[f"{_STATES[state]}_segments"] += count
            values[f"{_STATES[state]}_bytes"] += size
    return REMOTE_TOTAL(topic=topic, topic_id=topic_id, **values)
