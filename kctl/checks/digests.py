"""Digests of files, which tell whose bytes a report is about: made of the bytes that the checks read, not read again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.values import Struct
from kctl.files import open_file
from kctl.scan.source import Source, opened_source

ALGORITHMS = ("sha256", "blake2b")
PIECE = 1 << 20
BESIDE = 1 << 18  # bytes from which on a thread is worth its start


class Digest(Struct):
    """The digest of a file in hexadecimal; None until all its bytes were read."""

    algorithm: str
    value: str | None = None

    def take(self, data: bytes) -> None:
        """The bytes of the whole file."""
        self.value = hashlib.new(self.algorithm, data).hexdigest()


def digest_of(path: Path, algorithm: str = "sha256") -> tuple[str | None, int]:
    """The digest of a regular file, in hexadecimal, and its size; None where it cannot be read."""
    total, size = hashlib.new(algorithm), 0
    try:
        with open_file(path, follow=True) as file:
            while piece := file.read(PIECE):
                total.update(piece)
                size += len(piece)
    except OSError:
        return None, size
    return total.hexdigest(), size


@contextmanager
def opened_digested(path: Path, digest: Digest | None, opened: Source | None = None) -> Iterator[Source]:
    """As `opened_source`; at the end the digest has its value, if it is wanted and was not known before.

    `opened` is the source, if it is open already.
    """
    with closing(opened) if opened else opened_source(path) as source:
        if digest is None or digest.value is not None:
            yield source
            return
        digested = DigestedSource(source, digest)
        try:
            yield digested
        finally:
            digested.close()


class DigestedSource:
    """A source whose bytes are hashed in the order of the file as they are read, large blocks in a thread beside.

    What has not been read by the end is read then. A file that ends before its size says has no digest.
    """

    def __init__(self, source: Source, digest: Digest) -> None:
        self.name, self.size = source.name, source.size
        self._source, self._digest = source, digest
        self._total = hashlib.new(digest.algorithm)
        self._done = 0  # bytes that are hashed, or being hashed
        self._beside: Thread | None = None

    def read_at(self, position: int, size: int) -> bytes:
        """Bytes from position on, fewer where it ends."""
        data = self._source.read_at(position, size)
        self._take(position, memoryview(data))
        return data

    def read_into(self, position: int, room: NDArray[np.uint8]) -> int:
        """Fill the room from position on; how many bytes there were."""
        self._wait()  # the room may be what is being hashed
        size = self._source.read_into(position, room)
        self._take(position, memoryview(room.data)[:size])
        return size

    def whole(self) -> NDArray[np.uint8] | None:
        """None, so that callers read through this source, which hashes the bytes."""
        return None

    def current_size(self) -> int:
        """Its size now; `OSError` where it is gone."""
        return self._source.current_size()

    def _take(self, position: int, data: memoryview[Any]) -> None:
        data = data[: max(0, self.size - position)]
        if not position <= self._done < position + len(data):
            return
        new = data[self._done - position :]
        self._done = position + len(data)
        self._wait()
        if len(new) < BESIDE:
            self._total.update(new)
        else:
            self._beside = Thread(target=self._total.update, args=(new,))
            self._beside.start()

    def _wait(self) -> None:
        if self._beside:
            self._beside.join()
            self._beside = None

    def close(self) -> None:
        """Hash what is left; the source stays open."""
        try:
            while self._done < self.size and self.read_at(self._done, PIECE):
                pass
        except OSError:
            pass  # a finding of the scan
        finally:
            self._wait()
        if self._done == self.size:
            self._digest.value = self._total.hexdigest()
