"""Requests to stores and bytes read from them, by this process and by those that work for it.

Requests that a store's client repeats by itself are not counted, since it does not report them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from formats.values import Struct
from kctl.errors import KctlError

Item = TypeVar("Item")
Result = TypeVar("Result")


class RequestCounts(Struct):
    """Requests and bytes since this process began."""

    requests: int = 0
    bytes: int = 0

    def add(self, requests: int, size: int = 0) -> None:
        """Add requests, and the bytes of objects in their answers."""
        self.requests += requests
        self.bytes += size


REQUESTS = RequestCounts()
"""The counts of this process."""


class CountingFiles:
    """A file system of `pyarrow.fs` whose requests are counted."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def get_file_info(self, what: Any) -> Any:
        REQUESTS.add(1)
        return self._files.get_file_info(what)

    def open_input_file(self, path: str) -> Any:
        REQUESTS.add(1)
        return CountingFile(self._files.open_input_file(path))


class CountingFile:
    """An open object whose reads are counted."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> CountingFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read_at(self, size: int, position: int) -> Any:
        REQUESTS.add(1)
        data = self._file.read_at(size, position)
        REQUESTS.add(0, len(data))
        return data


class CountedResult(NamedTuple):
    """A result, and the requests and bytes that it took."""

    result: object
    requests: int
    bytes: int


def run_counted(function: Callable[[Item], Result], item: Item) -> CountedResult:
    """function(item) in a worker process, with the requests and bytes that it took."""
    requests, size = REQUESTS.requests, REQUESTS.bytes
    result = function(item)
    return CountedResult(result, REQUESTS.requests - requests, REQUESTS.bytes - size)


def result_of(counted: CountedResult) -> object:
    """A worker's result, after adding its counts to those of this process. Raises its KctlError."""
    REQUESTS.add(counted.requests, counted.bytes)
    if isinstance(counted.result, KctlError):
        raise counted.result
    return counted.result
