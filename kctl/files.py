"""Files that are read: regular ones, opened without waiting, and whole only up to a limit.

In the place of any file of evidence may lie a FIFO, whose opening waits for a writer, a device without an end, a
link that leads out of the evidence, or a sparse file of many gigabytes. Every file that kctl reads is opened here, and
what stands for an object of a store (`kctl.stores.mirror`) is read from there.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader, FileIO
from pathlib import Path

from kctl.stores.mirror import mirror_of, stream

LARGEST_TEXT = 16 << 20
"""Bytes of a file of lines, of TOML or of JSON: a checkpoint of 200,000 partitions has less."""
LARGEST_TABLE = 32 << 20
"""Bytes of an index or a snapshot without its padding: that of the largest segment has 4 MiB by default."""
PIECE = 1 << 20
# The rows of an index are 8, 12 or 34 bytes wide: a multiple of all of them.
ROWS = 408

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a symbolic link"),
)


class NotRegular(OSError):
    """The path is not a regular file; `mode` is its `st_mode`."""

    def __init__(self, mode: int, path: str) -> None:
        super().__init__(errno.EINVAL, f"is {what_it_is(mode)}, not a file", path)
        self.mode = mode


def what_it_is(mode: int) -> str:
    """The kind of a path that is not a regular file."""
    return next((kind for is_kind, kind in KINDS if is_kind(mode)), "something else")


def descriptor_of(path: Path | str, *, follow: bool = False) -> int:
    """A descriptor of a regular file for reading; `OSError` where it cannot be opened, `NotRegular` where it is none.

    With `follow`, which is for paths that the user named, a link in its place is followed.
    """
    name = os.fspath(path)
    if mirror_of(name):
        raise OSError(errno.EOPNOTSUPP, "an object of a store has no descriptor", name)
    mode = os.stat(name, follow_symlinks=follow).st_mode
    if not stat.S_ISREG(mode):  # opening a device may do something
        raise NotRegular(mode, name)
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(name, flags)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):  # it took the file's place meanwhile
        os.close(descriptor)
        raise NotRegular(mode, name)
    return descriptor


def open_file(path: Path | str, *, follow: bool = False) -> BufferedReader:
    """A regular file or the object of a store, opened for reading; errors as of `descriptor_of`."""
    if mirror_of(os.fspath(path)) and (remote := stream(os.fspath(path))):
        return BufferedReader(remote, PIECE)
    return os.fdopen(descriptor_of(path, follow=follow), "rb")


def read_whole(path: Path | str, limit: int = LARGEST_TEXT, *, follow: bool = False) -> bytes:
    """All bytes of a file; `OSError` where it has more than `limit`, and as of `descriptor_of`."""
    data, size = _small(path, limit, follow=follow)
    if data is None:
        raise _too_large(path, size, limit)
    return data


def _small(path: Path | str, limit: int, *, follow: bool = False) -> tuple[bytes | None, int]:
    """All bytes of a file and its size; None in their place where they are more than `limit`."""
    if mirror_of(os.fspath(path)):
        with open_file(path, follow=follow) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            return file.read(size) if size <= limit else None, size
    descriptor = descriptor_of(path, follow=follow)
    try:
        size = os.fstat(descriptor).st_size
        if size > limit:  # what is asked for is allocated, however little comes
            return None, size
        data = os.read(descriptor, size)
        while len(data) < size and (more := os.read(descriptor, size - len(data))):
            data += more
        return data, size
    finally:
        os.close(descriptor)


def read_text(path: Path | str, limit: int = LARGEST_TEXT, *, follow: bool = False) -> str:
    """The text of a UTF-8 file; `UnicodeDecodeError` where it is none, and as of `read_whole`."""
    return read_whole(path, limit, follow=follow).decode("utf-8")


def read_lenient(path: Path | str, limit: int = LARGEST_TEXT) -> str:
    """The text of a file of evidence, U+FFFD for what is no UTF-8; errors as of `read_whole`."""
    return read_whole(path, limit).decode("utf-8", "replace")


def read_padded(path: Path | str, limit: int = LARGEST_TABLE) -> bytes:
    """The bytes of an index, without the zeros behind `limit`: a broker allocates an index in advance.

    What is left out is a whole number of rows. `OSError` where other bytes than zeros are behind the limit.
    """
    data, size = _small(path, limit)
    if data is not None:
        return data
    with open_file(path) as file:
        if not _is_zero(file, limit, size):
            raise _too_large(path, size, limit)
        file.seek(0)
        return file.read(limit - (limit - size) % ROWS)


def _is_zero(file: BufferedReader, start: int, end: int) -> bool:
    """Whether nothing but zeros is in a range; holes of a file are not read."""
    has_holes = isinstance(file.raw, FileIO)
    while start < end:
        try:
            start = os.lseek(file.fileno(), start, os.SEEK_DATA) if has_holes else start
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole up to the end
                break
            raise
        file.seek(start)
        data = file.read(PIECE)
        if data.strip(b"\0"):
            return False
        if not data:
            break
        start += len(data)
    return True


def _too_large(path: Path | str, size: int, limit: int) -> OSError:
    reason = f"holds {size:,} bytes, and such a file has at most {limit:,}"
    return OSError(errno.EFBIG, reason, os.fspath(path))
