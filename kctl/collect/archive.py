"""A copy in one file: a tar of what its manifest names, compressed by zstd, and the folder that stands for it while a command runs.

The manifest is the first member: by it such a file is known. What is in it is trusted no more than any other tar.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.values import Struct
from kctl.collect.tar_stream import BadTar, TarStream
from kctl.collect.transport import FILE, Entry
from kctl.collect.verification import last_files
from kctl.collect.writing import Target
from kctl.errors import KctlError, Refused, UnreadableFile, file_error
from kctl.evidence.manifest import BEGINNING, MANIFEST, FileLine, lines_of, sealed_sources
from kctl.evidence.names import trouble_with_name
from kctl.files import open_file
from kctl.findings import Finding, Place
from kctl.findings import manifest as codes
from kctl.model import SILENT, Progress
from kctl.stores.mirror import STANDS_FOR

if TYPE_CHECKING:
    from io import BufferedReader

SUFFIX = ".tar.zst"
PIECE = 1 << 20
LARGEST_WINDOW = 1 << 27
SPARED = 1 << 30
"""Bytes that stay free on the disk of the temporary folder."""
MOST_MEMBERS = 5_000_000
LEVEL = 3
OTHER_NAME = "choose another name: an archive is never overwritten"


class Packed(Struct):
    """The numbers of an archive."""

    files: int = 0
    bytes: int = 0
    size_in_bytes: int = 0
    sha256: str = ""


def pack(folder: Path, target: Path, packed: Packed, progress: Progress = SILENT) -> Iterator[Finding]:
    """Write the archive of a copy; a finding for each file that is not as its manifest says. `packed` is filled meanwhile.

    Raises Refused where the target is there or lies in the copy, and for a copy without a seal; UnreadableFile where there is no manifest, KctlError where it cannot be
    written: then nothing of it stays.
    """
    import zstandard

    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise UnreadableFile(f"{folder}: has no {MANIFEST}", "name the folder that `kctl collect --to` wrote")
    if os.path.lexists(target):
        raise Refused(f"{target} already exists", OTHER_NAME)
    if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(folder)):
        raise Refused(
            f"--to {target}: it lies in the copy",
            "the copy would no longer be as its manifest says: write the file elsewhere",
        )
    if sealed_sources(manifest) is None:
        raise Refused(
            f"{folder}: its manifest has no seal: the copy was interrupted",
            "go on with the copy by `kctl collect --resume`, with the arguments of the first time, then pack it",
        )
    partial = target.with_name(f"{target.name}.part")
    try:
        file = partial.open("xb")
    except FileExistsError:
        raise Refused(
            f"{partial} already exists", "another `kctl collect pack` writes it, or was killed: delete it"
        ) from None
    except OSError as error:
        raise file_error(target, error, KctlError) from error
    try:
        with file:
            hashing: Any = _Hashing(file.write)
            compressor = zstandard.ZstdCompressor(level=LEVEL, threads=min(4, os.cpu_count() or 1))
            with (
                compressor.stream_writer(hashing, closefd=False) as compressed,
                tarfile.open(fileobj=compressed, mode="w|", format=tarfile.GNU_FORMAT) as tar,
            ):
                yield from _members(folder, tar, packed, progress)
            packed.size_in_bytes, packed.sha256 = hashing.size, hashing.digest.hexdigest()
            file.flush()
            os.fsync(file.fileno())
        _take_name(partial, target)
    except FileExistsError:
        raise Refused(f"{target} already exists", OTHER_NAME) from None
    except OSError as error:
        raise file_error(target, error, KctlError) from error
    finally:
        partial.unlink(missing_ok=True)


def _take_name(partial: Path, target: Path) -> None:
    """Give the archive its name; FileExistsError where it is taken, which a rename would overwrite."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise FileExistsError(target) from None
        os.rename(partial, target)


class _Hashing:
    """A file that is written to, with the digest of what was."""

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self._write = write
        self.digest, self.size = hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._write(data)

    def flush(self) -> None:
        """Nothing: the file is flushed as it is closed."""


def _members(folder: Path, tar: tarfile.TarFile, packed: Packed, progress: Progress) -> Iterator[Finding]:
    last, total, _ = last_files(folder / MANIFEST)
    progress.start("packing", total)
    with open_file(folder / MANIFEST) as file:
        _add(tar, MANIFEST, file, os.fstat(file.fileno()).st_size, 0o600, 0)
    for number, (line, _) in enumerate(lines_of(folder / MANIFEST, may_be_torn=True)):
        if not isinstance(line, FileLine) or number not in last:
            continue
        path = line.path
        try:
            with open_file(folder / path) as file:
                size = os.fstat(file.fileno()).st_size
                reading = _Reading(file, progress)
                _add(tar, path, reading, size, line.mode, line.mtime // 1000)
        except FileNotFoundError:
            yield codes.MISSING.at(Place(file=path))
            continue
        packed.files += 1
        packed.bytes += size
        if reading.digest.hexdigest() != line.sha256:
            yield codes.CHANGED.at(Place(file=path), how="its bytes are others")


def _add(tar: tarfile.TarFile, path: str, file: Any, size: int, mode: int, mtime: int) -> None:
    info = tarfile.TarInfo(path)
    info.size, info.mode, info.mtime = size, mode & 0o777, max(mtime, 0)
    tar.addfile(info, file)


class _Reading:
    """A file that is read, with the digest of what was."""

    def __init__(self, file: BufferedReader, progress: Progress) -> None:
        self._file, self._progress = file, progress
        self.digest = hashlib.sha256()

    def read(self, count: int) -> bytes:
        data = self._file.read(count)
        self.digest.update(data)
        self._progress.advance(len(data))
        return data


# --- reading ------------------------------------------------------------------------------------------


def local_folder(path: str) -> str:
    """The path; for an archive of `pack` the folder with what is in it, until this process ends.

    Raises BadTar for one that is damaged, KctlError where the disk of the temporary folder has no room for it.
    """
    if not path.endswith(SUFFIX) or not _is_archive(path):
        return path
    from kctl.temporary_folder import new_folder

    folder = new_folder("collect")
    atexit.register(folder.remove)
    place = folder.path / os.path.basename(path).removesuffix(SUFFIX)
    place.mkdir(mode=0o700)
    _unpack(path, place)
    STANDS_FOR[str(place)] = path
    return str(place)


def _is_archive(path: str) -> bool:
    """Whether the first member of a file is a manifest."""
    import zstandard

    try:
        with open_file(path, follow=True) as file, _decompressed(file) as reader:
            tar = TarStream(reader.read)
            member = next(tar.members(), None)
            return (
                member is not None and member.name == MANIFEST and next(tar.data(), b"").startswith(BEGINNING)
            )
    except (OSError, zstandard.ZstdError, BadTar):
        return False


def _decompressed(file: BufferedReader) -> Any:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    return decompressor.stream_reader(file, read_across_frames=True, closefd=False)


def _unpack(path: str, place: Path) -> None:
    import zstandard

    room = shutil.disk_usage(place).free - SPARED
    target = Target(place)
    try:
        with open_file(path, follow=True) as file, _decompressed(file) as reader:
            tar = TarStream(reader.read)
            for number, member in enumerate(tar.members()):
                if number >= MOST_MEMBERS:
                    raise BadTar(f"it has more than {MOST_MEMBERS:,} members")
                if not member.is_regular or any(map(trouble_with_name, member.name.split("/"))):
                    raise BadTar(f"its member {number} is no file of a copy")
                content = _Unpacked(Entry(member.name, FILE, member.size, 0, 0o600), tar, room)
                target.copy(member.name, content, lambda count: None)
                room = content.room
    except (zstandard.ZstdError, BadTar) as error:
        reason = error.message if isinstance(error, BadTar) else str(error)
        raise UnreadableFile(f"{path}: {reason}", "take the file from another copy") from error
    except OSError as error:
        raise file_error(path, error) from error
    finally:
        target.close()


class _Unpacked:
    """A member as it is written to the temporary folder; runs of zeros take no room there."""

    def __init__(self, entry: Entry, tar: TarStream, room: int) -> None:
        self.entry = entry
        self.room = room
        self._tar = tar

    def pieces(self) -> Iterator[memoryview | int]:
        """The bytes. Raises KctlError where there is no room for them."""
        for data in self._tar.data():
            if data.count(0) == len(data):
                yield len(data)
                continue
            self.room -= len(data)
            if self.room < 0:
                raise KctlError(
                    f"the temporary folder has no room for what is in {self.entry.name}",
                    "set TMPDIR to a folder on a larger disk, or unpack it there: `tar --zstd -xf`",
                )
            yield memoryview(data)

    def what_happened(self) -> str | None:
        """Nothing."""
        return None
