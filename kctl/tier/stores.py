"""Where a tier's objects are: a local folder, or anything that `pyarrow.fs` opens (S3, GCS, Azure, HDFS).

A store is listed folder by folder with a bounded number of concurrent requests, always in the same order. Objects
come and go while a broker runs: an object that is gone when it is read is the caller's finding.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from formats.secrets import redact_text
from formats.values import Struct
from kctl.errors import KctlError, reason_of, two_slashes
from kctl.findings import Place
from kctl.findings import remote as codes
from kctl.scan.source import Source, open_source
from kctl.stores.file_systems import StoreUnreachable, file_system, first_answer, is_url
from kctl.stores.objects import ObjectSource, failure
from kctl.tier.metadata.log import Say

REQUESTS_IN_FLIGHT = 8

In = TypeVar("In")
Out = TypeVar("Out")


class StoredObject(Struct, frozen=True):
    """A key relative to the store's root, and its size; None if it is not a regular file."""

    key: str
    size_in_bytes: int | None


class Store(Protocol):
    """Objects by key."""

    name: str
    requests_in_flight: int

    def objects(self, say: Say) -> Iterator[StoredObject]:
        """Every object; a folder that cannot be listed is a finding, and listing goes on."""

    def open(self, key: str) -> Source:
        """An object; `OSError` if it does not exist."""


def bounded_map(
    function: Callable[[In], Out], items: Iterable[In], in_flight: int
) -> Iterator[tuple[In, Out]]:
    """Results in the order of the items; at most `in_flight` calls are running or waiting to be taken."""
    if in_flight <= 1:
        for item in items:
            yield item, function(item)
        return
    begun: deque[tuple[In, Future[Out]]] = deque()
    with ThreadPoolExecutor(in_flight, thread_name_prefix="tier") as pool:
        try:
            for item in items:
                begun.append((item, pool.submit(function, item)))
                if len(begun) >= in_flight:
                    first, future = begun.popleft()
                    yield first, future.result()
            while begun:
                first, future = begun.popleft()
                yield first, future.result()
        finally:
            for _, future in begun:
                future.cancel()


def open_store(where: str) -> Store:
    """The store behind a path or URI."""
    if is_url(where):
        return ArrowStore(where)
    path = Path(unquote(urlsplit(where).path) if where.startswith("file://") else where)
    if not path.is_dir():
        problem = "is not a folder" if path.exists() else "does not exist"
        raise KctlError(
            f"{where}: the tier's root {problem}",
            two_slashes(where) or "name the folder or URI that holds the objects",
        )
    return LocalStore(path)


class LocalStore:
    """A folder on this machine."""

    requests_in_flight = 1

    def __init__(self, root: Path, start: str = "") -> None:
        self.root = root
        # Keys are relative to the root, whatever folder below it the tier is.
        self.start = "" if start == "." else start
        self.name = str(root / start)

    def objects(self, say_: Say) -> Iterator[StoredObject]:
        """Every file; links are not followed."""
        folders = deque([self.start])
        while folders:
            folder = folders.popleft()
            try:
                with os.scandir(self.root / folder) as listed:
                    entries = sorted(listed, key=lambda entry: entry.name)
            except OSError as error:
                say_(codes.TIER_UNREADABLE.at(Place(file=folder or "."), reason=reason_of(error)))
                continue
            for entry in entries:
                key = f"{folder}/{entry.name}" if folder else entry.name
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # gone since it was listed
                if stat.S_ISDIR(status.st_mode):
                    folders.append(key)
                else:
                    yield StoredObject(key, status.st_size if stat.S_ISREG(status.st_mode) else None)

    def open(self, key: str) -> Source:
        return open_source(self.root / key, key)


def _opened(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it, once its store answers at all."""
    from pyarrow.lib import ArrowException

    files, root = file_system(url)
    with suppress(OSError, ValueError, ArrowException):  # the listing fails for the same reason, and says so
        files.get_file_info(root)
    return files, root


class ArrowStore:
    """A bucket and prefix of an object store, or a folder of HDFS."""

    requests_in_flight = REQUESTS_IN_FLIGHT

    def __init__(self, url: str) -> None:
        self.name = redact_text(url)
        self.files, self.root = first_answer(url, lambda: _opened(url))
        # The client of Google's store shows no folders, only all that is below them (apache/arrow issue 35993).
        self.is_flat = self.files.type_name == "gcs"

    def objects(self, say_: Say) -> Iterator[StoredObject]:
        """Every object; several folders are listed at once."""
        from pyarrow import fs

        level = [self.root]
        is_root = True
        while level:
            below: list[str] = []
            for folder, listing in bounded_map(self._listed, level, self.requests_in_flight):
                if isinstance(listing, OSError):
                    if is_root:
                        raise StoreUnreachable(f"{self.name}: {listing.strerror}")
                    say_(
                        codes.TIER_UNREADABLE.at(Place(file=self._key(folder)), reason=str(listing.strerror))
                    )
                    continue
                for info in sorted(listing, key=lambda info: str(info.path)):
                    if info.type == fs.FileType.Directory:
                        below += [] if self.is_flat else [info.path]
                    elif info.path.rstrip("/") != folder.rstrip("/"):
                        yield StoredObject(self._key(info.path), int(info.size or 0))
            level, is_root = below, False

    def _listed(self, folder: str) -> list[Any] | OSError:
        from pyarrow import fs
        from pyarrow.lib import ArrowException

        try:
            return list(self.files.get_file_info(fs.FileSelector(folder, recursive=self.is_flat)))
        except (OSError, ValueError, ArrowException) as error:
            return failure(error, folder)

    def _key(self, path: str) -> str:
        return path.removeprefix(self.root).lstrip("/")

    def open(self, key: str) -> Source:
        return ObjectSource.opened(self.files, f"{self.root.rstrip('/')}/{key}", key)
