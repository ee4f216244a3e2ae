"""Where a tier's objects lie: a local folder, or anything that `pyarrow.fs` opens (S3, GCS, Azure, HDFS).

A store is listed folder by folder with a bounded number of requests in flight, in one order every time. Objects
come and go while a broker runs: what is gone by the time it is read is the caller's finding.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from formats.secrets import redact_text
from kctl.errors import KctlError, reason_of
from kctl.findings import Place
from kctl.findings import remote as say
from kctl.scan.source import ArrowFile, LocalFile, Source
from kctl.tier.metadata.log import Say

REQUESTS_IN_FLIGHT = 8
CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS = 5, 60, 2

In = TypeVar("In")
Out = TypeVar("Out")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A key, relative to the store's root, and its size; the size is None for what is no regular file."""

    key: str
    size_in_bytes: int | None


class Store(Protocol):
    """Objects under keys."""

    name: str
    requests_in_flight: int

    def objects(self, say: Say) -> Iterator[StoredObject]:
        """Every object; a folder that cannot be listed is a finding and the rest goes on."""

    def open(self, key: str) -> Source:
        """An object; `OSError` where it is not there."""


class StoreUnreachable(KctlError):
    """The store did not answer, or does not let us in."""


def bounded_map(
    function: Callable[[In], Out], items: Iterable[In], in_flight: int
) -> Iterator[tuple[In, Out]]:
    """Results in the order of the items, never more than `in_flight` begun and not taken."""
    if in_flight <= 1:
        for item in items:
            yield item, function(item)
        return
    waiting: deque[tuple[In, Future[Out]]] = deque()
    with ThreadPoolExecutor(in_flight, thread_name_prefix="tier") as pool:
        try:
            for item in items:
                waiting.append((item, pool.submit(function, item)))
                if len(waiting) >= in_flight:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


def open_store(where: str) -> Store:
    """The store behind a path or URI."""
    if re.match(r"[a-z][a-z0-9+]*://", where) and not where.startswith("file://"):
        return ArrowStore(where)
    path = Path(unquote(urlsplit(where).path) if where.startswith("file://") else where)
    if not path.is_dir():
        problem = "is not a folder" if path.exists() else "does not exist"
        raise KctlError(f"{where}: the tier's root {problem}")
    return LocalStore(path)


class LocalStore:
    """A folder of this machine."""

    requests_in_flight = 1

    def __init__(self, root: Path, start: str = "") -> None:
        self.root = root
        self.start = (
            "" if start == "." else start
        )  # keys are relative to the root, whatever folder below it the tier is
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
                say_(say.TIER_UNREADABLE.at(Place(file=folder or "."), reason=reason_of(error)))
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
        """A file."""
        return LocalFile(self.root / key, key)


class ArrowStore:
    """A bucket and prefix of an object store, or a folder of HDFS."""

    requests_in_flight = REQUESTS_IN_FLIGHT

    def __init__(self, uri: str) -> None:
        self.name = redact_text(uri)
        try:
            self.files, self.root = _file_system(uri)
        except (OSError, ValueError, NotImplementedError, ImportError) as error:
            raise StoreUnreachable(f"{self.name}: {_one_line(error)}") from None

    def objects(self, say_: Say) -> Iterator[StoredObject]:
        """Every object, folders listed side by side."""
        from pyarrow import fs

        level = [self.root]
        is_root = True
        while level:
            below: list[str] = []
            for folder, found in bounded_map(self._listed, level, self.requests_in_flight):
                if isinstance(found, Exception):
                    if is_root:
                        raise StoreUnreachable(f"{self.name}: {_one_line(found)}")
                    say_(say.TIER_UNREADABLE.at(Place(file=self._key(folder)), reason=_one_line(found)))
                    continue
                for info in sorted(found, key=lambda one: str(one.path)):
                    if info.type == fs.FileType.Directory:
                        below.append(info.path)
                    elif info.path.rstrip("/") != folder.rstrip("/"):
                        yield StoredObject(self._key(info.path), int(info.size or 0))
            level, is_root = below, False

    def _listed(self, folder: str) -> list[Any] | Exception:
        from pyarrow import fs

        try:
            return list(self.files.get_file_info(fs.FileSelector(folder, recursive=False)))
        except OSError as error:
            return error

    def _key(self, path: str) -> str:
        return path.removeprefix(self.root).lstrip("/")

    def open(self, key: str) -> Source:
        """An object."""
        return ArrowFile(self.files, f"{self.root.rstrip('/')}/{key}", key)


def _one_line(error: BaseException) -> str:
    return redact_text(" ".join(str(error).split())) or type(error).__name__


def _file_system(uri: str) -> tuple[Any, str]:
    from pyarrow import fs

    parts = urlsplit(uri)
    if parts.scheme not in ("s3", "s3a"):
        made, path = fs.FileSystem.from_uri(uri)
        return made, str(path)
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    known = {
        "endpoint_override",
        "region",
        "scheme",
        "access_key",
        "secret_key",
        "session_token",
        "anonymous",
    }
    unknown = set(options) - known
    if unknown:
        raise ValueError(f"unknown option {sorted(unknown)[0]!r}; known are {', '.join(sorted(known))}")
    if "anonymous" in options:
        options["anonymous"] = options["anonymous"] == "true"
    if parts.username:
        options |= {"access_key": unquote(parts.username), "secret_key": unquote(parts.password or "")}
    retries = fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS)
    made = fs.S3FileSystem(
        **options, connect_timeout=CONNECT_SECONDS, request_timeout=REQUEST_SECONDS, retry_strategy=retries
    )
    return made, f"{parts.hostname}{unquote(parts.path)}".rstrip("/")
