"""Where the bytes of a segment come from: a local file, or the object of a store.

A source gives fewer bytes than asked only where it ends. Local files are read into memory that the reader owns and
never mapped: a file that a running broker truncates would end the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from formats.log.other_systems import HEAD, TAIL, Foreign, foreign
from kctl.files import descriptor_of
from kctl.stores.mirror import stored
from kctl.stores.objects import ObjectSource

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Source(Protocol):
    """Bytes that can be read at a position."""

    @property
    def name(self) -> str:
        """What findings call it."""

    @property
    def size(self) -> int:
        """Its size in bytes when it was opened."""

    def read_at(self, position: int, size: int) -> bytes:
        """Bytes from position on, fewer where it ends."""

    def read_into(self, position: int, room: NDArray[np.uint8]) -> int:
        """Fill the room from position on; how many bytes there were."""

    def whole(self) -> NDArray[np.uint8] | None:
        """All bytes, if they are in memory already."""

    def current_size(self) -> int:
        """Its size now; `OSError` where it is gone."""

    def close(self) -> None: ...


LAST_POSITION = 2**63 - 1  # that the system can be asked for


class LocalFile:
    """A file of this machine, opened for reading only; `follow` as in `kctl.files`."""

    def __init__(self, path: Path | str, name: str | None = None, *, follow: bool = False) -> None:
        self.name = name if name is not None else os.fspath(path)
        self.path = path
        self._file = descriptor_of(path, follow=follow)
        self.size = os.fstat(self._file).st_size

    def read_at(self, position: int, size: int) -> bytes:
        """Bytes from position on, fewer where it ends."""
        return os.pread(self._file, size, position) if position <= LAST_POSITION else b""

    def read_into(self, position: int, room: NDArray[np.uint8]) -> int:
        """Fill the room from position on; how many bytes there were."""
        view, size = memoryview(room.data), 0
        while size < len(view):
            count = os.preadv(self._file, [view[size:]], position + size)
            if not count:
                break
            size += count
        return size

    def whole(self) -> None:
        """None: the bytes are not in memory."""

    def current_size(self) -> int:
        """The size of the file that is open; `OSError` where its name is gone."""
        os.stat(self.path)
        return os.fstat(self._file).st_size

    def close(self) -> None:
        """Give the file back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def open_source(
    path: Path | str, name: str | None = None, *, follow: bool = False
) -> LocalFile | ObjectSource:
    """A file, or the object of a store that it stands for; errors as of `kctl.files.descriptor_of`."""
    if source := stored(os.fspath(path)):
        return source
    return LocalFile(path, name, follow=follow)


def foreign_in(source: Source) -> Foreign | None:
    """Which other system wrote the file; None where it may be Kafka's."""
    return foreign(source.read_at(0, HEAD), source.read_at(max(0, source.size - TAIL), TAIL))


@contextmanager
def opened_source(path: Path | str, name: str | None = None) -> Iterator[Source]:
    """As `open_source`, closed at the end."""
    source = open_source(path, name)
    try:
        yield source
    finally:
        source.close()
