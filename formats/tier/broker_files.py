"""`remote_log_snapshot`, what brokers of 3.1 to 3.5 kept of a partition's remote segments; empty in 3.6 and 3.7.

A fixed head, then entries with an int32 length and a record of type 3. A segment with n leader epochs occurs n times:
the cache that wrote it had one list an epoch.

Source: storage/.../metadata/storage/RemoteLogMetadataSnapshotFile.java @ 3.5.2

Names in `remote-log-index-cache`, a broker's local copies of the indexes of remote segments.

A name is `<start offset, not padded>_<segment id><suffix>`; a segment id may hold `_` itself. A copy under way
ends with `.tmp`, one being removed with `.deleted`; after a crash both stay for ever.

Source: storage/.../internals/log/RemoteIndexCache.java @ 3.9.0-rc3

`_rlmm_committed_offsets`, how far a broker of 3.1 to 3.5 had read each metadata partition.

The offset is that of the last record consumed, which is read again after a restart.

Source: storage/.../metadata/storage/CommittedOffsetsFile.java @ 3.5.2
"""

import re
from typing import NamedTuple

from formats.binary import layout
from formats.binary.layout import Bytes, int16, int32, int64
from formats.errors import FormatError, MalformedLine
from formats.messages.reading import take
from formats.messages.remote_log_metadata import (
    API_KEYS,
    SegmentMetadataSnapshot,
    read_remote_log_metadata,
    write_remote_log_metadata,
)
from formats.words import counted

FOLDER = "remote-log-index-cache"
SUFFIXES = (".index", ".timeindex", ".txnindex")
_NAME = re.compile(r"(\d{1,20})_([A-Za-z0-9_-]{22})(\.index|\.timeindex|\.txnindex)((?:\.tmp|\.deleted)?)")


class CachedIndex(NamedTuple):
    """A file of the index cache, by its name."""

    start_offset: int
    remote_log_segment_id: str
    suffix: str
    left_over: str = ""  # ".tmp" or ".deleted"


def parse_cached_index(name: str) -> CachedIndex | None:
    """The parts of a cache file's name; None for any other name."""
    match = _NAME.fullmatch(name)
    return CachedIndex(int(match[1]), match[2], match[3], match[4]) if match else None


def format_cached_index(index: CachedIndex) -> str:
    return f"{index.start_offset}_{index.remote_log_segment_id}{index.suffix}{index.left_over}"


def parse_committed_offsets(text: str) -> dict[int, int]:
    """Last consumed offset by metadata partition."""
    lines = text.splitlines()
    if len(lines) < 2 or lines[0] != "0":
        raise MalformedLine(f"version is {lines[0] if lines else ''!r}, not '0'", 1)
    if not lines[1].isdecimal() or int(lines[1]) != len(lines) - 2:
        raise MalformedLine(
            f"{counted(len(lines) - 2, 'entry', 'entries')} where line 2 promises {lines[1]!r}", 2
        )
    offsets = {}
    for number, line in enumerate(lines[2:], 3):
        words = line.split()
        if len(words) != 2 or not words[0].isdecimal() or not words[1].lstrip("-").isdecimal():
            raise MalformedLine(f"{line!r} is not a partition and an offset", number)
        offsets[int(words[0])] = int(words[1])
    return offsets


def format_committed_offsets(offsets: dict[int, int]) -> str:
    return "\n".join(["0", str(len(offsets)), *(f"{p} {o}" for p, o in offsets.items())]) + "\n"


class SnapshotHead(NamedTuple):
    """The beginning of the file."""

    version: int16
    metadata_partition: int32
    metadata_partition_offset: int64
    entries: int32


class RemoteLogSnapshot(NamedTuple):
    """The segments of a partition when the metadata partition was read up to an offset."""

    metadata_partition: int
    metadata_partition_offset: int
    segments: tuple[SegmentMetadataSnapshot, ...]


HEAD_SIZE = layout.layout(SnapshotHead).size


def read_remote_log_snapshot(data: Bytes) -> RemoteLogSnapshot | None:
    """The snapshot in a file; None if the file is empty."""
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
            raise FormatError(f"an entry is a record of type {API_KEYS[type(record)]}", position)
        segments.append(record)
        position = end
    if position != len(data):
        raise FormatError(
            f"{counted(len(data) - position, 'byte')} left after {counted(head.entries, 'entry', 'entries')}",
            position,
        )
    return RemoteLogSnapshot(head.metadata_partition, head.metadata_partition_offset, tuple(segments))


def write_remote_log_snapshot(snapshot: RemoteLogSnapshot) -> bytes:
    head = SnapshotHead(
        0, snapshot.metadata_partition, snapshot.metadata_partition_offset, len(snapshot.segments)
    )
    entries = [write_remote_log_metadata(segment) for segment in snapshot.segments]
    return layout.write(head) + b"".join(len(entry).to_bytes(4, "big") + entry for entry in entries)
