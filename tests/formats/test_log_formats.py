"""Entries of every magic and codec, byte by byte, and what they say."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.compression import Codec, CompressionError, decompress
from formats.compression.writers import compress
from formats.errors import FormatError
from formats.log import control_records, message_set
from formats.log.control_records import ControlType
from formats.log.record_batch import BatchHeader, Record, read_header, seal, write_batch
from formats.log.records import LogEntry, first_offset_of, records_of, walk
from tests.log_examples import EXAMPLES

T = 1_500_000_000_000


def entry(data: bytes) -> LogEntry:
    (found,) = walk(data)
    assert isinstance(found, LogEntry)
    assert found.crc_valid
    return found


def old(offset: int, timestamp: int, key: bytes | None, value: bytes | None, crc: int) -> Record:
    return Record(offset, timestamp, key, value, crc=crc, crc_valid=True)


CASES = {
    "E1": [old(0, -1, None, b"hi", 0xFD6EBDDB)],
    "E2": [old(1, T, b"k", b"v", 0xBF070C1C)],
    "E3": [old(2, T, b"a", b"1", 4129618761), old(3, T + 5, b"b", None, 2592260899)],
    "E4": [old(10, T, b"k", b"v", 0xBF070C1C), old(11, T + 1, None, b"b", 0xC62D6E56)],
    "E6": [Record(4, T, b"k1", b"v1", ((b"h", b"x"), (b"n", None))), Record(5, T + 7, b"k2", None)],
    "E8": [],
    "E9": [Record(12, T, b"k3", None)],
    "E10": [Record(13, T + 100, b"x", b"y"), Record(14, T + 100, b"x", b"z")],
}


@pytest.mark.parametrize(("name", "records"), CASES.items(), ids=CASES)
def test_the_records_of_an_entry(name: str, records: list[Record]) -> None:
    assert records_of(entry(EXAMPLES[name])) == records


def test_magic_0_offsets_are_absolute_and_its_lz4_frame_has_the_old_checksum() -> None:
    found = records_of(entry(EXAMPLES["E5"]))
    assert [(r.offset, r.timestamp, r.key, len(r.value or b"")) for r in found] == [
        (0, -1, b"k", 32),
        (1, -1, None, 1),
    ]
    assert all(r.crc_valid for r in found)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_the_same_records_in_every_codec(codec: Codec) -> None:
    body = decompress(codec, EXAMPLES[f"E11.{codec.name.lower()}"], magic=2, limit=1000)
    assert body == bytes.fromhex("4e000000026b40" + "61" * 32 + "000e00020201026200")
    header = BatchHeader(7, 0, 0, 2, 0, int(codec), 1, T, T + 1, -1, -1, -1, 2)
    batch = seal(header, EXAMPLES[f"E11.{codec.name.lower()}"])
    assert records_of(entry(batch)) == [
        Record(7, T, b"k", b"a" * 32),
        Record(8, T + 1, None, b"b"),
    ]


def test_header_fields() -> None:
    marker = read_header(EXAMPLES["E7"])
    assert (marker.is_control, marker.is_transactional, marker.producer_id, marker.last_sequence) == (
        True,
        True,
        1000,
        -1,
    )
    emptied = read_header(EXAMPLES["E8"])
    assert (emptied.last_offset, emptied.base_sequence, emptied.last_sequence) == (11, 10, 14)
    assert (emptied.base_timestamp, emptied.delete_horizon_ms) == (-1, None)
    assert read_header(EXAMPLES["E9"]).delete_horizon_ms == 1_600_000_000_000
    assert read_header(EXAMPLES["E10"]).is_log_append_time


def test_sequences_wrap() -> None:
    header = read_header(EXAMPLES["E8"])._replace(base_sequence=0x7FFFFFFF, last_offset_delta=1)
    assert header.last_sequence == 0


def test_end_marker() -> None:
    (record,) = records_of(entry(EXAMPLES["E7"]))
    assert control_records.read_key(record.key).name == "COMMIT"
    assert control_records.read_marker(record.value).coordinator_epoch == 7
    assert control_records.write_marker(ControlType.COMMIT, 7) == (record.key, record.value)


def test_leader_change_and_metadata() -> None:
    first, second = walk(EXAMPLES["E13"])
    assert isinstance(first, LogEntry) and isinstance(second, LogEntry)
    (change,) = records_of(first)
    assert control_records.fields_of(change.key, change.value) == {
        "type": 2,
        "name": "LEADER_CHANGE",
        "value": {
            "version": 0,
            "leaderId": 1,
            "voters": [{"voterId": 1}, {"voterId": 2}],
            "grantingVoters": [{"voterId": 1}],
        },
    }
    assert [len(record.value or b"") for record in records_of(second)] == [24, 4]


def test_leader_change_of_the_preview_has_the_number_of_a_snapshot_header() -> None:
    key = struct.pack(">hh", 0, 3)
    preview = struct.pack(">i", 1) + b"\2" + struct.pack(">i", 1) + b"\0" + b"\1" + b"\0"
    assert control_records.fields_of(key, preview)["name"] == "LEADER_CHANGE"
    header = struct.pack(">hqb", 0, 77, 0)
    assert control_records.fields_of(key, header) == {
        "type": 3,
        "name": "SNAPSHOT_HEADER",
        "value": {"version": 0, "lastContainedLogTimestamp": 77},
    }


VOTERS = (
    struct.pack(">h", 0)
    + b"\2"  # one voter
    + struct.pack(">i", 5)
    + bytes(15)
    + b"\7"
    + b"\2"  # one endpoint
    + b"\5CTRL\2h"
    + struct.pack(">H", 40000)
    + b"\0"
    + struct.pack(">hh", 0, 1)
    + b"\0\0\0"
)


def test_voters() -> None:
    assert control_records.read_value(6, VOTERS)["voters"] == [
        {
            "voterId": 5,
            "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAABw",
            "endpoints": [{"name": "CTRL", "host": "h", "port": 40000}],
            "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        }
    ]


@pytest.mark.parametrize("cut", range(len(VOTERS)))
def test_a_short_control_value_is_a_format_error(cut: int) -> None:
    with pytest.raises(FormatError):
        control_records.read_value(6, VOTERS[:cut])


@given(st.binary(max_size=60), st.integers(0, 8))
def test_control_records_of_any_bytes_raise_nothing_else(value: bytes, type_: int) -> None:
    try:
        control_records.fields_of(struct.pack(">hh", 0, type_), value)
    except FormatError as error:
        assert 0 <= error.position <= len(value)


# --- wrappers of magic 1 and 0 ----------------------------------------------------------------------------


def wrapper(magic: int, offset: int, inner: bytes, *, attributes: int = 1, timestamp: int = T) -> bytes:
    value = compress(Codec.GZIP, inner, magic=magic)
    return message_set.write_message(magic, offset, None, value, timestamp=timestamp, attributes=attributes)


def test_gaps_left_by_compaction_count_from_the_last_inner_offset() -> None:
    inner = b"".join(message_set.write_message(1, n, b"k", b"v", timestamp=T + n) for n in (2, 5))
    assert [r.offset for r in records_of(entry(wrapper(1, 105, inner)))] == [102, 105]


def test_outer_offset_0_is_a_base_of_0() -> None:
    inner = b"".join(message_set.write_message(1, n, b"k", b"v") for n in (0, 1))
    assert [r.offset for r in records_of(entry(wrapper(1, 0, inner)))] == [0, 1]


def test_log_append_time_of_the_wrapper_counts() -> None:
    inner = message_set.write_message(1, 0, b"k", b"v", timestamp=5)
    assert [r.timestamp for r in records_of(entry(wrapper(1, 7, inner, attributes=9, timestamp=99)))] == [99]


def test_inner_magic_may_differ() -> None:
    inner = message_set.write_message(0, 0, b"k", b"v") + message_set.write_message(
        1, 1, b"k", b"w", timestamp=4
    )
    assert [(r.offset, r.timestamp) for r in records_of(entry(wrapper(1, 9, inner)))] == [(8, -1), (9, 4)]


def test_a_short_last_inner_message_ends_the_set() -> None:
    inner = message_set.write_message(1, 0, b"k", b"v") + b"\0" * 5
    assert len(records_of(entry(wrapper(1, 3, inner)))) == 1


BROKEN_WRAPPERS = {
    "below its last inner offset": wrapper(1, 1, message_set.write_message(1, 5, b"k", b"v")),
    "no inner message": wrapper(1, 1, b""),
    "inner size below 14": wrapper(1, 1, struct.pack(">qi", 0, 3) + b"abc"),
    "inner compressed": wrapper(1, 1, message_set.write_message(1, 0, b"k", b"v", attributes=1)),
    "no value": message_set.write_message(1, 3, None, None, attributes=1),
    "zstd": message_set.write_message(1, 3, None, b"x", attributes=4),
    "unknown codec": message_set.write_message(1, 3, None, b"x", attributes=7),
}


@pytest.mark.parametrize("data", BROKEN_WRAPPERS.values(), ids=BROKEN_WRAPPERS)
def test_a_broken_wrapper_is_a_format_error(data: bytes) -> None:
    with pytest.raises(FormatError):
        records_of(entry(data))


def test_first_offset_of_a_wrapper_needs_its_set() -> None:
    assert first_offset_of(entry(EXAMPLES["E3"])) == 2
    assert first_offset_of(entry(EXAMPLES["E6"])) == 4


# --- what a batch says of itself and is not true ----------------------------------------------------------

GOOD = [Record(10, T, b"k", b"v"), Record(11, T, None, None)]


def rewritten(**changes: int) -> bytes:
    batch = write_batch(GOOD)
    return seal(read_header(batch)._replace(**changes), batch[61:])


LIES = {
    "count too high": (rewritten(records_count=3), "header promises 3"),
    "count too low": (rewritten(records_count=1), "follow the last of 1"),
    "count negative": (rewritten(records_count=-1), "record count is -1"),
    "unknown codec": (rewritten(attributes=7), "codec"),
    "record larger than the batch": (
        seal(read_header(write_batch(GOOD)), b"\x7e" + write_batch(GOOD)[62:]),
        "record of 63 bytes",
    ),
    "varint without end": (seal(read_header(write_batch(GOOD)), b"\xff" * 12), "longer than 5"),
    "header count above the record": (
        seal(read_header(write_batch(GOOD[:1])), b"\x10\0\0\0\x02k\x02v\x7e"),
        "63 headers",
    ),
}


@pytest.mark.parametrize(("data", "what"), LIES.values(), ids=LIES)
def test_a_batch_that_lies_is_a_format_error(data: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        records_of(entry(data))


def test_decompression_stops_at_the_limit() -> None:
    batch = write_batch([Record(0, T, None, bytes(1 << 20))], codec=Codec.GZIP)
    with pytest.raises(CompressionError):
        records_of(entry(batch), limit=1 << 10)


headers = st.lists(st.tuples(st.binary(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)
any_records = st.lists(
    st.builds(
        Record,
        offset=st.integers(0, 1000),
        timestamp=st.integers(-1, 1 << 45),
        key=st.none() | st.binary(max_size=200),
        value=st.none() | st.binary(max_size=200),
        headers=headers,
        sequence=st.just(-1),
        crc=st.none(),
        crc_valid=st.none(),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@given(any_records, st.sampled_from(Codec))
def test_what_was_written_is_read(records: list[Record], codec: Codec) -> None:
    batch = write_batch(records, codec=codec, last_offset_delta=1000, base_offset=0)
    assert records_of(entry(batch)) == records


@pytest.mark.slow
@given(any_records, st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4]), st.sampled_from([0, 1]))
def test_wrappers_that_were_written_are_read(records: list[Record], codec: Codec, magic: int) -> None:
    records = [r._replace(offset=n, timestamp=r.timestamp if magic else -1) for n, r in enumerate(records)]
    data = message_set.write_wrapper(magic, records, codec=codec)
    found = records_of(entry(data))
    assert [(r.offset, r.timestamp, r.key, r.value) for r in found] == [
        (r.offset, r.timestamp, r.key, r.value) for r in records
    ]
