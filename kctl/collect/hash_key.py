"""The key of hashes that stand for contents: a file of the one who collects, never part of a copy."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from formats.log.hashed_contents import ContentHash
from kctl.errors import Refused, UnreadableFile, file_error
from kctl.files import read_whole

LEAST, LARGEST = 16, 4096


def content_hash_of(path: Path, others: Iterable[Path]) -> ContentHash:
    """The hash by the key in a file, which is made with mode 600 where it is not there.

    Raises Refused for a file that others may read, or that lies in one of the folders `others`; UnreadableFile for one
    that holds no key.
    """
    real = Path(os.path.realpath(path))
    for folder in others:
        if real.is_relative_to(os.path.realpath(folder)):
            raise Refused(
                f"--hash-key {path}: it lies in {folder}",
                "the key is given to nobody who gets the copy: name a file elsewhere",
            )
    try:
        key = secrets.token_hex(32).encode()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        key = _key_in(path)
    except OSError as error:
        raise file_error(path, error) from error
    return ContentHash(key)


def _key_in(path: Path) -> bytes:
    try:
        mode = os.stat(path).st_mode
        key = read_whole(path, LARGEST, follow=True).strip()
    except OSError as error:
        raise file_error(path, error) from error
    if stat.S_IMODE(mode) & 0o077:
        raise Refused(f"--hash-key {path}: others may read it", f"chmod 600 {path}")
    if len(key) < LEAST:
        raise UnreadableFile(
            f"{path}: a key has {LEAST} bytes or more", "name a file that is not there: it is made with a key"
        )
    return key
