"""The records that a recovery writes, kept beside the journal until they are written, and what became of them.

A file holds batches as in a segment, with the offsets and epochs at which the records were lost, so that `kctl segment
dump` prints it. Its name ends with a digest of what it holds; the journal has the whole digest. Beside it stands a file
with a line for each batch that was acknowledged. Both are removed when the change is done.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from formats import bounded_json
from formats.log.record_batch import Record, write_batch
from formats.log.records import DEFAULT_LIMIT, LogEntry, iterate_records, walk
from kctl.changes.journal_folder import journal_folder
from kctl.errors import KctlError, Refused, file_error
from kctl.files import open_file
from kctl.model import OffsetRange, TopicPartition
from kctl.scan.source import opened_source

FOLDER = "records"
IN_A_BATCH = 256 << 10  # bytes of records that are produced at once; one larger record is alone
MOST_IN_A_BATCH = 4096  # records
OVERHEAD = 200  # bytes of a record besides key, value and headers, with those that name where it was lost


def kept_folder() -> Path:
    """Where the records of recoveries are kept."""
    return journal_folder() / FOLDER


class LostRecord(NamedTuple):
    """A record as a copy holds it, its leader epoch (-1: unknown) and the codec of its batch."""

    record: Record
    leader_epoch: int
    codec: int = 0


class KeptRecords:
    """Writes the records of one partition to a file. Use as a context manager; without `keep` nothing is left."""

    def __init__(self, folder: Path, partition: TopicPartition) -> None:
        self._partition, self._folder = partition, folder
        self._file: BinaryIO | None = None
        self._beside = folder / f"{partition}.{os.getpid()}.new"
        self._digest = hashlib.sha256()
        self._batch: list[LostRecord] = []
        self._bytes = 0
        self.records = 0

    def __enter__(self) -> "KeptRecords":
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._beside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            self._file = os.fdopen(descriptor, "wb")
        except OSError as error:
            raise file_error(self._beside, error, KctlError, "set KCTL_JOURNAL to another folder") from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
        self._beside.unlink(missing_ok=True)

    def add(self, lost: LostRecord) -> None:
        """Add a record; those of one epoch and codec are in one batch."""
        if self._batch:
            last = self._batch[-1]
            is_other = (last.leader_epoch, last.codec) != (lost.leader_epoch, lost.codec)
            is_before = lost.record.offset <= last.record.offset
            size = self._bytes + size_of(lost.record)
            if is_other or is_before or size > IN_A_BATCH or len(self._batch) >= MOST_IN_A_BATCH:
                self._write_batch()
        self._batch.append(lost)
        self._bytes += size_of(lost.record)
        self.records += 1

    def _write_batch(self) -> None:
        assert self._file is not None
        batch, self._batch, self._bytes = self._batch, [], 0
        if not batch:
            return
        records = [lost.record for lost in batch]
        data = write_batch(records, codec=batch[0].codec, partition_leader_epoch=batch[0].leader_epoch)
        self._digest.update(data)
        try:
            self._file.write(data)
        except OSError as error:
            raise file_error(self._beside, error, KctlError, "set KCTL_JOURNAL to another folder") from error

    def keep(self) -> tuple[str, str]:
        """Put the file in its place; returns its name and the digest of its content."""
        self._write_batch()
        assert self._file is not None
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            digest = self._digest.hexdigest()
            name = f"{self._partition}-{digest[:16]}.log"
            self._beside.rename(self._folder / name)
        except OSError as error:
            raise file_error(self._beside, error, KctlError, "set KCTL_JOURNAL to another folder") from error
        return name, digest


def size_of(record: Record) -> int:
    """About how many bytes a record takes before compression."""
    fields = (record.key, record.value, *(part for header in record.headers for part in header))
    return OVERHEAD + sum(len(field) for field in fields if field is not None)


def check_kept(name: str, digest: str) -> None:
    """Raise Refused where the file is gone or is not what the journal says."""
    path = kept_folder() / name
    try:
        with open_file(path) as file:
            is_same = hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError as error:
        raise Refused(
            f"the records kept in {path} cannot be read ({error.strerror}); nothing was written", AGAIN
        ) from error
    if not is_same:
        raise Refused(f"{path} is not what the journal says; nothing was written", AGAIN)


AGAIN = "run `kctl replica recover` on the evidence again: it leaves out what is written already"


def kept_batches(name: str) -> Iterator[list[LostRecord]]:
    """The records that are kept, batch by batch. Raises KctlError if the file cannot be read."""
    path = kept_folder() / name
    try:
        with opened_source(path) as source:
            for entry in walk(source):
                if not isinstance(entry, LogEntry) or entry.batch is None:
                    raise KctlError(f"{path} is damaged at position {entry.position}", AGAIN)
                epoch, codec = entry.batch.partition_leader_epoch, entry.batch.codec
                yield [
                    LostRecord(record, epoch, codec) for record in iterate_records(entry, limit=DEFAULT_LIMIT)
                ]
    except OSError as error:
        raise file_error(path, error, KctlError) from error


def kept_records(name: str) -> Iterator[LostRecord]:
    """The records that are kept, in order."""
    for batch in kept_batches(name):
        yield from batch


# --- what became of them --------------------------------------------------------------------------------


def note_written(name: str, offsets: Sequence[OffsetRange]) -> None:
    """Note at which offsets records were written, those before included."""
    path = kept_folder() / f"{name}.written"
    beside = path.with_suffix(".new")
    try:
        beside.write_text(json.dumps([list(span) for span in offsets]), "utf-8")
        beside.rename(path)
    except OSError as error:
        raise file_error(path, error, KctlError, "set KCTL_JOURNAL to another folder") from error


def noted_offsets(name: str) -> list[OffsetRange]:
    """The offsets at which records were written, as noted; none without a note."""
    path = kept_folder() / f"{name}.written"
    try:
        spans = bounded_json.loads(path.read_text("utf-8"))
        return [OffsetRange(int(start), int(end)) for start, end in spans]
    except (OSError, ValueError, TypeError):
        return []


def note_sending(name: str, records: int) -> None:
    """Note that a batch is sent whose answer alone tells what becomes of it; `records` were sent before."""
    path = kept_folder() / f"{name}.sending"
    try:
        path.write_text(f"{records}\n", "utf-8")
    except OSError as error:
        raise file_error(path, error, KctlError, "set KCTL_JOURNAL to another folder") from error


def is_sending(name: str) -> bool:
    """Whether such a batch may have been on its way when the process that sent it ended."""
    return (kept_folder() / f"{name}.sending").exists()


def forget(name: str) -> None:
    """Remove the records and the notes."""
    for path in (kept_folder() / f"{name}{suffix}" for suffix in ("", ".written", ".sending")):
        with suppress(OSError):
            path.unlink()
