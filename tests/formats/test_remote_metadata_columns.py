"""Metadata values as arrays: the same as the plain reader, whatever the bytes are."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import suppress

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.kafka_text.remote_log_metadata import format_kafka_line
from formats.messages.remote_log_metadata import (
    API_KEYS,
    PartitionDelete,
    RecordLayout,
    RemoteLogMetadata,
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
    read_remote_log_metadata,
    write_remote_log_metadata,
)
from formats.messages.schema import uuid_text
from formats.tier.metadata_columns import (
    MetadataColumns,
    MetadataRead,
    columns_of_records,
    read_epochs,
    read_metadata_columns,
)
from formats.tier.metadata_lines import KafkaLines
from formats.tier.metadata_partitions import PartitionCodes
from kctl.tier.metadata.log import ValueChunk, chunk_of
from tests.conftest import recording, recordings
from tests.kctl.remote.strategies import metadata_records


def columns_of(values: list[bytes | None]) -> tuple[ValueChunk, MetadataRead]:
    chunk = chunk_of(2, enumerate(values, 10))
    return chunk, read_metadata_columns(chunk.data, chunk.starts, chunk.sizes)


def same(columns: MetadataColumns, row: int, record: RemoteLogMetadata) -> None:
    def text(position: int, size: int) -> bytes:
        return columns.data[position : position + size].tobytes()

    assert isinstance(record, SegmentMetadata | SegmentMetadataUpdate)
    where = record.topic_id_partition
    assert uuid_text(text(int(columns.at[row]), 16)) == where.topic_id
    assert uuid_text(text(int(columns.id_position[row]), 16)) == record.remote_log_segment_id
    held = int(columns.custom_length[row])
    custom = None if held < 0 else text(int(columns.custom_position[row]), held)
    layout = (
        RecordLayout.WITH_CUSTOM_METADATA if columns.has_custom[row] else RecordLayout.BEFORE_CUSTOM_METADATA
    )
    assert (custom, layout) == (record.custom_metadata, record.layout)
    for name in ("broker_id", "event_timestamp"):
        assert columns.column(name)[row] == getattr(record, name), name
    assert columns.state[row] == record.state
    assert columns.column("partition")[row] == where.partition and columns.kind == API_KEYS[type(record)]
    if isinstance(record, SegmentMetadata):
        for name in ("start_offset", "end_offset", "max_timestamp"):
            assert columns.column(name)[row] == getattr(record, name), name
        assert columns.size_in_bytes[row] == record.size_in_bytes
        epochs = read_epochs(
            columns.data, columns.epochs_position[row : row + 1], columns.epochs_count[row : row + 1]
        )
        assert (
            tuple(zip(*(column.tolist() for column in epochs), strict=True)) == record.segment_leader_epochs
        )


def check(values: list[bytes | None]) -> int:
    """Every row against the plain reader; how many rows were read in columns."""
    chunk, read = columns_of(values)
    seen = set(read.slow.tolist())
    codes = PartitionCodes()
    for columns in (read.copies, read.updates):
        found = codes.of(columns).tolist()
        for row, (number, code) in enumerate(zip(columns.rows.tolist(), found, strict=True)):
            value = values[number]
            assert value is not None and number not in seen
            seen.add(number)
            try:
                record = read_remote_log_metadata(value)
            except FormatError as error:
                # Names are looked at once a partition, so that columns alone do not know.
                assert "topic is not UTF-8" in str(error) and code == -1
                continue
            same(columns, row, record)
            at, size = int(columns.name_position[row]), int(columns.name_length[row])
            assert chunk.data[at : at + size].tobytes().decode() == record.topic_id_partition.topic
            # One hash may stand for several partitions: then all but one are left to the plain reader.
            assert code == -1 or codes.partitions[code] == record.topic_id_partition
    assert len(seen) == len(values)
    lines = KafkaLines().lines(read, 2, chunk.offsets, lambda rows: singly(values, rows))
    assert lines.decode("utf-8", "surrogateescape") == "".join(
        f"{line}\n" for row, value in enumerate(values) if (line := plain(value, row)) is not None
    )
    return len(values) - len(read.slow)


def singly(values: list[bytes | None], rows: list[int]) -> Iterator[tuple[int, RemoteLogMetadata]]:
    for row in rows:
        with suppress(FormatError):
            yield row, read_remote_log_metadata(values[row] or b"")


def plain(value: bytes | None, row: int) -> str | None:
    try:
        return format_kafka_line(2, row + 10, read_remote_log_metadata(value or b""))
    except FormatError:
        return None


def test_recorded_values_are_read_in_columns_except_partition_deletions() -> None:
    for name in recordings("tier"):
        path = recording(name) / "truth" / "metadata-records.jsonl.gz"
        if not path.exists():
            continue
        values = [
            bytes.fromhex(msgspec.json.decode(line)["value"])
            for line in gzip.decompress(path.read_bytes()).splitlines()
        ]
        records = [read_remote_log_metadata(value) for value in values]
        slow = sum(isinstance(record, PartitionDelete) for record in records)
        # A column one byte off would still be right through the plain reader, and slow.
        assert check(list(values)) == len(values) - slow


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(metadata_records(), max_size=12))
def test_any_records_come_out_as_the_plain_reader_has_them(records: list[RemoteLogMetadata]) -> None:
    check([write_remote_log_metadata(record) for record in records])


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(metadata_records(), max_size=8))
def test_records_as_columns_are_what_columns_read(records: list[RemoteLogMetadata]) -> None:
    for kind in (SegmentMetadata, SegmentMetadataUpdate):
        numbered = [(n, one) for n, one in enumerate(records) if isinstance(one, kind)]
        if numbered:
            columns = columns_of_records([one for _, one in numbered], [n for n, _ in numbered])
            assert columns.rows.tolist() == [n for n, _ in numbered]
            for row, (_, record) in enumerate(numbered):
                same(columns, row, record)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(metadata_records(), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2000), st.integers(0, 7)), max_size=3),
)
def test_flipped_bits_are_read_as_the_plain_reader_reads_them_or_left_to_it(
    records: list[RemoteLogMetadata], flips: list[tuple[int, int, int]]
) -> None:
    values = [bytearray(write_remote_log_metadata(record)) for record in records]
    for number, at, bit in flips:
        value = values[number % len(values)]
        value[at % len(value)] ^= 1 << bit
    check([bytes(value) for value in values])


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=120), max_size=6))
def test_arbitrary_values_are_left_to_the_plain_reader(values: list[bytes | None]) -> None:
    check(list(values))


def test_names_that_differ_under_one_topic_id_each_keep_their_own() -> None:
    def add(topic: str) -> bytes:
        where = TopicIdPartition("LWgrMmVrT0a__7a4SasuPA", topic, 0)
        started = SegmentState.COPY_SEGMENT_STARTED
        return write_remote_log_metadata(
            SegmentMetadata(where, "bCqX9U--S-6U8XUM9II25Q", 0, 9, 1, 5, 6, ((0, 0),), 7, None, started)
        )

    names = ["orders", "orderz", "order", "orders", "o" * 100, "o" * 99 + "p", ""]
    assert check([add(name) for name in names]) == len(names)
    assert check([add("")]) == 1  # no broker names a topic so, and nobody else should be led astray by it


def test_lengths_of_two_bytes_go_to_the_plain_reader() -> None:
    where = TopicIdPartition("LWgrMmVrT0a__7a4SasuPA", "t" * 200, 0)
    record = SegmentMetadataUpdate(
        where, "bCqX9U--S-6U8XUM9II25Q", 1, 2, b"c" * 200, SegmentState.COPY_SEGMENT_FINISHED
    )
    short = record._replace(topic_id_partition=where._replace(topic="t"))
    assert check([write_remote_log_metadata(one) for one in (record, short)]) == 0


def test_no_value_at_all() -> None:
    chunk, read = columns_of([])
    assert not len(read.slow) and not KafkaLines().lines(read, 0, chunk.offsets, lambda _: ())
    assert check([None]) == 0 and isinstance(chunk.data, np.ndarray)
