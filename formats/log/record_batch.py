"""Record batches of magic 2, the on-disk and on-wire form since Kafka 0.11.

The CRC is CRC-32C over everything from `attributes` to the end of the batch: `base_offset`, `batch_length`,
`partition_leader_epoch` and `magic` are not covered. `records_count` is what is there; `last_offset_delta`
is what was produced, and survives compaction.

Source: clients/src/main/java/org/apache/kafka/common/record/{DefaultRecordBatch,DefaultRecord}.java @ 3.9.0-rc3
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from formats.binary.crc import crc32c
from formats.binary.layout import Bytes, int8, int16, int32, int64, layout, offset_of, read, uint32, write
from formats.binary.varint import read_varint, read_varlong, write_varint
from formats.errors import FormatError, Truncated
from formats.words import counted

CODEC_MASK = 0x07
TIMESTAMP_TYPE = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
NO_SEQUENCE = -1

Headers = tuple[tuple[bytes, bytes | None], ...]


class BatchHeader(NamedTuple):
    """The first 61 bytes. `base_timestamp` was called FirstTimestamp up to 3.1."""

    base_offset: int64
    batch_length: int32  # bytes after this field
    partition_leader_epoch: int32
    magic: int8
    crc: uint32
    attributes: int16
    last_offset_delta: int32
    base_timestamp: int64  # the delete horizon where attribute bit 6 is set
    max_timestamp: int64
    producer_id: int64
    producer_epoch: int16
    base_sequence: int32
    records_count: int32

    @property
    def last_offset(self) -> int:
        return _long(self.base_offset + self.last_offset_delta)

    @property
    def size_in_bytes(self) -> int:
        return LOG_OVERHEAD + self.batch_length

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & TIMESTAMP_TYPE)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones of this batch may go (KAFKA-8522); None where the batch has no horizon."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record as produced; -1 without one."""
        return sequence_at(self.base_sequence, self.last_offset_delta)


LOG_OVERHEAD = 12
HEADER_SIZE = layout(BatchHeader).size
LARGEST_COPIED = 1 << 20  # bytes of a body; from a copy small records are read faster
LARGEST_RECORD = 64 << 20  # bytes of one that is read from a body in pieces
CRC_STARTS_AT = offset_of(BatchHeader, "attributes")
MAGIC_AT = offset_of(BatchHeader, "magic")
MIN_LENGTH = HEADER_SIZE - LOG_OVERHEAD


class Record(NamedTuple):
    """One record of any magic, offsets and timestamps absolute. `crc` and `crc_valid` are of magic 0 and 1."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    sequence: int = NO_SEQUENCE
    crc: int | None = None
    crc_valid: bool | None = None


def sequence_at(base_sequence: int, offset_delta: int) -> int:
    """The sequence of a record: from 2^31-1 it goes on at 0; -1 where the batch has none."""
    return (base_sequence + offset_delta) & 0x7FFFFFFF if base_sequence >= 0 else NO_SEQUENCE


def read_header(data: Bytes, position: int = 0) -> BatchHeader:
    """The header at position; `Truncated` where fewer than 61 bytes are left."""
    return read(BatchHeader, data, position)


def read_records(header: BatchHeader, body: Bytes) -> Iterator[Record]:
    """The records of a batch from its decompressed body, as Kafka reads them.

    `FormatError` (position in the body) at the first record that is not one, after the good ones before it:
    a size that its fields do not fill, too few records for the count, or bytes after the last.
    """
    data = bytes(body) if len(body) <= LARGEST_COPIED else body
    position = 0
    if header.records_count < 0:
        raise FormatError(f"record count is {header.records_count}", 0)
    for number in range(header.records_count):
        if position >= len(data):
            raise Truncated(
                f"the batch ends after {counted(number, 'record')}, its header promises {header.records_count}",
                position,
            )
        record, position = read_record(header, data, position)
        yield record
    if position < len(data):
        raise FormatError(
            f"{len(data) - position} bytes follow the last of {counted(header.records_count, 'record')}",
            position,
        )


def read_records_in_pieces(header: BatchHeader, pieces: Iterable[Bytes]) -> Iterator[Record]:
    """The same records of a body that comes in pieces, a few of them in memory; `TooLarge` as of `whole_records`."""
    data, number = bytearray(), 0
    needed = place = 0  # the place of what is held in the body
    for piece in pieces:
        data += piece
        if len(data) < needed:
            continue
        starts, end, needed = whole_records(data, header.records_count - number)
        view = memoryview(data)
        records = [read_record(header, view, start)[0] for start in starts]
        number, place, data = number + len(starts), place + end, data[end:]
        del view
        yield from records
        if number == header.records_count and data:
            raise FormatError(f"bytes follow the last of {counted(header.records_count, 'record')}", place)
    if number < header.records_count:
        problem = (
            f"the batch ends after {counted(number, 'record')}, its header promises {header.records_count}"
        )
        raise Truncated(problem, place)


MOST_AHEAD = 1 << 14  # records of one size that are looked for at once


def whole_records(data: bytes | bytearray, at_most: int) -> tuple[list[int], int, int]:
    """Where whole records begin, where the last of them ends, and how many bytes the next one needs from there.

    `TooLarge` where that is more than `LARGEST_RECORD`.
    """
    starts: list[int] = []
    at, size, ahead = 0, len(data), 1
    while len(starts) < at_most:
        first = data[at] if at < size else 1
        if not first & 0x81:
            # Twenty million records of seven bytes come in a few hundred KiB: those of one size are taken together.
            step = 1 + (first >> 1)
            first_bytes = data[at : at + step * ahead : step]
            run = len(first_bytes) - len(first_bytes.lstrip(first_bytes[:1]))
            ahead = min(2 * ahead, MOST_AHEAD) if run == ahead else 1
            run = min(run, (size - at) // step, at_most - len(starts))
            if not run:
                return starts, at, step
            starts.extend(range(at, at + run * step, step))
            at += run * step
            continue
        if size - at < 5 and (at == size or data[-1] & 0x80):
            return starts, at, 0
        length, start = read_varint(data, at)
        if length < 0:
            raise FormatError(f"record of {length} bytes", at)
        if length > LARGEST_RECORD:
            from formats.compression import TooLarge

            raise TooLarge(LARGEST_RECORD, at)
        if start + length > size:
            return starts, at, start + length - at
        starts.append(at)
        at = start + length
    return starts, at, 0


def read_record(header: BatchHeader, data: Bytes, position: int) -> tuple[Record, int]:
    """The record at position and where the next one starts."""
    size, start = read_varint(data, position)
    end = start + size
    if size < 0 or end > len(data):
        raise FormatError(f"record of {size} bytes where {len(data) - start} are left", position)
    timestamp_delta, at = read_varlong(data, start + 1)
    offset_delta, at = read_varint(data, at)
    key, at = _nullable(data, at, end)
    value, at = _nullable(data, at, end)
    headers, at = _headers(data, at, end)
    if at != end:
        raise FormatError(f"record says {size} bytes, its fields take {at - start}", position)
    timestamp = (
        header.max_timestamp if header.is_log_append_time else _long(header.base_timestamp + timestamp_delta)
    )
    sequence = sequence_at(header.base_sequence, offset_delta)
    return Record(_long(header.base_offset + offset_delta), timestamp, key, value, headers, sequence), end


def _long(value: int) -> int:
    """A sum as Java's `long` has it (DefaultRecord.readFrom @ 3.9.0): from 2^63 on it goes on below zero."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _nullable(data: Bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, start = read_varint(data, position)
    if size < 0:
        return None, start
    if start + size > end:
        raise FormatError(f"field of {size} bytes where the record has {max(0, end - start)} left", position)
    return bytes(data[start : start + size]), start + size


def _headers(data: Bytes, position: int, end: int) -> tuple[Headers, int]:
    count, at = read_varint(data, position)
    if not 0 <= count <= max(0, end - at):
        raise FormatError(f"{count} headers where the record has {max(0, end - at)} bytes left", position)
    headers = []
    for _ in range(count):
        name, after = _nullable(data, at, end)
        if name is None:
            raise FormatError("header without a key", at)
        value, at = _nullable(data, after, end)
        headers.append((name, value))
    return tuple(headers), at


def write_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """The bytes of a record with its deltas against the batch."""
    body = bytearray(b"\0")
    body += write_varint(record.timestamp - base_timestamp) + write_varint(record.offset - base_offset)
    body += _written(record.key) + _written(record.value) + write_varint(len(record.headers))
    for key, value in record.headers:
        body += _written(key) + _written(value)
    return write_varint(len(body)) + bytes(body)


def _written(value: bytes | None) -> bytes:
    return write_varint(-1) if value is None else write_varint(len(value)) + value


def write_records(records: Iterable[Record], base_offset: int, base_timestamp: int) -> bytes:
    """The uncompressed body of a batch."""
    return b"".join(write_record(record, base_offset, base_timestamp) for record in records)


def seal(header: BatchHeader, body: Bytes) -> bytes:
    """The batch with its length and CRC set right for this body."""
    sized = header._replace(batch_length=MIN_LENGTH + len(body))
    covered = write(sized)[CRC_STARTS_AT:] + bytes(body)
    return write(sized._replace(crc=crc32c(covered))) + bytes(body)


def write_batch(
    records: Sequence[Record],
    *,
    codec: int = 0,
    base_offset: int | None = None,
    last_offset_delta: int | None = None,
    partition_leader_epoch: int = 0,
    attributes: int = 0,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """A batch as a producer or broker writes it; what is not given follows from the records.

    `attributes` holds the flags besides the codec. Without records it is the empty batch that the cleaner
    leaves: base timestamp -1, never compressed.
    """
    base = base_offset if base_offset is not None else records[0].offset
    first = base_timestamp if base_timestamp is not None else (records[0].timestamp if records else -1)
    body = write_records(records, base, first)
    if codec and records:
        from formats.compression.writers import compress

        body = compress(codec, body, magic=2)
    last = records[-1].offset - base if records else 0
    latest = max((record.timestamp for record in records), default=-1)
    header = BatchHeader(
        base_offset=base,
        batch_length=0,
        partition_leader_epoch=partition_leader_epoch,
        magic=2,
        crc=0,
        attributes=attributes | (codec if records else 0),
        last_offset_delta=last if last_offset_delta is None else last_offset_delta,
        base_timestamp=first,
        max_timestamp=latest if max_timestamp is None else max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(records),
    )
    return seal(header, body)
