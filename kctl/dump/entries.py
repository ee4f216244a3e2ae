"""Rows of the files beside a log: indexes, producer snapshots, and checkpoints of any kind."""

from collections.abc import Callable, Iterator
from os.path import abspath, basename, dirname
from typing import TypeVar

from formats.errors import FormatError
from formats.log_dir.checkpoints import (
    EpochEntry,
    MalformedCheckpoint,
    OffsetEntry,
    parse_leader_epochs,
    parse_offset_checkpoint,
)
from formats.log_dir.file_names import PartitionFolder, parse_partition_folder
from formats.log_dir.index_files import (
    ABORTED_SIZE,
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
    entries_of,
    used_size,
)
from formats.log_dir.producer_snapshot import ENTRY_SIZE, HEADER_SIZE, check_crc, read_entries
from kctl.dump.file_kinds import FileKind, base_offset_of
from kctl.dump.opening import whole
from kctl.dump.selection import DumpSelection
from kctl.errors import UnreadableFile
from kctl.model import Row
from kctl.rows.dump import (
    EPOCH_ENTRY,
    INDEX_ENTRY,
    OFFSET_ENTRY,
    PRODUCER_ENTRY,
    TIME_INDEX_ENTRY,
    TRANSACTION_ENTRY,
)
from kctl.scan.source import Source

Rows = Callable[[Source, str, str, DumpSelection], Iterator[Row]]

Parsed = TypeVar("Parsed", OffsetEntry, EpochEntry)
MOST_BYTES = 1 << 26


def index_rows(source: Source, path: str, file: str, selection: DumpSelection) -> Iterator[Row]:
    """Entries of an offset index up to the zeros that pad it."""
    data = whole(source, MOST_BYTES)
    base = base_offset_of(path)
    for number, entry in enumerate(
        entries_of(OffsetIndexEntry, memoryview(data)[: used_size(data, OFFSET_ENTRY_SIZE)])
    ):
        offset = entry.relative_offset + (base or 0)
        if selection.offset_is_in(offset):
            yield INDEX_ENTRY(
                file=file,
                relative_offset=entry.relative_offset,
                offset=None if base is None else offset,
                position=entry.position,
                entry_position=number * OFFSET_ENTRY_SIZE,
            )


def time_index_rows(source: Source, path: str, file: str, selection: DumpSelection) -> Iterator[Row]:
    """Entries of a time index up to the zeros that pad it."""
    data = whole(source, MOST_BYTES)
    base = base_offset_of(path)
    for number, entry in enumerate(
        entries_of(TimeIndexEntry, memoryview(data)[: used_size(data, TIME_ENTRY_SIZE)])
    ):
        offset = entry.relative_offset + (base or 0)
        if selection.offset_is_in(offset) and selection.time_is_in(entry.timestamp):
            yield TIME_INDEX_ENTRY(
                file=file,
                timestamp=entry.timestamp,
                relative_offset=entry.relative_offset,
                offset=None if base is None else offset,
                position=number * TIME_ENTRY_SIZE,
            )


def transaction_rows(source: Source, path: str, file: str, selection: DumpSelection) -> Iterator[Row]:
    """Aborted transactions; one is wanted where its marker's offset is."""
    for number, entry in enumerate(entries_of(AbortedTransaction, whole(source, MOST_BYTES))):
        if selection.offset_is_in(entry.last_offset):
            yield TRANSACTION_ENTRY(file=file, position=number * ABORTED_SIZE, **entry._asdict())


def producer_rows(source: Source, path: str, file: str, selection: DumpSelection) -> Iterator[Row]:
    """Producers of a snapshot; all that can be read, then `UnreadableFile` where Kafka would delete it."""
    data = whole(source, MOST_BYTES)
    try:
        for number, entry in enumerate(read_entries(data)):
            if selection.offset_is_in(entry.last_offset) and selection.time_is_in(entry.timestamp):
                yield PRODUCER_ENTRY(file=file, position=HEADER_SIZE + number * ENTRY_SIZE, **entry._asdict())
        check_crc(data)
    except FormatError as error:
        raise UnreadableFile(
            f"{file}: {error}; Kafka deletes the snapshot and uses the previous one",
            "`kctl segment rebuild` makes it again from the log",
        ) from error


def read_text(source: Source, file: str) -> str:
    """The text of a checkpoint; `UnreadableFile` where it is not UTF-8, which Kafka refuses too."""
    data = whole(source, MOST_BYTES)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableFile(
            f"{file}: byte {error.start} is not UTF-8 (line {line}). Kafka marks the log directory offline",
            "`kctl segment verify` on its folder shows the damage",
        ) from error


def checkpoint_rows(source: Source, path: str, file: str, selection: DumpSelection) -> Iterator[Row]:
    """Lines of an offset checkpoint."""
    entries = _parsed(parse_offset_checkpoint, read_text(source, file), file)
    for line, (topic, partition, offset) in enumerate(entries, 3):
        if selection.offset_is_in(offset):
            yield OFFSET_ENTRY(file=file, topic=topic, partition=partition, offset=offset, line=line)


def epoch_rows(source: Source, path: str, file: str, selection: DumpSelection) -> Iterator[Row]:
    """Lines of a leader epoch checkpoint, with the partition of the folder that it is in."""
    folder = partition_of(path)
    entries = _parsed(parse_leader_epochs, read_text(source, file), file)
    for line, entry in enumerate(entries, 3):
        if selection.offset_is_in(entry.start_offset):
            yield EPOCH_ENTRY(
                file=file,
                topic=folder.topic if folder else None,
                partition=folder.partition if folder else None,
                epoch=entry.epoch,
                start_offset=entry.start_offset,
                line=line,
            )


def _parsed(parse: Callable[[str], list[Parsed]], text: str, file: str) -> list[Parsed]:
    try:
        return parse(text)
    except MalformedCheckpoint as error:
        raise UnreadableFile(
            f"{file}: {error.what} (line {error.position}). {error.refusal}",
            "`kctl segment verify` on its folder shows the damage",
        ) from error


def partition_of(path: str) -> PartitionFolder | None:
    """The partition of the folder that a file is in."""
    return parse_partition_folder(basename(dirname(abspath(path))))


ENTRIES: dict[FileKind, Rows] = {
    FileKind.INDEX: index_rows,
    FileKind.TIMEINDEX: time_index_rows,
    FileKind.TXNINDEX: transaction_rows,
    FileKind.SNAPSHOT: producer_rows,
    FileKind.CHECKPOINT: checkpoint_rows,
    FileKind.EPOCHS: epoch_rows,
}
