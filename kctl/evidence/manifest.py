"""The manifest of a copy: a line of JSON for all that was copied or left out, and a last line that seals the others.

| Kind | A line for |
|---|---|
| `collection` | the first: when, by which command and version |
| `source` | each source, as its copy ends: broker, clock, and why it is incomplete |
| `planned`, `whole` | a partition folder that is to be copied, and one of which all was |
| `file` | a file that was copied |
| `dropped` | a file that was taken away again, since its folder had to be read once more |
| `left_out` | a name that was not copied |
| `seal` | the last: the digest of all bytes before it |
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from kctl.errors import KctlError, UnreadableFile, file_error
from kctl.evidence.names import trouble_with_name
from kctl.files import open_file

MANIFEST = "manifest.jsonl"
LONGEST_LINE = 1 << 20
_encode = msgspec.json.Encoder().encode


class FileLine(msgspec.Struct, tag="file", tag_field="kind"):
    """A copied file. Times are milliseconds, `mtime_ns` nanoseconds.

    `sha256` is of the bytes as written, `source_sha256` of those read where they differ. `as`: `headers` where contents
    of records were replaced; in such a copy `source_keyed_digest` stands for `source_sha256`, by which contents could be
    tried out: a BLAKE2b of it, keyed by the key of the hashes.
    """

    path: str
    source: str
    size: int
    sha256: str
    mode: int
    uid: int
    gid: int
    mtime: int
    mtime_ns: int
    read_at: int
    note: str | None = None
    source_size: int | None = None
    source_sha256: str | None = None
    as_: str | None = msgspec.field(default=None, name="as")
    source_keyed_digest: str | None = None


class LeftOutLine(msgspec.Struct, tag="left_out", tag_field="kind", omit_defaults=True):
    """A name of the source that was not copied; `path` is where it would lie. `unread`: it may not or cannot be read."""

    path: str
    source: str
    what: str
    why: str
    unread: bool = False


class PlannedLine(msgspec.Struct, tag="planned", tag_field="kind", omit_defaults=True):
    """A partition folder that is to be copied, below the folder of the manifest. `fetched`: a broker gave its batches."""

    path: str
    fetched: bool = False


class WholeLine(msgspec.Struct, tag="whole", tag_field="kind", omit_defaults=True):
    """A partition folder of which all was copied that was asked for; `from_offset`: earlier records were not."""

    path: str
    from_offset: int | None = None


class DroppedLine(msgspec.Struct, tag="dropped", tag_field="kind"):
    """A copied file that was taken away again: the source had it no more as its folder was read once more."""

    path: str


class SourceLine(msgspec.Struct, tag="source", tag_field="kind"):
    """A source whose copy ended; `topics` and `partitions` are what was asked for, null for all."""

    source: str
    broker_ids: list[int]
    started_at: int
    ended_at: int
    files: int
    bytes: int
    clock_offset_ms: int | None = None
    incomplete: str | None = None
    command: str | None = None
    topics: list[str] | None = None
    partitions: list[int] | None = None
    since: int | None = None


class CollectionLine(msgspec.Struct, tag="collection", tag_field="kind"):
    """The first line. `hash_key_id` names the key of the hashes that contents were replaced by; null where none were."""

    started_at: int
    command: str
    kctl: str
    host: str
    format: int = 1
    hash_key_id: str | None = None


class SealLine(msgspec.Struct, tag="seal", tag_field="kind"):
    """The last line; `sha256` is of all lines before it."""

    sha256: str
    files: int
    command: str
    kctl: str
    sealed_at: int


Line = FileLine | LeftOutLine | PlannedLine | WholeLine | DroppedLine | SourceLine | CollectionLine | SealLine
_decode = msgspec.json.Decoder(Line).decode
BEGINNING = b'{"kind":"collection",'
FILE_BEGINNING = b'{"kind":"file",'


class ManifestWriter:
    """A manifest that grows; every line is there once `flush` was called."""

    def __init__(self, folder: Path, file: BinaryIO, digest: Any, files: int) -> None:
        self.folder = folder
        self._file = file
        self._digest = digest
        self.files = files

    @classmethod
    def new(cls, folder: Path, first: CollectionLine) -> ManifestWriter:
        """The manifest of a folder that has none. Raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.fdopen(os.open(folder / MANIFEST, flags, 0o600), "wb", 1 << 16)
        writer = cls(folder, file, hashlib.sha256(), 0)
        writer.add(first)
        writer.flush()
        return writer

    @classmethod
    def resumed(cls, folder: Path) -> ManifestWriter:
        """The manifest of an earlier run, without its seal and a torn last line. Raises OSError, UnreadableFile."""
        digest, files, end = hashlib.sha256(), 0, 0
        for line, raw in lines_of(folder / MANIFEST, may_be_torn=True):
            if isinstance(line, SealLine):
                break
            digest.update(raw)
            end += len(raw)
            files += isinstance(line, FileLine)
        if not end:
            raise UnreadableFile(f"{folder / MANIFEST}: has no line", "begin again in a new folder")
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.fdopen(os.open(folder / MANIFEST, flags), "r+b", 1 << 16)
        file.truncate(end)
        file.seek(end)
        return cls(folder, file, digest, files)

    def add(self, line: Line) -> None:
        """Add a line."""
        raw = _encode(line) + b"\n"
        self._digest.update(raw)
        self._file.write(raw)
        self.files += isinstance(line, FileLine)

    def flush(self) -> None:
        """Give the lines to the system."""
        self._file.flush()

    def seal(self, command: str, version: str, now_ms: int) -> SealLine:
        """Add the last line, sync and close."""
        seal = SealLine(self._digest.hexdigest(), self.files, command, version, now_ms)
        self._file.write(_encode(seal) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return seal

    def close(self) -> None:
        """Close the manifest without a seal."""
        self._file.close()


def lines_of(
    path: Path, *, may_be_torn: bool = False, passing: bytes | None = None
) -> Iterator[tuple[Line, bytes]]:
    """The lines of a manifest with their bytes. `UnreadableFile` names the line that is none.

    `may_be_torn`: a last line without an end is passed over, as a process that was killed leaves it. Lines that begin
    with `passing` are not looked at.
    """
    try:
        with open_file(path) as file:
            number = 0
            while raw := file.readline(LONGEST_LINE + 1):
                number += 1
                if may_be_torn and not raw.endswith(b"\n"):
                    return
                if passing is not None and raw.startswith(passing):
                    continue
                try:
                    line = _decode(raw)
                except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                    raise _bad(path, number, str(error)) from error
                if number == 1 and not isinstance(line, CollectionLine):
                    raise _bad(path, number, "a manifest begins with its collection")
                if isinstance(line, (FileLine, DroppedLine, PlannedLine, WholeLine)) and not is_inside(
                    line.path
                ):
                    raise _bad(path, number, "its path leaves the folder")
                yield line, raw
    except OSError as error:
        raise file_error(path, error) from error


def hash_key_id_of(path: Path) -> str | None:
    """Which key the contents of a copy were hashed with; None for a copy with its contents. Raises UnreadableFile."""
    first = next((line for line, _ in lines_of(path, may_be_torn=True)), None)
    return first.hash_key_id if isinstance(first, CollectionLine) else None


def has_fetched(path: Path) -> bool:
    """Whether brokers gave batches of a partition for this copy. Raises UnreadableFile."""
    lines = lines_of(path, may_be_torn=True, passing=FILE_BEGINNING)
    return any(isinstance(line, PlannedLine) and line.fetched for line, _ in lines)


def sealed_sources(path: Path) -> dict[str, str | None] | None:
    """The sources of a sealed manifest, each with why its copy is incomplete; None for a manifest without a seal."""
    sources: dict[str, str | None] = {}
    is_sealed = False
    for line, _ in lines_of(path, may_be_torn=True, passing=FILE_BEGINNING):
        is_sealed = isinstance(line, SealLine)
        if isinstance(line, SourceLine):
            sources[line.source] = line.incomplete
    return sources if is_sealed else None


def _bad(path: Path, number: int, reason: str) -> KctlError:
    return UnreadableFile(
        f"{path}: no line of a manifest at line {number} ({reason})", "copy the folder again"
    )


def is_inside(path: str) -> bool:
    """Whether a path of a manifest stays below its folder."""
    return all(trouble_with_name(name) is None for name in path.split("/"))


def is_manifest(path: Path) -> bool:
    """Whether a file begins as a manifest does."""
    try:
        with open_file(path) as file:
            return file.read(len(BEGINNING)) == BEGINNING
    except OSError:
        return False
