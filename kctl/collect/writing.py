"""The folder that a copy is written to: each path is checked name by name, and no link in it is followed."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from kctl.collect.transport import Content
from kctl.errors import KctlError, Refused, file_error
from kctl.evidence.names import trouble_with_name

FOLDER_MODE = 0o700
ZEROS = memoryview(bytes(1 << 20))
LONGEST_NAP = 1.0  # seconds


class Written(NamedTuple):
    """A file as it was written."""

    size: int
    sha256: str


class Throttle:
    """At most so many bytes a second; 0 for as many as come."""

    def __init__(self, rate: int = 0) -> None:
        self._rate = rate
        self._due = monotonic()

    def took(self, count: int) -> None:
        """Wait until the bytes read so far are no more than the rate allows."""
        if not self._rate:
            return
        now = monotonic()
        self._due = max(self._due, now - LONGEST_NAP / 4) + count / self._rate
        while (ahead := self._due - monotonic()) > 0:
            sleep(min(ahead, LONGEST_NAP))


class Target:
    """The folder of a copy. Errors of the system are KctlErrors that name the file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, int] = {}

    def close(self) -> None:
        """Close the folders that are held open."""
        for descriptor in self._made.values():
            os.close(descriptor)
        self._made.clear()

    def folder_at(self, place: str) -> int:
        """A descriptor of a folder below, made where it is not there; open until another one is asked for."""
        if place in self._made:
            return self._made[place]
        self.close()
        names = place.split("/") if place else []
        for name in names:
            if trouble := trouble_with_name(name):
                raise KctlError(f"{place!r} would not be written: {trouble}", "report it: it was not checked")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.folder, flags)
        try:
            for name in names:
                with suppress(FileExistsError):
                    os.mkdir(name, FOLDER_MODE, dir_fd=descriptor)
                below = os.open(name, flags, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
        except OSError as error:
            os.close(descriptor)
            raise file_error(self.folder / place, error) from error
        self._made[place] = descriptor
        return descriptor

    def size_at(self, place: str) -> int | None:
        """The size of a regular file below; None where there is none."""
        try:
            status = os.stat(self.folder / place, follow_symlinks=False)
        except OSError:
            return None
        import stat

        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def copy(self, place: str, content: Content, took: Callable[[int], None]) -> Written:
        """Write the bytes of a file; runs of zeros become holes. `took` is told every number of bytes read."""
        folder, _, name = place.rpartition("/")
        descriptor = self._created(folder, name)
        try:
            digest, size, is_hole = hashlib.sha256(), 0, False
            for piece in content.pieces():
                is_hole = isinstance(piece, int)
                if isinstance(piece, int):
                    add_zeros(digest.update, piece)
                    os.lseek(descriptor, piece, os.SEEK_CUR)
                    size += piece
                else:
                    digest.update(piece)
                    _write(descriptor, piece)
                    size += len(piece)
                    took(len(piece))
            if is_hole:
                os.ftruncate(descriptor, size)
            self._dress(descriptor, content)
        except OSError as error:
            raise file_error(self.folder / place, error) from error
        finally:
            os.close(descriptor)
        return Written(size, digest.hexdigest())

    def write(self, place: str, data: bytes, like: Content) -> Written:
        """Write bytes that stand for a file of the source."""
        folder, _, name = place.rpartition("/")
        descriptor = self._created(folder, name)
        try:
            _write(descriptor, memoryview(data))
            self._dress(descriptor, like)
        except OSError as error:
            raise file_error(self.folder / place, error) from error
        finally:
            os.close(descriptor)
        return Written(len(data), hashlib.sha256(data).hexdigest())

    def remove(self, place: str) -> None:
        """Remove a file that was written in part."""
        folder, _, name = place.rpartition("/")
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.folder_at(folder))

    def _created(self, folder: str, name: str) -> int:
        if trouble := trouble_with_name(name):
            raise KctlError(f"{name!r} would not be written: {trouble}", "report it: it was not checked")
        descriptor = self.folder_at(folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            try:
                return os.open(name, flags, 0o600, dir_fd=descriptor)
            except FileExistsError:  # of an earlier run that was interrupted
                os.unlink(name, dir_fd=descriptor)
                return os.open(name, flags, 0o600, dir_fd=descriptor)
        except OSError as error:
            raise file_error(self.folder / folder / name, error) from error

    def _dress(self, descriptor: int, content: Content) -> None:
        """Give the copy the mode and the time of its source; the owner of the copy can read it."""
        os.fchmod(descriptor, content.entry.mode & 0o777 | 0o400)
        with suppress(OSError, OverflowError):
            os.utime(descriptor, ns=(content.entry.mtime_ns, content.entry.mtime_ns))


def _write(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def add_zeros(update: Callable[[memoryview], None], count: int) -> None:
    """Have a digest take so many zeros, a piece at a time."""
    while count:
        step = min(count, len(ZEROS))
        update(ZEROS[:step])
        count -= step


def prepare(folder: Path, roots: list[Path], *, resume: bool, shown: Iterable[str] = ()) -> Path:
    """The folder of a new copy, made where it is not there; refuses one that holds something, or lies in a source.

    To go on with a copy that was finished, or with other sources (`shown`) than a sealed one has, is refused too.
    """
    real = Path(os.path.realpath(folder))
    for root in roots:
        if real == root or real.is_relative_to(root) or root.is_relative_to(real):
            raise Refused(
                f"--to {folder}: it and the source {root} lie in each other",
                "nothing is written to a source: name a folder elsewhere",
            )
    from kctl.evidence.manifest import MANIFEST, sealed_sources

    try:
        if resume:
            if not (real / MANIFEST).is_file():
                raise Refused(
                    f"--to {folder}: there is no {MANIFEST} to go on with",
                    "leave --resume out for a new copy",
                )
            sealed = sealed_sources(real / MANIFEST)
            if sealed is not None:
                _refuse_others(folder, sealed, shown)
            return real
        os.makedirs(real, FOLDER_MODE, exist_ok=True)
        if any(os.scandir(real)):
            raise Refused(
                f"--to {folder}: it is not empty",
                "name a new folder; --resume goes on with a copy that was interrupted",
            )
    except OSError as error:
        if error.errno == errno.EEXIST:
            error = NotADirectoryError(errno.ENOTDIR, "is a file", str(folder))
        raise file_error(folder, error) from error
    return real


def _refuse_others(folder: Path, sealed: Mapping[str, str | None], shown: Iterable[str]) -> None:
    """Refuse to add to a sealed copy what was not begun in it."""
    if not any(sealed.values()):
        raise Refused(
            f"--to {folder}: the copy is finished and sealed",
            "copy more into a new folder: commands take several",
        )
    known = {*sealed, *map(os.path.realpath, sealed)}
    for source in shown:
        if source.startswith("kafka://") and source.partition("/broker-")[0] in sealed:
            continue
        if source not in known and os.path.realpath(source) not in known:
            raise Refused(
                f"--to {folder}: {source} is no source of this copy, which is sealed",
                "copy it into a new folder: commands take several",
            )
