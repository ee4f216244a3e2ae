"""How the files of other systems that speak Kafka's protocol begin.

Redpanda puts a header of its own before the records of each batch: 61 bytes, little endian, the first four a CRC-32C of
the other 57 (`src/v/model/record.h`, `src/v/storage/fs_utils.h @ redpanda dev of 2024-12`). AutoMQ keeps streams in
objects of a store: blocks, an index, a footer that ends in a magic number, and objects of its write-ahead log
(`ObjectWriter.java`, `CompositeObject.java`, `WALObjectHeader.java` in `s3stream @ automq main of 2026-08`).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from formats.binary.crc import crc32c

REDPANDA_HEADER = 61
HEADER_CRC_AND_SIZE = struct.Struct("<Ii")
AUTOMQ_BLOCKS = (b"\x5a", b"\x52")
AUTOMQ_FOOTERS = (bytes.fromhex("88e241b785f4cff7"), bytes.fromhex("88e241b785f4cff8"))
AUTOMQ_WAL = (bytes.fromhex("12345678"), bytes.fromhex("edcba987"))
HEAD, TAIL = REDPANDA_HEADER, 8


class Foreign(NamedTuple):
    """The kind of a file that is not Kafka's."""

    system: str
    what: str


REDPANDA_SEGMENT = Foreign("Redpanda", "a segment")
AUTOMQ_OBJECT = Foreign("AutoMQ", "an object")


def foreign(head: bytes, tail: bytes) -> Foreign | None:
    """The kind of a file by its first 61 bytes and its last 8; None if it may be Kafka's."""
    if len(head) >= REDPANDA_HEADER:
        stored, size = HEADER_CRC_AND_SIZE.unpack_from(head)
        if size >= REDPANDA_HEADER and crc32c(head[4:REDPANDA_HEADER]) == stored:
            return REDPANDA_SEGMENT
    if head.startswith(AUTOMQ_WAL) or (head.startswith(AUTOMQ_BLOCKS) and tail in AUTOMQ_FOOTERS):
        return AUTOMQ_OBJECT
    return None
