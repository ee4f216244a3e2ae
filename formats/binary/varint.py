"""Variable-length integers: zig-zag varints and varlongs of records, unsigned varints of flexible schemas.

Each reader returns `(value, next_position)`. A varint has at most 5 bytes, a varlong at most 10.

Source: clients/src/main/java/org/apache/kafka/common/utils/ByteUtils.java @ 3.9.0-rc3
"""

from formats.binary.layout import Bytes
from formats.errors import FormatError, Truncated


def read_unsigned(data: Bytes, position: int, width: int = 5) -> tuple[int, int]:
    """The unsigned varint at position; `FormatError` when it goes on past `width` bytes."""
    value = shift = 0
    end = len(data)
    for at in range(position, position + width):
        if at >= end:
            raise Truncated("varint is cut off", position)
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (0xFFFFFFFF if width == 5 else 0xFFFFFFFFFFFFFFFF), at + 1
        shift += 7
    raise FormatError(f"varint is longer than {width} bytes", position)


def read_varint(data: Bytes, position: int) -> tuple[int, int]:
    """The zig-zag varint (int32) at position."""
    value, position = read_unsigned(data, position, 5)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: Bytes, position: int) -> tuple[int, int]:
    """The zig-zag varlong (int64) at position."""
    value, position = read_unsigned(data, position, 10)
    return (value >> 1) ^ -(value & 1), position


def after_tags(data: Bytes, position: int) -> int:
    """Behind the tagged fields of a flexible form, whatever they are. Raises Truncated where they are cut off."""
    count, position = read_unsigned(data, position)
    for _ in range(count):
        _, position = read_unsigned(data, position)
        size, position = read_unsigned(data, position)
        position += size
        if position > len(data):
            raise Truncated("tagged field is cut off", len(data))
    return position


def write_unsigned(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_varint(value: int) -> bytes:
    """A zig-zag varint; the bytes of a varlong are the same for the same value."""
    return write_unsigned(value << 1 if value >= 0 else (-value << 1) - 1)
