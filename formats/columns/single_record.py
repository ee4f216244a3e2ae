"""One record's fields as places and sizes, for the few whose varints are too long for a column.

Source: clients/src/main/java/org/apache/kafka/common/record/DefaultRecord.java @ 3.9.0-rc3
"""

from formats.errors import FormatError
from formats.varint import read_varint, read_varlong


def read_fields(data: bytes) -> tuple[int, int, int, int, int, int, int, int]:
    """Timestamp delta, offset delta, key position and size, value position and size, headers position and count.

    `data` is exactly the record, its length included; positions count from its start; a size of -1 is null.
    """
    size, start = read_varint(data, 0)
    if start + size != len(data):
        raise FormatError(f"record of {size} bytes in {len(data)}", 0)
    timestamp_delta, at = read_varlong(data, start + 1)
    offset_delta, at = read_varint(data, at)
    key_size, key_at = read_varint(data, at)
    value_size, value_at = read_varint(data, _after(data, key_at, key_size))
    count, headers_at = read_varint(data, _after(data, value_at, value_size))
    if not 0 <= count <= len(data) - headers_at:
        raise FormatError(f"{count} headers", headers_at)
    at = headers_at
    for _ in range(count):
        name_size, name_at = read_varint(data, at)
        if name_size < 0:
            raise FormatError("header without a key", at)
        header_size, header_at = read_varint(data, _after(data, name_at, name_size))
        at = _after(data, header_at, header_size)
    if at != len(data):
        raise FormatError("record does not end with its headers", at)
    return (
        timestamp_delta,
        offset_delta,
        key_at,
        max(key_size, -1),
        value_at,
        max(value_size, -1),
        headers_at,
        count,
    )


def _after(data: bytes, position: int, size: int) -> int:
    end = position + max(size, 0)
    if end > len(data):
        raise FormatError(f"field of {size} bytes", position)
    return end
