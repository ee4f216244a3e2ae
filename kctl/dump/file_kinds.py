"""The kind of a file of a partition folder, by its name or its first bytes; its base offset and sibling files."""

import enum
import os
import re
from pathlib import Path

from formats.errors import FormatError
from formats.log import record_batch
from formats.log.records import LogEntry, walk
from formats.log_dir.file_names import (
    BOOTSTRAP_CHECKPOINT,
    LEADER_EPOCHS,
    OFFSET_CHECKPOINTS,
    parse_segment_file,
    segment_file_name,
)
from formats.log_dir.index_files import ABORTED_SIZE
from kctl.scan.source import Source


def base_offset_of(path: str) -> int | None:
    """The number before the first dot of a file's name."""
    before = re.match(r"[0-9]{1,19}(?=\.)|0[0-9]{19}(?=\.)", Path(path).name)
    return int(before[0]) if before else None


def sibling(path: str, suffix: str) -> str | None:
    """The file of the same segment with another suffix; None if it does not exist."""
    file = Path(path)
    file = file.with_name(file.name.split(".")[0] + suffix)
    return os.fspath(file) if file.is_file() else None


class FileKind(enum.StrEnum):
    """What `--type` takes."""

    LOG = "log"
    INDEX = "index"
    TIMEINDEX = "timeindex"
    TXNINDEX = "txnindex"
    SNAPSHOT = "snapshot"
    CHECKPOINT = "checkpoint"
    EPOCHS = "epochs"


BY_SUFFIX = {
    ".log": FileKind.LOG,
    ".checkpoint": FileKind.LOG,  # a KRaft snapshot is a log
    ".index": FileKind.INDEX,
    ".timeindex": FileKind.TIMEINDEX,
    ".txnindex": FileKind.TXNINDEX,
    ".snapshot": FileKind.SNAPSHOT,
}


def kind_by_name(name: str) -> FileKind | None:
    """The kind that the name tells; None if it tells none."""
    segment_file = parse_segment_file(name)
    if segment_file:
        return BY_SUFFIX[segment_file.suffix]
    plain = segment_file_name(name)
    if plain == LEADER_EPOCHS:
        return FileKind.EPOCHS
    if plain in OFFSET_CHECKPOINTS:
        return FileKind.CHECKPOINT
    return FileKind.LOG if plain == BOOTSTRAP_CHECKPOINT else BY_SUFFIX.get(Path(plain).suffix)


def kind_of(source: Source, name: str) -> FileKind | None:
    """The kind of a file by its name, else by its first bytes; None if neither tells."""
    return kind_by_name(name) or kind_by_content(source)


def kind_by_content(source: Source) -> FileKind | None:
    """What the first bytes look like: a sound batch, a snapshot, a checkpoint's lines, rows of an index."""
    head = source.read_at(0, 1 << 20)
    try:
        size = record_batch.read_header(head).size_in_bytes if len(head) >= 61 else len(head)
        first = next(walk(source, end=min(source.size, max(size, 1 << 16))), None)
    except FormatError:
        first = None
    if isinstance(first, LogEntry):
        return FileKind.LOG
    if _is_snapshot(head, source.size):
        return FileKind.SNAPSHOT
    if head[:2] in (b"0\n", b"0\r"):
        return _checkpoint_kind(head)
    return _index_kind(head, source.size)


def _is_snapshot(head: bytes, size: int) -> bool:
    if head[:2] != b"\0\1" or (size - 10) % 46:
        return False
    return int.from_bytes(head[6:10], "big") * 46 + 10 == size


def _checkpoint_kind(head: bytes) -> FileKind:
    lines = head.split(b"\n", 3)
    return FileKind.EPOCHS if len(lines) > 2 and len(lines[2].split()) == 2 else FileKind.CHECKPOINT


def _index_kind(head: bytes, size: int) -> FileKind | None:
    """Which kind of index has rising offsets in these rows; zeros at the end are padding."""
    used = head.rstrip(b"\0")
    if size and size % ABORTED_SIZE == 0 and head[:2] == b"\0\0" and _rises(head, ABORTED_SIZE, 18, 26):
        return FileKind.TXNINDEX
    if not used:
        return None
    if size % 12 == 0 and _rises(used, 12, 0, 8):
        return FileKind.TIMEINDEX
    if size % 8 == 0 and _rises(used, 8, 0, 4) and _rises(used, 8, 4, 8):
        return FileKind.INDEX
    return None


def _rises(data: bytes, row: int, start: int, end: int) -> bool:
    """Whether a field rises from row to row, and is not negative."""
    last = -1
    for position in range(0, len(data) - row + 1, row):
        value = int.from_bytes(data[position + start : position + end], "big", signed=True)
        if value <= last:
            return False
        last = value
    return last >= 0
