"""Messages of magic 0 and 1, written up to Kafka 0.10, alone or many compressed into one wrapper.

A wrapper's offset is that of its *last* inner message. Inner offsets are absolute in magic 0 and relative
in magic 1, so the whole set must be decompressed before the first absolute offset is known. The wrapper's
magic decides how offsets are read, the inner one whether there is a timestamp: old cleaners wrote sets
that mix both (KAFKA-4298).

Source: clients/src/main/java/org/apache/kafka/common/record/{LegacyRecord,AbstractLegacyRecordBatch}.java @ 3.9.0-rc3
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from formats.binary.crc import crc32
from formats.binary.layout import Bytes, int8, int32, int64, layout, offset_of, read, uint32, write
from formats.errors import FormatError
from formats.log.record_batch import CODEC_MASK, LOG_OVERHEAD, TIMESTAMP_TYPE, Record

NO_TIMESTAMP = -1
ZSTD = 4


class MessageHeader(NamedTuple):
    """The first 18 bytes of a message of either magic; a timestamp follows in magic 1."""

    offset: int64
    message_size: int32  # bytes after this field
    crc: uint32
    magic: int8
    attributes: int8

    @property
    def size_in_bytes(self) -> int:
        return LOG_OVERHEAD + self.message_size

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.magic == 1 and bool(self.attributes & TIMESTAMP_TYPE)

    @property
    def fields_at(self) -> int:
        """Where the key length stands, counted from the entry's start."""
        return TIMESTAMP_AT + (8 if self.magic >= 1 else 0)


class _Size(NamedTuple):
    value: int32


class _Timestamp(NamedTuple):
    value: int64


CRC_STARTS_AT = offset_of(MessageHeader, "magic")
TIMESTAMP_AT = layout(MessageHeader).size
# Kafka's reader asks 14 bytes of every magic; a message of magic 1 without its timestamp is caught here.
MIN_SIZES = {0: 14, 1: 22}


class StoredMessage(NamedTuple):
    """One entry as stored: for a wrapper the value is the compressed set, the offset that of the last in it."""

    header: MessageHeader
    timestamp: int  # -1 in magic 0
    key: bytes | None
    value: bytes | None


def read_message(data: Bytes, position: int = 0) -> StoredMessage:
    """The message at position; `FormatError` where its sizes do not fill its entry exactly."""
    header = read(MessageHeader, data, position)
    end = position + header.size_in_bytes
    if header.message_size < MIN_SIZES.get(header.magic, 14) or end > len(data):
        raise FormatError(f"message of {header.message_size} bytes", position)
    timestamp = timestamp_of(header, memoryview(data)[position:end])
    key, at = _field(data, position + header.fields_at, end)
    value, at = _field(data, at, end)
    if at != end:
        raise FormatError(f"{end - at} bytes follow the value of a message", at)
    return StoredMessage(header, timestamp, key, value)


def timestamp_of(header: MessageHeader, entry: Bytes) -> int:
    """The timestamp of a message from its first 26 bytes; -1 in magic 0."""
    return read(_Timestamp, entry, TIMESTAMP_AT).value if header.magic >= 1 else NO_TIMESTAMP


def _field(data: Bytes, position: int, end: int) -> tuple[bytes | None, int]:
    start = position + 4
    if start > end:
        raise FormatError("field's length is cut off", position)
    size = read(_Size, data, position).value
    if size < 0:
        return None, start
    if start + size > end:
        raise FormatError(f"field of {size} bytes where the message has {end - start} left", position)
    return bytes(data[start : start + size]), start + size


def is_crc_valid(data: Bytes, header: MessageHeader, position: int = 0) -> bool:
    """Whether the CRC-32 from magic to the message's end is the stored one."""
    covered = memoryview(data)[position + CRC_STARTS_AT : position + header.size_in_bytes]
    return crc32(covered) == header.crc


def read_messages(data: Bytes, *, limit: int) -> Iterator[Record]:
    """The records of one entry: itself, or those of its compressed set in at most `limit` bytes."""
    outer = read_message(data)
    header = outer.header
    if not header.codec:
        yield _record(outer, header.offset, outer.timestamp, data)
        return
    if outer.value is None:
        raise FormatError("compressed message without a value", 0)
    if header.codec == ZSTD:
        raise FormatError(f"zstd in a message of magic {header.magic}", TIMESTAMP_AT - 1)
    from formats.compression import decompress

    body = decompress(header.codec, outer.value, magic=header.magic, limit=limit)
    inner = list(_inner(body))
    if not inner:
        raise FormatError("compressed set holds no message", 0)
    base = 0 if header.magic == 0 else _base_of(header.offset, inner[-1][0].header.offset)
    for message, entry in inner:
        timestamp = outer.timestamp if header.is_log_append_time else message.timestamp
        if header.magic == 0:
            timestamp = NO_TIMESTAMP
        yield _record(message, base + message.header.offset, timestamp, entry)


def _base_of(outer_offset: int, last_inner: int) -> int:
    """What inner offsets of magic 1 count from; 0 for producers that leave the outer offset at 0."""
    if outer_offset == 0:
        return 0
    if outer_offset < last_inner:
        raise FormatError(f"wrapper's offset {outer_offset} is below its last inner offset {last_inner}", 0)
    return outer_offset - last_inner


def _inner(body: bytes) -> Iterator[tuple[StoredMessage, memoryview]]:
    """Messages of a set; like Kafka, a short last one ends it without an error."""
    view = memoryview(body)
    position = 0
    while position + LOG_OVERHEAD <= len(body):
        size = read(_Size, view, position + 8).value
        if size < MIN_SIZES[0]:
            raise FormatError(f"inner message of {size} bytes", position)
        end = position + LOG_OVERHEAD + size
        if end > len(body):
            return
        message = read_message(view[:end], position)
        if message.header.codec:
            raise FormatError("inner message is itself compressed", position)
        if message.header.magic not in MIN_SIZES:
            raise FormatError(f"inner message of magic {message.header.magic}", position)
        yield message, view[position:end]
        position = end


def _record(message: StoredMessage, offset: int, timestamp: int, entry: Bytes) -> Record:
    valid = is_crc_valid(entry, message.header)
    return Record(offset, timestamp, message.key, message.value, crc=message.header.crc, crc_valid=valid)


def write_message(
    magic: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    timestamp: int = NO_TIMESTAMP,
    attributes: int = 0,
) -> bytes:
    """A message with its size and CRC."""
    body = write(_Timestamp(timestamp)) if magic >= 1 else b""
    for field in (key, value):
        body += write(_Size(-1)) if field is None else write(_Size(len(field))) + field
    header = MessageHeader(offset, TIMESTAMP_AT - LOG_OVERHEAD + len(body), 0, magic, attributes)
    covered = write(header)[CRC_STARTS_AT:] + body
    return write(header._replace(crc=crc32(covered))) + body


def write_wrapper(magic: int, records: Sequence[Record], *, codec: int, attributes: int = 0) -> bytes:
    """Records compressed into one message, as a broker stores them; timestamp is the latest inner one."""
    from formats.compression.writers import compress

    base = records[0].offset if magic >= 1 else 0
    body = b"".join(
        write_message(magic, r.offset - base, r.key, r.value, timestamp=r.timestamp) for r in records
    )
    latest = max(record.timestamp for record in records)
    value = compress(codec, body, magic=magic)
    return write_message(
        magic, records[-1].offset, None, value, timestamp=latest, attributes=attributes | codec
    )
