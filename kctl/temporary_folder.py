"""Folders for what is kept while a command runs, and the end of those whose process was killed.

Its owner holds a lock on a folder, which the kernel releases however the process ends. A folder that nobody has locked
belongs to a process that is gone, in whichever container it ran.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

# What the folders hold. Names in the temporary folder begin with `kctl-` and one of these.
KINDS = ("collect", "live", "logs", "metadata", "spark", "sql", "stdin", "store", "verify")
LONGEST_SECONDS = 1.0
"""What is still there after this time of removing is left to the next process."""


class TemporaryFolder(NamedTuple):
    """A folder of this process; its path has no symbolic links. It goes by `remove`, or after this process ended."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def new_folder(kind: str) -> TemporaryFolder:
    """A folder of this process; removes those of processes that are gone, of KINDS and of this kind.

    Raises OSError where none can be made.
    """
    _remove_left_ones(kind)
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"kctl-{kind}-")).resolve()
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:  # another process found it before it was locked
            continue
        with suppress(OSError):  # a file system without locks: no process removes what it cannot lock
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:  # else another process held the lock and removed it
            return TemporaryFolder(path, descriptor)
        os.close(descriptor)


@contextmanager
def temporary_folder(kind: str) -> Iterator[Path]:
    """The same for as long as the context lasts."""
    folder = new_folder(kind)
    try:
        yield folder.path
    finally:
        folder.remove()


def _remove_left_ones(kind: str) -> None:
    is_ours = re.compile(f"kctl-({'|'.join((*KINDS, re.escape(kind)))})-")
    end = time.monotonic() + LONGEST_SECONDS
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if is_ours.match(entry.name) and time.monotonic() < end:
                with suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    """Remove a folder of this user that no process has locked. Raises OSError where it is none, or is locked."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == 0o700:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)
