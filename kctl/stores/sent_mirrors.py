"""Mirrored files for another machine: what a piece of work needs of them is sent along and recreated there.

A worker gets names, sizes and times from the process that listed the store, and reads bytes from the store with its
own credentials. A path is sent as its mirror and the name below it, and means the reader's own mirror.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from kctl.errors import BadValue
from kctl.stores.file_systems import NOT_SECRET, StoreUnreachable, file_system, first_answer
from kctl.stores.mirror import MIRRORS, Description, describe, description_of, mirrors, place_file
from kctl.temporary_folder import new_folder

ACCOUNTS = ("target_service_account", "role_arn")
"""Options that may have an @ in names that are no secret."""


class SentMirror(NamedTuple):
    """Some files of a mirror."""

    root: str  # its folder on the sender's machine
    description: Description
    files: list[tuple[str, int, int]]
    """Path below the root, size in bytes, time of last change in nanoseconds."""


class SentStore(NamedTuple):
    """A store by itself, for a worker to test whether it can reach it."""

    url: str
    shown_url: str


_local_roots: dict[str, str] = {}
"""The folders of mirrors sent by another machine on this one, by their folders on that machine."""


def stores() -> list[SentStore]:
    """The stores of all mirrors. Raises BadValue if a URL has secrets that must not be sent."""
    descriptions = [description_of(root) for root in mirrors()]
    for description in descriptions:
        if secret := _secret_in(description.url):
            raise BadValue(
                f"{description.shown_url}: the URL holds {secret}, which would lie in the plans and logs of the cluster",
                "set credentials where each node looks for them: its environment, its files or its role",
            )
    return [SentStore(description.url, description.shown_url) for description in descriptions]


def _secret_in(url: str) -> str:
    """What in a URL may be secret, "" if nothing; the account name in an Azure URL is none."""
    parts = urlsplit(url)
    options = sorted(parse_qsl(parts.query))
    if parts.password or (parts.username and parts.scheme.startswith("s3")):
        return "a key"
    secrets_named = [f"the option {name}" for name, _ in options if name not in NOT_SECRET]
    # In an end point it separates user and password from the host.
    secrets_named += [
        f"a key in the option {name}" for name, value in options if "@" in value and name not in ACCOUNTS
    ]
    return secrets_named[0] if secrets_named else ""


def _info(url: str) -> Any:
    files, path = file_system(url)
    return files.get_file_info(path)


def reached(store: SentStore) -> str | None:
    """Why this process cannot reach the store; None if it can."""
    from pyarrow import fs
    from pyarrow.lib import ArrowException

    from kctl.stores.objects import failure

    try:
        info = first_answer(store.url, lambda: _info(store.url))
    except StoreUnreachable as error:
        return error.message
    except (OSError, ValueError, ArrowException) as error:
        return f"{store.shown_url}: {failure(error, store.shown_url).strerror}"
    return f"{store.shown_url}: nothing is there" if info.type == fs.FileType.NotFound else None


def mirrors_for(paths: Iterable[str]) -> list[SentMirror]:
    """The mirrored files that work on these files and folders needs; folders include everything below."""
    keys_by_root: dict[str, set[str]] = {}
    for path in paths:
        if location := _in_mirror(path):
            root, key = location
            keys_by_root.setdefault(root, set()).add(key)
    return [
        SentMirror(root, description_of(root)._replace(part_of=root), list(_files(root, sorted(keys))))
        for root, keys in sorted(keys_by_root.items())
    ]


def _files(root: str, keys: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    listed: set[str] = set()
    for path in (file_path for key in keys for file_path in _below(os.path.join(root, key))):
        if path not in listed:
            listed.add(path)
            with suppress(OSError):
                status = os.stat(path, follow_symlinks=False)
                yield os.path.relpath(path, root), status.st_size, status.st_mtime_ns


def _below(path: str) -> Iterator[str]:
    """The files of a folder; for a file, the files with the same stem, such as a segment's indexes."""
    path = os.path.normpath(path)
    if os.path.isdir(path):
        for folder, _, names in os.walk(path):
            yield from (os.path.join(folder, name) for name in sorted(names))
        return
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    with suppress(OSError):
        yield from (
            os.path.join(folder, neighbor)
            for neighbor in sorted(os.listdir(folder))
            if neighbor.partition(".")[0] == stem
        )


def place_of(path: str) -> tuple[str, str] | None:
    """A path of a mirror as the sender's folder and the path below it; None for other paths."""
    for root, local_root in _local_roots.items():
        if path == local_root or path.startswith(local_root + os.sep):
            return root, os.path.relpath(path, local_root)
    return None if _local_roots else _in_mirror(path)


def _in_mirror(path: str) -> tuple[str, str] | None:
    for root in mirrors():
        if path == root or path.startswith(root + os.sep):
            return root, os.path.relpath(path, root)
    return None


def placed(root: str, key: str) -> Path:
    """The path on this machine for a result of `place_of`."""
    return Path(os.path.normpath(os.path.join(_local_roots.get(root, root), key)))


@contextmanager
def mirrors_laid(parts: Sequence[SentMirror]) -> Iterator[None]:
    """Create mirrors of what was sent on this machine, for the duration of the block. Raises OSError."""
    if not parts:
        yield
        return
    before = os.environ.get(MIRRORS)
    folder = new_folder("store")
    try:
        for number, part in enumerate(parts):
            root = folder.path.joinpath(str(number), os.path.basename(part.root))
            root.mkdir(parents=True, mode=0o700)
            describe(root, part.description)
            for key, size, modified in part.files:
                if not place_file(root / key, size, modified):
                    name = f"{part.description.shown_url}/{key}"
                    raise OSError(
                        f"{name}: no file of this name, size and time can be created on this machine"
                    )
            _local_roots[part.root] = str(root)
        os.environ[MIRRORS] = json.dumps(list(_local_roots.values()))
        yield
    finally:
        _local_roots.clear()
        if before is None:
            os.environ.pop(MIRRORS, None)
        else:
            os.environ[MIRRORS] = before
        folder.remove()
