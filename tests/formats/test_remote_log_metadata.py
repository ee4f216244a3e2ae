"""Metadata records of every shipped variant, and the files that brokers keep of them."""

from __future__ import annotations

import contextlib
import gzip
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from formats.errors import FormatError, MalformedLine
from formats.kafka_text.remote_log_metadata import (
    KipProperties,
    format_kafka_event,
    format_kafka_line,
    format_kip_line,
    parse_kafka_line,
)
from formats.messages.remote_log_metadata import (
    PartitionDelete,
    PartitionDeleteState,
    RecordLayout,
    RemoteLogMetadata,
    SegmentMetadata,
    SegmentMetadataSnapshot,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
    read_remote_log_metadata,
    write_remote_log_metadata,
)
from formats.tier.broker_files import (
    CachedIndex,
    RemoteLogSnapshot,
    format_cached_index,
    format_committed_offsets,
    parse_cached_index,
    parse_committed_offsets,
    read_remote_log_snapshot,
    write_remote_log_snapshot,
)
from tests.conftest import recording, recordings

TIP = TopicIdPartition("LWgrMmVrT0a__7a4SasuPA", "foo", 0)
ID = "bCqX9U--S-6U8XUM9II25Q"
EPOCHS = ((0, 0), (1, 20), (2, 80))
ADD = SegmentMetadata(TIP, ID, 0, 100, 1, -1, 123, EPOCHS, 1024, bytes(10), SegmentState.COPY_SEGMENT_STARTED)
OLD = ADD._replace(custom_metadata=None, layout=RecordLayout.BEFORE_CUSTOM_METADATA)
UPDATE = SegmentMetadataUpdate(TIP, ID, 1, 456, None, SegmentState.COPY_SEGMENT_FINISHED)
DELETE = PartitionDelete(TIP, 0, 0, PartitionDeleteState.DELETE_PARTITION_MARKED)
SNAPSHOT = SegmentMetadataSnapshot(
    ID, 0, 100, 1, -1, 123, EPOCHS, 1024, None, SegmentState.COPY_SEGMENT_FINISHED
)
COMMON = "04666f6f2d682b32656b4f46bfffb6b849ab2e3c00000000006c2a97f54fbe4bee94f1750cf48236e500"
COPY = "0000000000000000000000000000006400000001ffffffffffffffff000000000000007b0400000000000000000000000000000000010000000000000014000000000200000000000000500000000400"
# Written by the serializer of Kafka 3.9; the old layout is that of 3.5.
WRITTEN = [
    (ADD, f"010000{COMMON}{COPY}0b000000000000000000000000"),
    (ADD._replace(custom_metadata=None), f"010000{COMMON}{COPY}000000"),
    (OLD, f"010000{COMMON}{COPY}0000"),
    (UPDATE, f"010100{COMMON}0000000100000000000001c8000100"),
    (DELETE, "01020004666f6f2d682b32656b4f46bfffb6b849ab2e3c00000000000000000000000000000000000000"),
    (SNAPSHOT, f"0103006c2a97f54fbe4bee94f1750cf48236e5{COPY}000100"),
]


@pytest.mark.parametrize(("record", "hex"), WRITTEN)
def test_kafkas_bytes_are_read_and_written(record: RemoteLogMetadata, hex: str) -> None:
    data = bytes.fromhex(hex)
    assert write_remote_log_metadata(record) == data
    assert read_remote_log_metadata(data) == record


def _recorded(name: str) -> list[dict[str, Any]]:
    text = gzip.decompress((recording(name) / "truth" / "metadata-records.jsonl.gz").read_bytes())
    return [msgspec.json.decode(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", [n for n in recordings("tier") if "f-damage" not in n])
def test_recorded_values_survive_the_round_trip(name: str) -> None:
    for row in _recorded(name):
        data = bytes.fromhex(row["value"])
        record = read_remote_log_metadata(data)
        assert write_remote_log_metadata(record) == data
        said = row["decoded"]
        assert (record.state.name, record.event_timestamp, record.broker_id) == (
            said["state"],
            said["eventTs"],
            said["broker"],
        )
        if said["apiKey"] != 2:
            assert record.layout == row["layout"]


def test_the_layout_before_custom_metadata_is_one_byte_shorter() -> None:
    new = write_remote_log_metadata(ADD._replace(custom_metadata=None))
    assert len(write_remote_log_metadata(OLD)) == len(new) - 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: b"\0" + d[1:], "frame version is 0"),
        (lambda d: d[:1] + b"\4" + d[2:], "unknown record type 4"),
        (lambda d: d[:2] + b"\1" + d[3:], "has no version 1"),
        (lambda d: d + b"\0", "garbage after the record"),
        (lambda d: d[:-3], "are left"),
        (lambda d: d[:-2] + b"\7\0", "unknown state 7"),
        (lambda d: b"", "varint is cut off"),
    ],
)
def test_what_no_broker_writes_is_refused(change: Any, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        read_remote_log_metadata(change(write_remote_log_metadata(ADD)))


def test_impossible_copies_are_refused() -> None:
    for bad in (
        ADD._replace(start_offset=-1),
        ADD._replace(end_offset=-1),
        ADD._replace(segment_leader_epochs=()),
    ):
        with pytest.raises(FormatError):
            read_remote_log_metadata(write_remote_log_metadata(bad))


def test_unknown_tagged_fields_are_left_out_in_every_struct() -> None:
    data = bytes.fromhex(WRITTEN[3][1])
    # One unknown field in the partition, one in the segment's id, one at the end.
    partition_end = 3 + 4 + 16 + 4
    tagged = (
        data[:partition_end]
        + b"\x01\x05\x02hi"
        + data[partition_end + 1 : partition_end + 17]
        + b"\x01\x00\x00"
        + data[partition_end + 18 : -1]
        + b"\x01\x09\x01x"
    )
    assert read_remote_log_metadata(tagged) == UPDATE


def test_epochs_are_sorted_as_kafkas_map_sorts_them() -> None:
    shuffled = ADD._replace(segment_leader_epochs=(EPOCHS[2], EPOCHS[0], EPOCHS[1]))
    read = read_remote_log_metadata(write_remote_log_metadata(shuffled))
    assert isinstance(read, SegmentMetadata) and read.segment_leader_epochs == EPOCHS


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_arbitrary_values_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        read_remote_log_metadata(data)


@settings(deadline=None)
@given(st.integers(0, 8 * 137 - 1))
@example(858)  # a tagged field of one number several times
def test_one_flipped_bit_is_read_or_refused(bit: int) -> None:
    data = bytearray(write_remote_log_metadata(ADD))
    data[bit // 8] ^= 1 << bit % 8
    try:
        record = read_remote_log_metadata(bytes(data))
    except FormatError:
        return
    assert read_remote_log_metadata(write_remote_log_metadata(record)) == record


# --- text ---------------------------------------------------------------------------------------------


def test_kafkas_text_of_each_type() -> None:
    segment = "RemoteLogSegmentId{topicIdPartition=LWgrMmVrT0a__7a4SasuPA:foo-0, id=bCqX9U--S-6U8XUM9II25Q}"
    epochs = "segmentLeaderEpochs={0=0, 1=20, 2=80}, segmentSizeInBytes=1024"
    assert format_kafka_event(ADD) == (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={segment}, startOffset=0, endOffset=100, brokerId=1,"
        f" maxTimestampMs=-1, eventTimestampMs=123, {epochs}, customMetadata=Optional[CustomMetadata{{10 bytes}}],"
        " state=COPY_SEGMENT_STARTED}"
    )
    assert format_kafka_event(OLD).endswith(f"{epochs}, state=COPY_SEGMENT_STARTED}}")
    assert format_kafka_event(UPDATE) == (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={segment}, customMetadata=Optional.empty,"
        " state=COPY_SEGMENT_FINISHED, eventTimestampMs=456, brokerId=1}"
    )
    assert format_kafka_event(DELETE) == (
        "RemotePartitionDeleteMetadata{topicPartition=LWgrMmVrT0a__7a4SasuPA:foo-0,"
        " state=DELETE_PARTITION_MARKED, eventTimestampMs=0, brokerId=0}"
    )
    assert format_kafka_event(SNAPSHOT) == (
        "RemoteLogSegmentMetadataSnapshot{segmentId=bCqX9U--S-6U8XUM9II25Q, startOffset=0, endOffset=100,"
        f" maxTimestampMs=-1, {epochs}, customMetadata=Optional.empty, state=COPY_SEGMENT_FINISHED}}"
    )


@pytest.mark.parametrize("record", [ADD._replace(custom_metadata=None), OLD, UPDATE, DELETE])
def test_kafkas_lines_are_read_back(record: RemoteLogMetadata) -> None:
    assert parse_kafka_line(format_kafka_line(3, 41, record)) == (3, 41, record)


@pytest.mark.parametrize(
    "line",
    ["", "partition: 1", "partition: 1, offset: 2, value: null", "partition: 1, offset: 2, value: Foo{}"],
)
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(FormatError):
        parse_kafka_line(line)


def test_a_line_with_an_unknown_state_is_refused() -> None:
    line = format_kafka_line(3, 41, UPDATE).replace("COPY_SEGMENT_FINISHED", "COPY_SEGMENT_LOST")
    with pytest.raises(FormatError, match="unknown state"):
        parse_kafka_line(line)


def test_the_kips_text_and_its_properties() -> None:
    segment = "{id:bCqX9U--S-6U8XUM9II25Q,topicId:LWgrMmVrT0a__7a4SasuPA,topicName:foo,partition:0}"
    assert format_kip_line(3, 41, ADD) == (
        "partition:3,message-offset:41,type:RemoteLogSegmentMetadata,version:0,event-value:{remote-log-segment-id:"
        f"{segment},start-offset:0,end-offset:100,broker-id:1,remote-log-segment-state:COPY_SEGMENT_STARTED}}"
    )
    bare = KipProperties(
        print_partition=False,
        print_message_offset=False,
        print_version=False,
        print_all_event_value_fields=True,
        separator="\t",
    )
    assert format_kip_line(3, 41, ADD, bare) == (
        f"type:RemoteLogSegmentMetadata\tevent-value:{{remote-log-segment-id:{segment},start-offset:0,end-offset:100,"
        "broker-id:1,max-timestamp:-1,segment-leader-epochs:{0:0,1:20,2:80},segment-size-in-bytes:1024,"
        "event-timestamp:123,remote-log-segment-state:COPY_SEGMENT_STARTED}"
    )
    assert "type:DeletePartitionState" in format_kip_line(3, 41, DELETE)


# --- files --------------------------------------------------------------------------------------------


def test_recorded_snapshot_files_are_read_and_written_byte_for_byte() -> None:
    paths = sorted(recording("tier/h-kafka-35").rglob("remote_log_snapshot"))
    read = {path: read_remote_log_snapshot(path.read_bytes()) for path in paths}
    assert any(read.values())
    for path, snapshot in read.items():
        if snapshot is not None:
            assert write_remote_log_snapshot(snapshot) == path.read_bytes()
            assert all(one.layout is RecordLayout.BEFORE_CUSTOM_METADATA for one in snapshot.segments)


def test_an_empty_snapshot_file_stands_for_none() -> None:
    assert read_remote_log_snapshot(b"") is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: b"\0\1" + d[2:], "version is 1"),
        (lambda d: d[:-1], "are left"),
        (lambda d: d + b"\0", "1 byte left after 2 entries"),
        (lambda d: d[:14] + b"\0\0\0\3" + d[18:], "bytes are promised"),
        (lambda d: d[:18] + b"\xff\xff\xff\xff" + d[22:], "negative"),
    ],
)
def test_damaged_snapshot_files_are_refused(change: Any, why: str) -> None:
    data = write_remote_log_snapshot(RemoteLogSnapshot(4, 20, (SNAPSHOT, SNAPSHOT)))
    with pytest.raises(FormatError, match=why):
        read_remote_log_snapshot(change(data))


def test_a_snapshot_holds_nothing_but_snapshot_entries() -> None:
    value = write_remote_log_metadata(UPDATE)
    data = bytes(14) + b"\0\0\0\1" + len(value).to_bytes(4, "big") + value
    with pytest.raises(FormatError, match="an entry is a record of type 1"):
        read_remote_log_snapshot(data)


def test_recorded_committed_offsets() -> None:
    paths = sorted(recording("tier/h-kafka-35").rglob("_rlmm_committed_offsets"))
    assert paths
    for path in paths:
        offsets = parse_committed_offsets(path.read_text())
        assert format_committed_offsets(offsets) == path.read_text()


@pytest.mark.parametrize("text", ["", "1\n0\n", "0\n2\n1 1\n", "0\nx\n", "0\n1\n1\n", "0\n1\na 1\n"])
def test_malformed_committed_offsets_name_the_line(text: str) -> None:
    with pytest.raises(MalformedLine):
        parse_committed_offsets(text)


def test_names_in_the_index_cache() -> None:
    name = "217_bCqX9U__S-6U8XUM9II25Q.timeindex"
    index = CachedIndex(217, "bCqX9U__S-6U8XUM9II25Q", ".timeindex")
    assert parse_cached_index(name) == index and format_cached_index(index) == name
    assert parse_cached_index(name + ".tmp") == index._replace(left_over=".tmp")
    assert parse_cached_index("00000000000000000217.timeindex") is None
