"""Files of this machine as a source of a copy. Nothing is written, locked or touched, no access time where the system allows it.

All files of a folder are opened before the first one is read: what the broker deletes meanwhile stays readable, so that
a copy has no hole.
"""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from formats.log_dir.file_names import FileState, parse_segment_file
from kctl.collect.transport import FILE, FOLDER, Content, Entry, Gone, ReadFailed, Unsettled
from kctl.errors import reason_of
from kctl.evidence.names import SEGMENT_FILE
from kctl.files import what_it_is

PIECE = 1 << 20
SMALLEST_HOLE = 1 << 16
"""Smaller runs of zeros are read as they are."""
OPEN_AT_ONCE = 4000
DELETED = "deleted before it was read"
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
FOLDER_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW


class LocalSource:
    """Folders of this machine."""

    clock_offset_ms: int | None = None
    command: str | None = None

    def __init__(self, root: Path, shown: str) -> None:
        self.root = root
        self.shown = shown
        self.left_out: list[str] = []
        self.unread: list[str] = []
        self._at_once = _most_open()
        self._buffer = memoryview(bytearray(PIECE))

    def shown_path(self, path: Path) -> str:
        """The path itself."""
        return str(path)

    def listing(self, folder: Path) -> list[Entry]:
        """The entries of a folder, links as links. Raises OSError."""
        with _opened_folder(folder) as descriptor, os.scandir(descriptor) as names:
            entries = []
            for name in names:
                with suppress(FileNotFoundError):
                    entries.append(entry_of(name.name, name.stat(follow_symlinks=False)))
            return entries

    def size_of(self, folder: Path, names: Collection[str] | None) -> int:
        """The bytes of the named files of a folder, of all its files without names; 0 where it cannot be listed."""
        try:
            entries = self.listing(folder)
        except OSError:
            return 0
        return sum(e.size for e in entries if e.kind == FILE and (names is None or e.name in names))

    def contents(
        self, folder: Path, entries: Sequence[Entry], *, settled: bool = False
    ) -> Iterator[Content | Gone]:
        """The files in the order given; a file that the broker has marked for deletion meanwhile is read as that.

        Raises Unsettled where `settled` is asked for and segments were replaced while the files were opened.
        """
        if not entries:
            return
        with ExitStack() as stack:
            try:
                descriptor = stack.enter_context(_opened_folder(folder))
            except OSError as error:
                yield from (_gone(entry, error) for entry in entries)
                return
            for start in range(0, len(entries), self._at_once):
                part = entries[start : start + self._at_once]
                yield from self._opened(descriptor, part, settled and not start)

    def _opened(self, folder: int, entries: Sequence[Entry], settled: bool) -> Iterator[Content | Gone]:
        opened: list[LocalContent | Gone] = []
        try:
            for entry in entries:
                opened.append(_open(folder, entry, self._buffer))
            if settled and not _is_settled(folder, opened):
                raise Unsettled
            yield from opened
        finally:
            for content in opened:
                if isinstance(content, LocalContent):
                    content.close()


class LocalContent:
    """An open file of this machine."""

    def __init__(self, folder: int, entry: Entry, descriptor: int, buffer: memoryview, renamed: bool) -> None:
        self.entry = entry
        self._folder, self._descriptor, self._buffer = folder, descriptor, buffer
        self._is_renamed = renamed
        self._read = 0

    @property
    def inode(self) -> int:
        """Which file it is, whatever its name has become."""
        return os.fstat(self._descriptor).st_ino

    def pieces(self) -> Iterator[memoryview | int]:
        """The bytes up to the size that the file has now; holes are not read."""
        status = os.fstat(self._descriptor)
        self.entry = entry_of(self.entry.name, status)
        size, position = status.st_size, 0
        has_holes = status.st_blocks * 512 + SMALLEST_HOLE <= size
        data_end = 0 if has_holes else size
        while position < size:
            if position >= data_end:
                start, data_end = self._next_data(position, size)
                if start > position:
                    yield start - position
                    self._read = position = start
                    continue
            wanted = min(PIECE, data_end - position)
            try:
                count = os.preadv(self._descriptor, [self._buffer[:wanted]], position)
            except OSError as error:
                raise ReadFailed(f"{reason_of(error)} at byte {position}") from error
            if not count:
                break
            position += count
            self._read = position
            yield self._buffer[:count]

    def _next_data(self, position: int, size: int) -> tuple[int, int]:
        """Where data begins at or behind a position, and where it ends; the file's end for a hole up to there."""
        try:
            start = os.lseek(self._descriptor, position, os.SEEK_DATA)
            return min(start, size), min(os.lseek(self._descriptor, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return size, size
            return position, size  # a file system that does not tell

    def what_happened(self) -> str | None:
        """Whether the file was cut, changed, renamed or deleted while it was read."""
        notes = ["renamed to .deleted before it was read"] if self._is_renamed else []
        if self._read < self.entry.size:
            notes.append(f"cut to {self._read} bytes while it was read")
        status = os.fstat(self._descriptor)
        if status.st_size > self.entry.size:
            notes.append("grew while it was read")
        elif status.st_mtime_ns != self.entry.mtime_ns:
            notes.append("changed while it was read")
        if not self._is_renamed and not self._is_still_there(status):
            notes.append("deleted or renamed while it was read")
        return "; ".join(notes) or None

    def _is_still_there(self, status: os.stat_result) -> bool:
        try:
            now = os.stat(self.entry.name, dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(now, status)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def entry_of(name: str, status: os.stat_result) -> Entry:
    """The entry of a name by its status."""
    mode = status.st_mode
    kind = FILE if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else what_it_is(mode)
    return Entry(
        name, kind, status.st_size, status.st_mtime_ns, stat.S_IMODE(mode), status.st_uid, status.st_gid
    )


def _is_settled(folder: int, opened: Sequence[LocalContent | Gone]) -> bool:
    """Whether the segment files that are there now are those that were opened, and none is about to replace others."""
    files = {
        content.entry.name: content.inode
        for content in opened
        if isinstance(content, LocalContent) and SEGMENT_FILE.fullmatch(content.entry.name)
    }
    with os.scandir(folder) as names:
        present = {name.name: name.inode() for name in names if SEGMENT_FILE.fullmatch(name.name)}
    if any(name.endswith(".swap") for name in present) or _lacks_indexes(files):
        return False
    is_one_gone = any(isinstance(c, Gone) and SEGMENT_FILE.fullmatch(c.entry.name) for c in opened)
    return not is_one_gone and all(present.get(name) == inode for name, inode in files.items())


def _lacks_indexes(names: Iterable[str]) -> bool:
    """Whether the newest segment has no index of a kind that the one before it has: a broker creates them behind the log."""
    by_base: dict[int, set[str]] = {}
    for name in names:
        named = parse_segment_file(name)
        if named and named.state is FileState.LIVE and named.suffix in (".log", ".index", ".timeindex"):
            by_base.setdefault(named.base_offset, set()).add(named.suffix)
    *_, before, newest = [set[str](), set[str](), *(by_base[base] for base in sorted(by_base))]
    return ".log" in newest and bool(before - newest)


@contextmanager
def _opened_folder(folder: Path) -> Iterator[int]:
    """A descriptor of a folder."""
    descriptor = os.open(folder, FOLDER_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(folder: int, entry: Entry, buffer: memoryview) -> LocalContent | Gone:
    for name, is_renamed in ((entry.name, False), (f"{entry.name}.deleted", True)):
        try:
            descriptor = _descriptor(name, folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            return _gone(entry, error)
        return LocalContent(folder, entry, descriptor, buffer, is_renamed)
    return Gone(entry, DELETED)


def _gone(entry: Entry, error: OSError) -> Gone:
    """What an error says of a file: that it is there no more, has become something else, or may not be read."""
    if isinstance(error, FileNotFoundError):
        return Gone(entry, DELETED)
    return Gone(entry, reason_of(error), is_there=error.errno not in (errno.EINVAL, errno.ELOOP))


def _descriptor(name: str, folder: int) -> int:
    """A descriptor of a regular file in an open folder; OSError where there is none."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if not stat.S_ISREG(mode):  # opening a device may do something
        raise OSError(errno.EINVAL, f"is {what_it_is(mode)}, not a file", name)
    try:
        descriptor = os.open(name, FLAGS | os.O_NOATIME, dir_fd=folder)
    except PermissionError:  # only the owner may leave the access time as it is
        descriptor = os.open(name, FLAGS, dir_fd=folder)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):  # it took the file's place meanwhile
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"is {what_it_is(mode)}, not a file", name)
    return descriptor


def _most_open() -> int:
    """How many files may be open at once: the limit of this process is raised as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_AT_ONCE + 200 if hard == resource.RLIM_INFINITY else min(OPEN_AT_ONCE + 200, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return max(min(OPEN_AT_ONCE, (OPEN_AT_ONCE + 200 if soft < 0 else soft) - 100), 16)
