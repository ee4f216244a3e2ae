"""Output: rows of remote segments, totals by topic, rows of metadata records, and Kafka's lines for them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.kafka_text.remote_log_metadata import TYPE_NAMES
from formats.messages.remote_log_metadata import (
    PartitionDelete,
    RemoteLogMetadata,
    SegmentState,
    TopicIdPartition,
)
from formats.tier.metadata_columns import read_metadata_columns
from kctl.model import Row
from kctl.rows.remote import METADATA_RECORD, REMOTE_SEGMENT, REMOTE_TOTAL
from kctl.tier.metadata.fold import Fold
from kctl.tier.metadata.log import Say, ValueChunk
from kctl.tier.metadata.remote_segments import RemoteSegment, SegmentRows, custom_of, epochs_of, ids_of

_STATES = {
    SegmentState.COPY_SEGMENT_FINISHED: "readable",
    SegmentState.COPY_SEGMENT_STARTED: "unfinished",
    SegmentState.DELETE_SEGMENT_STARTED: "deleting",
}
STATE_NAMES = [state.name for state in SegmentState]
# Columns of a segment's row that are taken from the table unchanged.
AS_IT_IS = ("start_offset", "end_offset", "size_in_bytes", "max_timestamp", "event_timestamp", "broker_id")


def custom_metadata(data: bytes | None) -> Row:
    """Custom metadata as text if it is UTF-8, else as base64; empty if it is null."""
    if data is None:
        return {}
    try:
        return {"custom_metadata": data.decode()}
    except UnicodeDecodeError:
        return {"custom_metadata_base64": base64.b64encode(data).decode()}


def segment_row(
    segment: RemoteSegment, newest: int | None = None, deletion: PartitionDelete | None = None
) -> Row:
    """The row of a segment; its age is measured to `newest` (ms)."""
    metadata = segment.metadata
    return REMOTE_SEGMENT(
        **metadata.topic_id_partition._asdict(),
        remote_log_segment_id=metadata.remote_log_segment_id,
        state=metadata.state.name,
        segment_leader_epochs=[list(entry) for entry in metadata.segment_leader_epochs],
        **{name: getattr(metadata, name) for name in AS_IT_IS},
        **custom_metadata(metadata.custom_metadata),
        age_ms=None if newest is None else newest - metadata.event_timestamp,
        deletion_state=deletion.state.name if deletion else None,
        metadata_partition=segment.metadata_partition,
        metadata_offset=segment.last_offset if segment.last_offset >= 0 else None,
    )


def segment_rows(
    fold: Fold, totals: SegmentTotals, topic: str | None = None, partition: int | None = None
) -> Iterator[Row]:
    """The rows of all segments, or of a topic or partition number; `totals` counts them."""
    for columns in _columns(fold, totals, topic, partition):
        yield from REMOTE_SEGMENT.many(**columns)


def _columns(
    fold: Fold, totals: SegmentTotals, topic: str | None, partition: int | None
) -> Iterator[dict[str, Sequence[object]]]:
    """The columns of rows, some thousands at a time."""
    selected = np.array(
        [topic in (None, p.topic) and partition in (None, p.partition) for p in fold.partitions], np.bool_
    )
    deletions = [fold.deletions.get(places) for places in fold.partitions]
    deletion_states = [deletion and deletion.state.name for deletion in deletions]
    for rows in fold.runs(selected):
        table = rows.table
        totals.add(rows, fold.partitions)
        codes = table["partition"].tolist()
        places = [fold.partitions[code] for code in codes]
        yield {
            "topic_id": [place.topic_id for place in places],
            "topic": [place.topic for place in places],
            "partition": [place.partition for place in places],
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


def _spelt(rows: SegmentRows) -> dict[str, list[object]]:
    """The two columns of custom metadata; empty if no row has any."""
    if (rows.table["custom_length"] < 0).all():
        return {}
    spelt = [custom_metadata(data) for data in custom_of(rows)]
    names = ("custom_metadata", "custom_metadata_base64")
    return {name: [keys.get(name) for keys in spelt] for name in names}


def _known(column: NDArray[Any]) -> list[int | None]:
    """The numbers, None for negative ones."""
    numbers: list[int | None] = column.tolist()
    return (
        [None if number is not None and number < 0 else number for number in numbers]
        if (column < 0).any()
        else numbers
    )


def record_row(metadata_partition: int | None, offset: int, record: RemoteLogMetadata) -> Row:
    fields = record._asdict()
    where, custom = fields.pop("topic_id_partition", None), fields.pop("custom_metadata", None)
    epochs = fields.pop("segment_leader_epochs", None)
    return METADATA_RECORD(
        metadata_partition=metadata_partition,
        metadata_offset=offset if offset >= 0 else None,
        type=TYPE_NAMES[type(record)],
        **(where._asdict() if where else {}),
        **{**fields, "state": record.state.name, "layout": str(record.layout)},
        **custom_metadata(custom),
        **({} if epochs is None else {"segment_leader_epochs": [list(entry) for entry in epochs]}),
    )


# Columns of so many rows stay in the processor's cache.
LINES_TOGETHER = 1 << 15


def lines_of_chunk(chunk: ValueChunk, say: Say) -> Iterator[bytes]:
    """Kafka's lines for a chunk, many at a time; a value that is no record is a finding and gets no line."""
    from formats.tier.metadata_lines import KafkaLines

    printed = KafkaLines()
    for first in range(0, len(chunk.offsets), LINES_TOGETHER):
        part = chunk[slice(first, first + LINES_TOGETHER)]
        read = read_metadata_columns(part.data, part.starts, part.sizes)
        yield printed.lines(read, part.metadata_partition, part.offsets, partial(part.records, say))


class SegmentTotals:
    """Segments and bytes by topic id and state."""

    def __init__(self) -> None:
        self._sums: dict[TopicIdPartition, dict[SegmentState, list[int]]] = {}

    def add(self, rows: SegmentRows, partitions: Sequence[TopicIdPartition]) -> None:
        table = rows.table
        pairs = table["partition"] * len(SegmentState) + table["state"]
        counts, sizes = np.bincount(pairs), np.bincount(pairs, table["size_in_bytes"].astype(np.float64))
        for pair in np.flatnonzero(counts).tolist():
            code, state = divmod(pair, len(SegmentState))
            sums = self._sums.setdefault(partitions[code], {}).setdefault(SegmentState(state), [0, 0])
            sums[0] += int(counts[pair])
            sums[1] += int(sizes[pair])

    def rows(self) -> Iterator[Row]:
        """A row for each topic id, then one for all."""
        topics: dict[tuple[str, str], list[dict[SegmentState, list[int]]]] = {}
        for where, sums in self._sums.items():
            topics.setdefault((where.topic, where.topic_id), []).append(sums)
        for (topic, topic_id), partitions in sorted(topics.items()):
            yield _total(topic, topic_id, partitions)
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
