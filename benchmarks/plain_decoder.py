"""A plain decoder of batches of magic 2 in Python, as one would write it: the reference for the columns."""

import struct
from collections.abc import Iterator

from formats.compression import decompress

HEADER = struct.Struct(">qiibIhiqqqhii")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _field(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    return data[at : at + size], at + size


def records_of(log: bytes) -> int:
    """Decode every record of a log into a tuple; how many there were."""
    return sum(1 for _ in _records(log))


def sizes_of(log: bytes) -> Iterator[tuple[int, int, int | None, int | None]]:
    """Offset, timestamp, and the sizes of key and value of every record."""
    for offset, timestamp, key, value, _ in _records(log):
        yield offset, timestamp, None if key is None else len(key), None if value is None else len(value)


def _records(log: bytes) -> "Iterator[tuple[int, int, bytes | None, bytes | None, list[object]]]":
    position = 0
    while position + HEADER.size <= len(log):
        base, length, _, _, _, attributes, _, base_time, _, _, _, _, records = HEADER.unpack_from(
            log, position
        )
        body = decompress(attributes & 7, log[position + 61 : position + 12 + length], magic=2)
        at = 0
        for _ in range(records):
            _, at = _varint(body, at)
            time_delta, at = _varint(body, at + 1)
            offset_delta, at = _varint(body, at)
            key, at = _field(body, at)
            value, at = _field(body, at)
            number, at = _varint(body, at)
            headers: list[object] = []
            for _ in range(number):
                name, at = _field(body, at)
                content, at = _field(body, at)
                headers.append((name, content))
            yield base + offset_delta, base_time + time_delta, key, value, headers
        position += 12 + length
