"""One object of a store, read in large ranges, with a check afterwards that it is still the one that was listed.

The stores' client libraries hide errors: that of S3 fills a short answer with NUL bytes, mixes two versions of an
object that is replaced during a read, and hides the cause of an error of a small read; that of GCS raises
ValueError, that of Azure ArrowException.
"""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kctl.stores.file_systems import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RANGE = 8 << 20
"""Bytes of one request: 13 for 100 MB, where reads of 64 KiB take 1,600."""
LEGIBLE = 4096  # bytes of a read whose error the client of S3 shows
# Words in clients' messages, and the matching system error. Everything else is an I/O error.
CAUSES = (
    (("NO_SUCH_KEY", "NO_SUCH_BUCKET", "NOT_FOUND", "404", "Not Found", "not found"), errno.ENOENT, "the object does not exist"),
    (("ExpiredToken", "has expired"), errno.EACCES, "the credentials have expired"),
    (("ACCESS_DENIED", "AccessDenied", "403", "Forbidden", "Authorization", "PERMISSION_DENIED", "Permission denied",
      "SIGNATURE_DOES_NOT_MATCH", "INVALID_ACCESS_KEY"), errno.EACCES, "the store denies access"),
    (("SLOW_DOWN", "SlowDown", "429", "503"), errno.EBUSY, "the store asks for fewer requests"),
    (("InvalidRange", "416"), errno.ESTALE, "the object is shorter than it was when it was listed"),
    (("NETWORK_CONNECTION", "curlCode", "Could not connect", "Connection refused", "timed out"), errno.EIO,
     "the connection to the store failed"),
)  # fmt: skip


LONGEST_WORDS = 300  # characters of a client's message; the address that it tried is near the end


class Replaced(OSError):
    """The object is no longer the one that was listed; what was read is of one, the other or both."""

    def __init__(self, path: str, was: str, now: str) -> None:
        super().__init__(errno.ESTALE, f"was replaced while it was read ({was}, now {now})", path)


def failure(error: BaseException, path: str) -> OSError:
    """An error of a store's client as an OSError."""
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "the object does not exist", path)
    message = one_line(error)
    shortened = message if len(message) <= LONGEST_WORDS else message[: LONGEST_WORDS - 2] + " …"
    for words, number, cause in CAUSES:
        if any(_says(message, word) for word in words):
            return OSError(number, f"{cause} ({shortened})", path)
    return OSError(errno.EIO, shortened, path)


def _says(message: str, word: str) -> bool:
    """Whether a message has a word; the number of a status must stand alone, not within a port or a name."""
    return bool(re.search(rf"(?<![\w/.-]){word}(?![\w/-])", message)) if word.isdigit() else word in message


class ObjectSource:
    """An object as a source of bytes (`kctl.scan.source.Source`).

    `size` (bytes) and `modified` (nanoseconds) are those of the listing. Raises OSError if it cannot be read; `ask_store`
    is called then and may raise too, since the store may be gone, not the object.
    """

    def __init__(
        self, files: Any, path: str, size: int, modified: int | None, name: str,
        ask_store: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.name, self.size = name, size
        self._ask_store = ask_store
        self._files, self._path, self._modified = files, path, modified
        self._start, self._buffer = 0, b""
        self._file: Any = None

    @classmethod
    def opened(cls, files: Any, path: str, name: str) -> ObjectSource:
        """An object that was not listed. Raises OSError."""
        source = cls(files, path, -1, None, name)
        source._open()
        return source

    def read_at(self, position: int, size: int) -> bytes:
        """Bytes from a position on, fewer at its end."""
        size = max(0, min(size, self.size - position))
        if not size:
            return b""
        if size >= RANGE:
            return self._get(position, size)
        if not self._start <= position <= position + size <= self._start + len(self._buffer):
            self._start = position
            self._buffer = self._get(position, min(RANGE, self.size - position))
        return self._buffer[position - self._start : position - self._start + size]

    def read_into(self, position: int, room: NDArray[np.uint8]) -> int:
        """Fill the room from a position on; return how many bytes were read."""
        import numpy as np

        filled = 0
        while filled < len(room):
            data = self.read_at(position + filled, len(room) - filled)
            if not data:
                break
            room[filled : filled + len(data)] = np.frombuffer(data, np.uint8)
            filled += len(data)
        return filled

    def _open(self) -> None:
        from pyarrow.lib import ArrowException

        try:
            self._file = self._files.open_input_file(self._path)
            size = int(self._file.size())
        except (OSError, ValueError, ArrowException) as error:
            raise self._failed(error) from None
        if self.size < 0:
            self.size = size
        elif size != self.size:
            raise Replaced(self.name, f"{self.size} bytes", f"{size}")

    def _get(self, position: int, size: int) -> bytes:
        from pyarrow.lib import ArrowException

        if self._file is None:
            self._open()
        try:
            data = bytes(self._file.read_at(size, position))
        except (OSError, ValueError, ArrowException) as error:
            raise self._cause(error, size) from None
        if len(data) < size:
            raise Replaced(self.name, f"{self.size} bytes", f"{position + len(data)}")
        return data

    def _cause(self, error: BaseException, size: int) -> OSError:
        """The error; reads again if the first message hides its cause."""
        from pyarrow.lib import ArrowException

        if isinstance(error, ValueError) or "INTERNAL_FAILURE" in str(error):
            try:
                with self._files.open_input_file(self._path) as file:
                    file.read_at(max(LEGIBLE, size), 0)
            except (OSError, ValueError, ArrowException) as better:
                error = better
        return self._failed(error)

    def _failed(self, error: BaseException) -> OSError:
        """The error as one of this object, after asking whether the store is gone."""
        failed = failure(error, self.name)
        if failed.errno not in (errno.ENOENT, errno.ESTALE):
            self._ask_store()
        return failed

    def whole(self) -> None:
        """None: the bytes are not in memory."""

    def current_size(self) -> int:
        """Its size. Raises OSError if it is gone or was replaced."""
        from pyarrow import fs
        from pyarrow.lib import ArrowException

        try:
            info = self._files.get_file_info(self._path)
        except (OSError, ValueError, ArrowException) as error:
            raise self._failed(error) from None
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, "the object does not exist", self.name)
        if info.size != self.size:
            raise Replaced(self.name, f"{self.size} bytes", f"{info.size}")
        if self._modified is not None and info.mtime_ns is not None and info.mtime_ns != self._modified:
            raise Replaced(self.name, f"of {self._modified} ns", f"{info.mtime_ns}")
        return self.size

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class ObjectStream(io.RawIOBase):
    """An object as a file; a failed read is an OSError, and so is a replacement found at its end."""

    def __init__(self, source: ObjectSource) -> None:
        self._source, self._position = source, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, room: Any) -> int:
        view = memoryview(room).cast("B")
        data = self._source.read_at(self._position, len(view))
        view[: len(data)] = data
        self._position += len(data)
        if data and self._position >= self._source.size:
            self._source.current_size()
        return len(data)

    def close(self) -> None:
        self._source.close()
        super().close()
