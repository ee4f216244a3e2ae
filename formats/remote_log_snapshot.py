"""`remote_log_snapshot`, what brokers of 3.1 to 3.5 kept of a partition's remote segments; empty in 3.6 and 3.7.

A fixed head, then entries of int32 length and a record of type 3. A segment with n leader epochs is there n
times: the cache that wrote it kept one list an epoch.

Source: storage/.../metadata/storage/RemoteLogMetadataSnapshotFile.java @ 3.5.2
"""

from typing import NamedTuple

from formats import layout
from formats.errors import FormatError
from formats.layout import Bytes, int16, int32, int64
from formats.message_schema import take
from formats.remote_log_metadata import (
    SegmentMetadataSnapshot,
    read_remote_log_metadata,
    write_remote_log_metadata,
)


class SnapshotHead(NamedTuple):
    """What the file starts with."""

    version: int16
    metadata_partition: int32
    metadata_partition_offset: int64
    entries: int32


class RemoteLogSnapshot(NamedTuple):
    """The segments that a partition had when the metadata partition was read up to an offset."""

    metadata_partition: int
    metadata_partition_offset: int
    segments: tuple[SegmentMetadataSnapshot, ...]


HEAD_SIZE = layout.layout(SnapshotHead).size


def read_remote_log_snapshot(data: Bytes) -> RemoteLogSnapshot | None:
    """The snapshot in a file; None for an empty file, which stands for none."""
    if len(data) == 0:
        return None
    head = layout.read(SnapshotHead, data)
    if head.version != 0:
        raise FormatError(f"snapshot version is {head.version}, not 0", 0)
    position = HEAD_SIZE
    segments = []
    for _ in range(head.entries):
        size, start = take(data, position, 4)
        raw, end = take(data, start, int.from_bytes(size, "big", signed=True))
        record = read_remote_log_metadata(raw)
        if not isinstance(record, SegmentMetadataSnapshot):
            raise FormatError(f"an entry is a record of type {record.api_key}", position)
        segments.append(record)
        position = end
    if position != len(data):
        raise FormatError(f"{len(data) - position} bytes are left after {head.entries} entries", position)
    return RemoteLogSnapshot(head.metadata_partition, head.metadata_partition_offset, tuple(segments))


def write_remote_log_snapshot(snapshot: RemoteLogSnapshot) -> bytes:
    """The bytes of a snapshot file."""
    head = SnapshotHead(
        0, snapshot.metadata_partition, snapshot.metadata_partition_offset, len(snapshot.segments)
    )
    entries = [write_remote_log_metadata(one) for one in snapshot.segments]
    return layout.write(head) + b"".join(len(one).to_bytes(4, "big") + one for one in entries)
