"""Files of mirrors for another machine: what a piece of work needs of each goes with it, and is laid there again.

A worker gets names, sizes and times from whoever listed the store, and bytes from the store, with its own credentials.
Paths are told by the mirror that they lie in and the name below it, and mean the own mirror on either side.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from kctl.errors import BadValue
from kctl.stores.file_systems import HARMLESS, StoreUnreachable, file_system
from kctl.stores.mirror import MIRRORS, Description, describe, description_of, mirrors, place_file
from kctl.temporary_folder import new_folder

ACCOUNTS = ("target_service_account", "role_arn")
"""Options with an @ in names that are no secret."""


class SentMirror(NamedTuple):
    """Some files of a mirror."""

    root: str  # its folder where it was sent
    description: Description
    files: list[tuple[str, int, int]]
    """Path below the root, size in bytes, time of last change in nanoseconds."""


class SentStore(NamedTuple):
    """A store alone, for a worker to see whether it reaches it."""

    url: str
    given: str


_here: dict[str, str] = {}
"""Where the mirrors of another machine lie on this one, by their folders there."""


def stores() -> list[SentStore]:
    """Those of all mirrors; BadValue where a URL holds what is not to be sent around."""
    found = [description_of(root) for root in mirrors()]
    for one in found:
        if secret := _secret_in(one.url):
            raise BadValue(
                f"{one.given}: the URL holds {secret}, which would lie in the plans and logs of the cluster",
                "set credentials where each node looks for them: its environment, its files or its role",
            )
    return [SentStore(one.url, one.given) for one in found]


def _secret_in(url: str) -> str:
    """What in a URL may be secret; an account that Azure's containers are named with is none."""
    parts = urlsplit(url)
    options = sorted(parse_qsl(parts.query))
    if parts.password or (parts.username and parts.scheme.startswith("s3")):
        return "a key"
    named = [f"the option {name}" for name, _ in options if name not in HARMLESS]
    # Of an end point it parts user and password from the host.
    named += [
        f"a key in the option {name}" for name, value in options if "@" in value and name not in ACCOUNTS
    ]
    return named[0] if named else ""


def reached(store: SentStore) -> str | None:
    """Why this process cannot reach the store; None if it can."""
    from pyarrow import fs
    from pyarrow.lib import ArrowException

    from kctl.stores.objects import failure

    try:
        files, path = file_system(store.url)
        info = files.get_file_info(path)
    except StoreUnreachable as error:
        return error.message
    except (OSError, ValueError, ArrowException) as error:
        return f"{store.given}: {failure(error, store.given).strerror}"
    return f"{store.given}: nothing is there" if info.type == fs.FileType.NotFound else None


def sent(paths: Iterable[str]) -> list[SentMirror]:
    """What has to go along with work that is about these files and folders of mirrors, folders with all below."""
    wanted: dict[str, set[str]] = {}
    for path in paths:
        if found := _in_mirror(path):
            root, key = found
            wanted.setdefault(root, set()).add(key)
    return [
        SentMirror(root, description_of(root)._replace(part_of=root), list(_files(root, sorted(keys))))
        for root, keys in sorted(wanted.items())
    ]


def _files(root: str, keys: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    seen: set[str] = set()
    for path in (found for key in keys for found in _below(os.path.join(root, key))):
        if path not in seen:
            seen.add(path)
            with suppress(OSError):
                status = os.stat(path, follow_symlinks=False)
                yield os.path.relpath(path, root), status.st_size, status.st_mtime_ns


def _below(path: str) -> Iterator[str]:
    """The files of a folder; of a file, those whose names begin alike: a segment's own."""
    path = os.path.normpath(path)
    if os.path.isdir(path):
        for folder, _, names in os.walk(path):
            yield from (os.path.join(folder, name) for name in sorted(names))
        return
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    with suppress(OSError):
        yield from (
            os.path.join(folder, other)
            for other in sorted(os.listdir(folder))
            if other.partition(".")[0] == stem
        )


def place_of(path: str) -> tuple[str, str] | None:
    """A path of a mirror as the sender's folder and the path below it; None for any other."""
    for root, here in _here.items():
        if path == here or path.startswith(here + os.sep):
            return root, os.path.relpath(path, here)
    return None if _here else _in_mirror(path)


def _in_mirror(path: str) -> tuple[str, str] | None:
    for root in mirrors():
        if path == root or path.startswith(root + os.sep):
            return root, os.path.relpath(path, root)
    return None


def placed(root: str, key: str) -> Path:
    """The path that `place_of` told, on this machine."""
    return Path(os.path.normpath(os.path.join(_here.get(root, root), key)))


@contextmanager
def laid(parts: Sequence[SentMirror]) -> Iterator[None]:
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
                    name = f"{part.description.given}/{key}"
                    raise OSError(
                        f"{name}: no file of this name, size and time can be created on this machine"
                    )
            _here[part.root] = str(root)
        os.environ[MIRRORS] = json.dumps(list(_here.values()))
        yield
    finally:
        _here.clear()
        if before is None:
            os.environ.pop(MIRRORS, None)
        else:
            os.environ[MIRRORS] = before
        folder.remove()
