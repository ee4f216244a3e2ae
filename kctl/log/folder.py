"""The files of a partition folder, sorted into segments. Nothing is opened; sizes are those of the listing.

A name may carry `.deleted`, `.cleaned` or `.swap` behind its suffix; those files are segments of their own
state, never mixed with the live ones (`S:LogFileUtils.java`, `K:log/LogLoader.scala @ 3.9.0`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from formats.log_dir.file_names import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    QUORUM_STATE,
    REMOTE_LOG_SNAPSHOT,
    FileState,
    SegmentFile,
    parse_segment_file,
)
from formats.values import Struct, field

KNOWN = frozenset({LEADER_EPOCHS, PARTITION_METADATA, QUORUM_STATE, REMOTE_LOG_SNAPSHOT})
MOST_LISTED = 10_000
"""Files of no use, and links and other entries that are no files: a folder may hold millions, and the rest is counted."""

MOST_SEGMENT_FILES = 200_000
"""Each takes a kilobyte until the folder is done; 65,000 segments of a gibibyte are more than a partition has."""


class FolderFile(Struct, frozen=True):
    """A regular file of the folder; `named` is None where its name is no segment file's."""

    path: Path
    size_in_bytes: int
    named: SegmentFile | None = None

    @property
    def name(self) -> str:
        """Its name without the folder."""
        return self.path.name


class LogSegment(Struct, frozen=True):
    """The files of one base offset in one state; a file that is not there is None."""

    base_offset: int
    state: FileState
    files: Mapping[str, FolderFile]

    @property
    def log(self) -> FolderFile | None:
        """The records."""
        return self.files.get(".log")

    @property
    def index(self) -> FolderFile | None:
        """The offset index."""
        return self.files.get(".index")

    @property
    def time_index(self) -> FolderFile | None:
        """The time index, 0.10.1 and later."""
        return self.files.get(".timeindex")

    @property
    def transaction_index(self) -> FolderFile | None:
        """The aborted transactions; made only when there is one."""
        return self.files.get(".txnindex")


class Folder(Struct):
    """A partition folder as it was listed."""

    path: Path
    segments: list[LogSegment] = field(default_factory=list)  # live ones, ascending
    leftovers: list[LogSegment] = field(default_factory=list)  # deleted, cleaned, swap; ascending
    snapshots: list[FolderFile] = field(default_factory=list)  # producer snapshots, ascending, live ones
    kraft_snapshots: list[FolderFile] = field(default_factory=list)
    other_files: dict[str, FolderFile] = field(default_factory=dict)
    odd: list[tuple[Path, int]] = field(default_factory=list)  # what is not a regular file, with its mode
    links: list[Path] = field(default_factory=list)
    vanished: list[Path] = field(default_factory=list)
    left_out: int = 0  # of other files, odd ones and links

    @property
    def logs(self) -> list[LogSegment]:
        """Live segments that have a `.log` file."""
        return [segment for segment in self.segments if segment.log]

    def files(self) -> Iterator[FolderFile]:
        """Every regular file, segments first."""
        for segment in (*self.segments, *self.leftovers):
            yield from segment.files.values()
        yield from self.snapshots
        yield from self.kraft_snapshots
        yield from self.other_files.values()

    @property
    def size_in_bytes(self) -> int:
        """The bytes of all files."""
        return sum(file.size_in_bytes for file in self.files())


def read_folder(path: Path) -> Folder:
    """The folder's files; `OSError` where it cannot be listed, or has more files of segments than may be.

    Links are kept apart and not followed.
    """
    folder = Folder(path)
    by_base: dict[tuple[int, FileState], dict[str, FolderFile]] = {}
    unknown = of_segments = 0
    for file in _files(path, folder):
        named = file.named
        if named is None:
            unknown += file.name not in KNOWN
            if unknown > MOST_LISTED and file.name not in KNOWN:
                folder.left_out += 1
            else:
                folder.other_files[file.name] = file
        elif named.suffix == ".checkpoint":
            folder.kraft_snapshots.append(file)
        elif named.suffix == ".snapshot" and named.state is FileState.LIVE:
            folder.snapshots.append(file)
        else:
            of_segments += 1
            if of_segments > MOST_SEGMENT_FILES:
                raise OSError(
                    errno.EFBIG, f"more than {MOST_SEGMENT_FILES} files of segments", os.fspath(path)
                )
            by_base.setdefault((named.base_offset, named.state), {})[named.suffix] = file
    for (base_offset, state), files in sorted(by_base.items()):
        target = folder.segments if state is FileState.LIVE else folder.leftovers
        target.append(LogSegment(base_offset, state, files))
    folder.snapshots.sort(key=lambda file: file.named.base_offset if file.named else 0)
    return folder


def _files(path: Path, folder: Folder) -> Iterator[FolderFile]:
    for name in sorted(os.listdir(path)):
        below = path / name
        try:
            status = below.lstat()
        except FileNotFoundError:
            folder.vanished.append(below)
            continue
        if stat.S_ISREG(status.st_mode):
            yield FolderFile(below, status.st_size, parse_segment_file(name))
        elif len(folder.links) + len(folder.odd) >= MOST_LISTED:
            folder.left_out += 1
        elif stat.S_ISLNK(status.st_mode):
            folder.links.append(below)
        else:
            folder.odd.append((below, status.st_mode))


def first_from(base_offsets: Iterable[int], offset: int) -> int:
    """The base offset of the segment that holds an offset, with which recovery begins; the offset itself where none does."""
    return max((base for base in base_offsets if base <= offset), default=offset)
