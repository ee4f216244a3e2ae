"""A large partition folder as many pieces of work: processes read slices of its logs first.

The results are kept in files beside the tables until one process checks the folder as if it had read the logs itself;
the process that leads has not enough memory for them. A folder is cut only if the other processes would otherwise wait
for it. Objects of a store are read once and whole; a log on a disk is cut at proven boundaries, and read once more for
its digest. The process that leads checks a folder itself, as others read it, where that is the only one that is cut.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

import msgspec

from formats.values import replace
from kctl.checks.digests import Digest, digest_of
from kctl.checks.parallel import LogPart, PartRead, PlannedParts, logs_of, part_of, pieces_of, scan_of
from kctl.checks.replica import shown_name
from kctl.checks.report import CheckOptions, ReadSlice, ReplicaTask
from kctl.errors import KctlError
from kctl.files import open_file
from kctl.log.folder import read_folder
from kctl.model import SILENT, Progress
from kctl.scan.options import ScanOptions
from kctl.scan.packed import PackedPiece, packed, unpacked
from kctl.scan.pieces import ScannedPiece
from kctl.scan.pool import Jobs, default_jobs, ordered
from kctl.scan.splits import NO_HINTS, Split, hints_in, most_splits, splits_of
from kctl.stores.mirror import mirror_of

TARGET = 64 << 20  # bytes of a slice
LARGE = 4 * TARGET  # bytes of a folder from which on it may be cut
FEWEST = 2  # slices of a folder that is cut
OF_A_CORE = 4  # parts of all work that a core shall have at the least, so that all end at about one time
SIZE = 8  # bytes before a piece in a file, which say how many it has


class Slice(NamedTuple):
    """Work for one process: a part of a log to scan, or a whole log to make its digest."""

    log: Path
    offset_index: Path | None
    size: int  # as it was listed
    options: ScanOptions
    target: int = 0
    number: int = 0
    of: int = 0  # 0: for its digest alone


# --- cutting, and reading -----------------------------------------------------------------------------


def with_slices(
    tasks: Sequence[ReplicaTask], options: CheckOptions, jobs: Jobs, progress: Progress, *, to: Path,
    is_kept: Callable[[ReplicaTask, CheckOptions], bool],
) -> Sequence[ReplicaTask]:  # fmt: skip
    """The tasks. The logs of very large folders are read here in slices, unless an earlier run kept the result.

    A folder that is the only one and needs no digests is left to the process that leads, which checks it as others read it.
    """
    cores = jobs.cores if not isinstance(jobs, int | None) else jobs or default_jobs()
    if cores < 2:
        return tasks
    sizes = [_size_of(task.folder) for task in tasks]
    least = max(LARGE, sum(sizes) // (cores * OF_A_CORE))
    cut: dict[int, list[Slice]] = {}
    for number, task in enumerate(tasks):
        if sizes[number] >= least and not is_kept(task, options):
            slices = list(_slices(task, options))
            if len(slices) >= FEWEST:
                cut[number] = slices
    if len(cut) == 1 and _may_be_led(tasks[next(iter(cut))], options, jobs):
        return [replace(task, is_led=number in cut) for number, task in enumerate(tasks)]
    read = partial(read_slice, to=to, algorithm=options.digest)
    results = ordered(read, (slice_ for slices in cut.values() for slice_ in slices), jobs=jobs, at_once=True)
    done = [*tasks]
    owners = [number for number, slices in cut.items() for _ in slices]
    for number, of_task in groupby(zip(owners, results, strict=True), key=lambda pair: pair[0]):
        slices_read = []
        for _, slice_ in of_task:
            progress.advance(slice_.split.end - slice_.split.start)
            slices_read.append(slice_)
        size = sum(slice_.split.end - slice_.split.start for slice_ in slices_read)
        done[number] = replace(tasks[number], slices=tuple(slices_read), bytes_read=size)
    return done


def _may_be_led(task: ReplicaTask, options: CheckOptions, jobs: Jobs) -> bool:
    is_plain = options.digest is None and not options.one_by_one
    return is_plain and isinstance(jobs, int | None) and mirror_of(str(task.folder)) is None


def _size_of(folder: Path) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    except OSError:
        return 0


def _slices(task: ReplicaTask, options: CheckOptions) -> Iterator[Slice]:
    try:
        logs = logs_of(read_folder(task.folder))
    except OSError:
        return
    for log, index in logs:
        if not log.size_in_bytes:
            continue
        scan = scan_of(task.place_of(shown_name(log)), options)
        whole = Slice(log.path, index.path if index else None, log.size_in_bytes, scan, TARGET)
        of = 1 if mirror_of(str(log.path)) else most_splits(log.size_in_bytes, TARGET)
        if of > 1 and options.digest:
            yield whole
        yield from (whole._replace(number=number, of=of) for number in range(of))


def read_slice(slice_: Slice, to: Path, algorithm: str | None) -> ReadSlice:
    """Read a slice into a file below `to`. Runs in worker processes."""
    name = slice_.log.name
    if not slice_.of:
        return ReadSlice(name, digest=digest_of(slice_.log, algorithm or "")[0])
    split, failed = Split(0, slice_.size), list[OSError]()
    try:
        hints = hints_in(slice_.offset_index)
    except OSError:
        hints = NO_HINTS
    try:
        if slice_.of > 1:
            split = dict(enumerate(splits_of(slice_.log, hints, slice_.target)))[slice_.number]
    except (
        KeyError,
        OSError,
    ):  # fewer boundaries than there might be; or whoever goes through the folder will say
        return ReadSlice(name)
    part = part_of(slice_.log, slice_.options, split, hints)
    file, digest = to / f"{token_hex(8)}.slice", Digest(algorithm) if algorithm and slice_.of == 1 else None
    to.mkdir(parents=True, exist_ok=True)
    _write(file, _until_failed(pieces_of(part, digest), failed))
    error = failed[0] if failed else None
    return ReadSlice(name, split, file.name, file.stat().st_size, error, digest.value if digest else None)


def _until_failed(pieces: Iterator[ScannedPiece], failed: list[OSError]) -> Iterator[ScannedPiece]:
    """The pieces up to a read error, which goes to `failed`. Errors of writing, such as a full disk, are raised."""
    try:
        yield from pieces
    except OSError as error:
        failed.append(error)


# --- putting together ---------------------------------------------------------------------------------


def read_before(sliced: ReplicaTask, folder: Path) -> PlannedParts:
    """The logs that were read into files of a folder, but for those that have changed since."""
    planned: list[LogPart] = []
    results: list[PartRead] = []
    digests: dict[Path, str] = {}
    for log, slices in groupby(sliced.slices, key=lambda result: str(result.log)):
        path, read_slices = sliced.folder / log, list(slices)
        usable = [result for result in read_slices if result.file]
        edges = [0, *(edge for result in usable for edge in result.split), _size(path)]
        if not usable or any(end != next_start for end, next_start in list(pairwise(edges))[::2]):
            continue
        digests.update((path, result.digest) for result in read_slices if result.digest)
        for result in usable:
            start, end = result.split
            planned.append(LogPart(path, ScanOptions(start=start), end, NO_HINTS, -1))
            results.append(PartRead(_pieces_in(folder / result.file, result.size), result.error))
    return PlannedParts(planned, iter(results), SILENT, digests)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


# --- the files ----------------------------------------------------------------------------------------


def _write(file: Path, pieces: Iterable[ScannedPiece]) -> None:
    with file.open("xb") as out:
        for piece in pieces:
            data = msgspec.msgpack.encode(packed(piece))
            out.write(len(data).to_bytes(SIZE) + data)


def _pieces_in(file: Path, size: int) -> Iterator[ScannedPiece]:
    """The pieces; `KctlError` where the file is not as it was written."""
    try:
        if file.stat().st_size != size:
            raise OSError(f"{size:,} bytes were written")
        with open_file(file) as source:
            while head := source.read(SIZE):
                data = source.read(min(int.from_bytes(head), size))
                yield unpacked(msgspec.msgpack.decode(data, type=PackedPiece))
    except (OSError, ValueError, TypeError, OverflowError, MemoryError, msgspec.MsgspecError) as error:
        raise KctlError(
            f"{file} differs from what its task wrote: {error}",
            "executors and this machine must share the folder of --out",
        ) from error
