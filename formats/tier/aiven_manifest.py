"""The manifest of a segment as Aiven's tiered storage plug-in writes it: how the log was cut into chunks.

Chunks of the original file have one size; compressed ones have their own sizes, packed as differences from the
smallest with the last size in full. All indexes are in one object, one after another.

Source: Aiven-Open/tiered-storage-for-apache-kafka, SegmentManifestV1.java, ChunkSizesBinaryCodec.java
"""

from __future__ import annotations

import base64
from typing import Any

from formats import bounded_json
from formats.errors import FormatError, Truncated
from formats.tier.object_names import ObjectKind
from formats.values import Struct

_INDEXES = {
    "offset": ObjectKind.OFFSET_INDEX,
    "timestamp": ObjectKind.TIME_INDEX,
    "producerSnapshot": ObjectKind.PRODUCER_SNAPSHOT,
    "leaderEpoch": ObjectKind.LEADER_EPOCHS,
    "transaction": ObjectKind.TRANSACTION_INDEX,
}
MOST_CHUNKS = 1 << 24


class Manifest(Struct, frozen=True):
    """How to read a segment's objects; sizes and positions in bytes."""

    original_chunk_size: int
    original_file_size: int
    transformed_chunk_sizes: tuple[int, ...]
    is_compressed: bool
    is_encrypted: bool
    indexes: dict[ObjectKind, tuple[int, int]]  # position and size in the object of indexes


def parse_manifest(text: str | bytes) -> Manifest:
    """The manifest from a JSON text. Raises FormatError."""
    try:
        fields: dict[str, Any] = bounded_json.loads(text)
        if fields["version"] != "1":
            raise FormatError(f"manifest version is {fields['version']!r}, not '1'", 0)
        chunks = fields["chunkIndex"]
        size, whole = _whole(chunks["originalChunkSize"]), _whole(chunks["originalFileSize"])
        indexes = {
            _INDEXES[name]: (_whole(index["position"]), _whole(index["size"]))
            for name, index in (fields.get("segmentIndexes") or {}).items()
            if name in _INDEXES and index is not None
        }
        sizes = _sizes(chunks, size, whole)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"not a manifest: {type(error).__name__} {error}", 0) from None
    return Manifest(
        size, whole, sizes, bool(fields.get("compression")), fields.get("encryption") is not None, indexes
    )


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise FormatError(f"{value!r} is not a size", 0)
    return value


def _sizes(chunks: dict[str, Any], size: int, whole: int) -> tuple[int, ...]:
    count = -(-whole // size) if size else 0
    if count > MOST_CHUNKS:
        raise FormatError(f"{count} chunks", 0)
    if chunks["type"] == "fixed":
        each, last = _whole(chunks["transformedChunkSize"]), _whole(chunks["finalTransformedChunkSize"])
        return (each,) * (count - 1) + (last,) if count else ()
    if chunks["type"] != "variable":
        raise FormatError(f"unknown chunk index {chunks['type']!r}", 0)
    sizes = read_chunk_sizes(base64.b64decode(chunks["transformedChunks"], validate=True))
    if len(sizes) != count:
        raise FormatError(f"{len(sizes)} chunk sizes for {count} chunks", 0)
    return sizes


def read_chunk_sizes(data: bytes) -> tuple[int, ...]:
    """Sizes from their packed form: count, smallest size, bytes a difference, the differences, the last size in full."""
    if len(data) < 4:
        raise Truncated("chunk sizes without a count", 0)
    count = int.from_bytes(data[:4], "big")
    if count == 0:
        return ()
    if count == 1:
        return (int.from_bytes(_at(data, 4, 4), "big"),)
    base, width = int.from_bytes(_at(data, 4, 4), "big"), data[8] if len(data) > 8 else 0
    if not 1 <= width <= 4:
        raise FormatError(f"{width} bytes a chunk size", 8)
    packed = _at(data, 9, (count - 1) * width)
    sizes = [base + int.from_bytes(packed[i : i + width], "big") for i in range(0, len(packed), width)]
    return (*sizes, int.from_bytes(_at(data, 9 + len(packed), 4), "big"))


def write_chunk_sizes(sizes: tuple[int, ...]) -> bytes:
    """Sizes in packed form, as `read_chunk_sizes` reads them."""
    head = len(sizes).to_bytes(4, "big")
    if len(sizes) < 2:
        return head + b"".join(size.to_bytes(4, "big") for size in sizes)
    *others, last = sizes
    base = min(others)
    width = max(1, (max(others) - base).bit_length() + 7 >> 3)
    packed = b"".join((size - base).to_bytes(width, "big") for size in others)
    return head + base.to_bytes(4, "big") + bytes([width]) + packed + last.to_bytes(4, "big")


def _at(data: bytes, position: int, size: int) -> bytes:
    if position + size > len(data):
        raise Truncated(
            f"{size} bytes of chunk sizes are promised, {len(data) - position} are left", position
        )
    return data[position : position + size]
