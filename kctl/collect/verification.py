"""Whether a copy is still what its manifest says: every file, no other, and the manifest itself."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from formats.values import Struct
from formats.words import counted
from kctl.errors import UnreadableFile, reason_of
from kctl.evidence.manifest import (
    MANIFEST,
    DroppedLine,
    FileLine,
    SealLine,
    lines_of,
)
from kctl.evidence.model import encodable
from kctl.files import open_file
from kctl.findings import Finding, Place
from kctl.findings import manifest as codes
from kctl.model import SILENT, Progress

PIECE = 1 << 20


class Verified(Struct):
    """Counts of a verification, and the digest that the seal has."""

    files: int = 0
    bytes: int = 0
    seal: str | None = None


def verify(folder: Path, verified: Verified, progress: Progress = SILENT) -> Iterator[Finding]:
    """A finding for each file that was changed, is missing or was added, and for a seal that does not fit.

    `verified` is filled meanwhile. Raises UnreadableFile where there is no manifest.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise UnreadableFile(f"{folder}: has no {MANIFEST}", "name the folder that `kctl collect --to` wrote")
    last, total, trouble = last_files(manifest, verified)
    progress.start("verifying", total)
    known = array("Q")
    try:
        for number, (line, _) in enumerate(lines_of(manifest, may_be_torn=True)):
            if not isinstance(line, FileLine) or number not in last:
                continue
            known.append(_key(line.path))
            verified.files += 1
            verified.bytes += line.size
            yield from _file(folder, line, progress)
    except UnreadableFile as error:
        trouble = error.message.removeprefix(f"{manifest}: ")
    yield from _added(folder, known)
    if trouble:
        yield codes.SEAL_WRONG.at(Place(file=MANIFEST), reason=trouble)


def _key(path: str) -> int:
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little")


def last_files(manifest: Path, verified: Verified | None = None) -> tuple[Numbers, int, str | None]:
    """The numbers of the lines that say what each file is, the bytes of these, and what is wrong with the seal."""
    keys, numbers, sizes = array("Q"), array("Q"), array("q")
    digest, files, trouble, seal = hashlib.sha256(), 0, None, None
    try:
        for number, (line, raw) in enumerate(lines_of(manifest, may_be_torn=True)):
            if seal is not None:
                trouble = "lines follow the seal"
                break
            if isinstance(line, SealLine):
                seal = line
                continue
            digest.update(raw)
            if isinstance(line, (FileLine, DroppedLine)):
                keys.append(_key(line.path))
                numbers.append(number)
                sizes.append(line.size if isinstance(line, FileLine) else -1)
                files += isinstance(line, FileLine)
    except UnreadableFile as error:
        trouble = error.message.removeprefix(f"{manifest}: ")
    if seal is not None and verified is not None:
        verified.seal = seal.sha256
    if trouble is None:
        if seal is None:
            trouble = "there is none: the copy was interrupted, or the end of the manifest is gone"
        elif seal.sha256 != digest.hexdigest():
            trouble = "its digest is not that of the lines before it"
        elif seal.files != files:
            trouble = f"it counts {counted(seal.files, 'file')}, and there are {files}"
    order = np.argsort(np.array(keys, np.uint64), kind="stable")
    ordered = np.array(keys, np.uint64)[order]
    is_last = np.append(ordered[1:] != ordered[:-1], True) if len(ordered) else np.zeros(0, bool)
    chosen = order[is_last]
    of_file = np.array(sizes, np.int64)[chosen]
    chosen = chosen[of_file >= 0]
    return (
        Numbers(np.sort(np.array(numbers, np.uint64)[chosen])),
        int(of_file[of_file >= 0].sum()),
        trouble,
    )


class Numbers:
    """A set of ascending numbers that is asked in order."""

    def __init__(self, numbers: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> None:
        self._numbers = numbers
        self._at = 0

    def __contains__(self, number: object) -> bool:
        is_in = self._at < len(self._numbers) and int(self._numbers[self._at]) == number
        self._at += is_in
        return is_in


def _file(folder: Path, line: FileLine, progress: Progress) -> Iterator[Finding]:
    place = Place(file=line.path)
    try:
        with open_file(folder / line.path) as file:
            digest, size = hashlib.sha256(), 0
            while data := file.read(PIECE):
                digest.update(data)
                size += len(data)
                progress.advance(len(data))
    except FileNotFoundError:
        yield codes.MISSING.at(place)
    except OSError as error:
        yield codes.CHANGED.at(place, how=f"it {reason_of(error)}")
    else:
        if size != line.size:
            yield codes.CHANGED.at(place, how=f"it has {size:,} bytes and had {line.size:,}")
        elif digest.hexdigest() != line.sha256:
            yield codes.CHANGED.at(place, how="its bytes are others")


def _added(folder: Path, known: array[int]) -> Iterator[Finding]:
    """What lies in the folder and is no file of the manifest; folders by themselves are nothing."""
    keys = np.sort(np.array(known, np.uint64))

    def is_known(path: str) -> bool:
        key = np.uint64(_key(path))
        at = int(np.searchsorted(keys, key))
        return at < len(keys) and keys[at] == key

    stack = [""]
    while stack:
        below = stack.pop()
        try:
            with os.scandir(folder / below) as entries:
                listed = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as error:
            yield codes.CHANGED.at(Place(file=encodable(below) or "."), how=reason_of(error))
            continue
        for name, is_folder in listed:
            path = f"{below}/{name}" if below else name
            if is_folder:
                stack.append(path)
            elif path != MANIFEST and not is_known(encodable(path)):
                yield codes.ADDED.at(Place(file=encodable(path)))
