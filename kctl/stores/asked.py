"""What is asked of stores: requests and bytes, of this process and of those that work for it.

Requests that a store's client repeats by itself are not among them: it does not say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from formats.values import Struct
from kctl.errors import KctlError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Asked(Struct):
    """Sums since this process began."""

    requests: int = 0
    bytes: int = 0

    def add(self, requests: int, size: int = 0) -> None:
        """Requests, and the bytes of their answers that are of objects."""
        self.requests += requests
        self.bytes += size


ASKED = Asked()
"""Of this process."""


class AskedFiles:
    """A file system of `pyarrow.fs` whose requests for what objects are and hold count."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def get_file_info(self, what: Any) -> Any:
        """What an object is."""
        ASKED.add(1)
        return self._files.get_file_info(what)

    def open_input_file(self, path: str) -> Any:
        """An object, for reading."""
        ASKED.add(1)
        return AskedFile(self._files.open_input_file(path))


class AskedFile:
    """An object that is open, whose reads count."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> AskedFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read_at(self, size: int, position: int) -> Any:
        """Bytes from a position on."""
        ASKED.add(1)
        data = self._file.read_at(size, position)
        ASKED.add(0, len(data))
        return data


class Counted(NamedTuple):
    """The result of some work, and what it asked."""

    result: object
    requests: int
    bytes: int


def counted(function: Callable[[Item], Result], item: Item) -> Counted:
    """function(item) in a worker process, with the requests and bytes that it took."""
    requests, size = ASKED.requests, ASKED.bytes
    result = function(item)
    return Counted(result, ASKED.requests - requests, ASKED.bytes - size)


def taken(done: Counted) -> object:
    """The result of a worker, whose requests and bytes are added to those of this process. Raises its KctlError."""
    ASKED.add(done.requests, done.bytes)
    if isinstance(done.result, KctlError):
        raise done.result
    return done.result
