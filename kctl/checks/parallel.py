"""Checks over processes: a partition folder is one piece of work, the logs of a large one are many.

Any process can read and judge a part of a log. The results come back in order to the process that leads, which checks
what depends on earlier parts, as if it had read the log itself. The parts are the same for any number of processes, so
that the number does not change the findings.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from formats.arrays import Ints
from formats.values import Struct, replace
from kctl.checks.digests import Digest, opened_digested
from kctl.checks.named_file import check_named_file, is_log, whole_place
from kctl.checks.replica import check_replica, shown_name
from kctl.checks.report import CheckOptions, ReplicaTask, Report
from kctl.checks.segments import LogPieces
from kctl.findings import Place
from kctl.log.folder import Folder, FolderFile, LogSegment, read_folder
from kctl.model import Progress
from kctl.scan.options import ScanOptions
from kctl.scan.packed import PackedPiece, packed, unpacked
from kctl.scan.pieces import PieceScan, ScannedPiece
from kctl.scan.pool import Jobs, ordered
from kctl.scan.source import Source
from kctl.scan.splits import Split, hints_in, splits_of
from kctl.scan.together import LARGEST, MOST, TOGETHER
from kctl.stores.mirror import mirror_of

Check = Callable[..., Report]
"""From a `ReplicaTask` and `options` to a report; `folder` and `parts` as of `check_replica`."""

PART = 32 << 20  # bytes of a log that are read at once
LARGE = 2 * PART  # bytes of logs from which on a folder is more than one piece of work
OF_THE_REST = 4
"""The folders that are left are at least so many times those of one piece of work, so that all processes end at about one time."""
NO_DIGESTS: Mapping[Path, str] = {}


@runtime_checkable
class CheckOfSeveral(Protocol):
    """A `Check` that has results of several folders in common."""

    def of_several(
        self,
        folders: Sequence[tuple[ReplicaTask, Folder | None]],
        options: CheckOptions,
        parts: LogPieces | None,
    ) -> list[Report]:
        """The report on each folder, in order."""


class NamedTask(NamedTuple):
    """A file that was named by itself."""

    path: Path
    place: Place


Task = ReplicaTask | NamedTask


class LogPart(NamedTuple):
    """Bytes of a log that a worker reads."""

    path: Path
    options: ScanOptions
    end: int
    hints: Ints
    sender: int  # the process that uses it


class ListedFolder(NamedTuple):
    """A folder that is not cut, as it was listed."""

    task: ReplicaTask
    folder: Folder


class SmallFolders(NamedTuple):
    """Listed folders that one process checks one after another, their small logs read together."""

    folders: list[ListedFolder]


class PartRead(NamedTuple):
    """The pieces of a part, as a worker returns them."""

    pieces: Iterable[PackedPiece | ScannedPiece]
    error: OSError | None = None


class TaskPlan(Struct, frozen=True):
    """How a task is cut into parts."""

    parts: Sequence[LogPart]  # none: it is small
    folder: Folder | None = None


def reports(
    tasks: Sequence[Task], check: Check, options: CheckOptions, jobs: Jobs, progress: Progress
) -> Iterator[Report]:
    """The report on each task, in order. Cut into parts is what `check_replica` does, or a task that says that it is led."""
    plans: dict[int, TaskPlan] = {}
    is_local = jobs is None or isinstance(jobs, int)

    def items() -> Iterator[Task | ListedFolder | LogPart]:
        for number, task in enumerate(tasks):
            plan = None
            if is_local and not _is_read_apart(task, check, options):
                is_led = isinstance(task, ReplicaTask) and task.is_led
                plan = plan_of(task, options, may_be_cut=check is check_replica or is_led)
            if plan is None:
                yield task
            elif plan.parts:
                plans[number] = plan
                yield from plan.parts
            else:
                assert isinstance(task, ReplicaTask) and plan.folder
                yield ListedFolder(task, plan.folder)

    done = ordered(partial(_done, check=check, options=options), together(items(), len(tasks)), jobs=jobs)
    results = chain.from_iterable(done)
    for number, task in enumerate(tasks):
        result = next(results)
        plan = plans.pop(number, None)
        if plan is None:
            assert isinstance(result, Report)
            counted_before = task.bytes_read if isinstance(task, ReplicaTask) else 0
            progress.advance(max(0, result.size_in_bytes - counted_before))
            yield result
            continue
        parts = PlannedParts(plan.parts, chain([result], results), progress)
        report = _checked(task, plan, parts, check, options)
        parts.finish()
        progress.advance(max(0, report.size_in_bytes - parts.size_in_bytes))
        yield report


def _is_read_apart(task: Task, check: Check, options: CheckOptions) -> bool:
    """Whether nothing of a folder may be read before its turn, or an audit has read its logs, or will wait for its files in a store."""
    if check is check_replica or isinstance(task, NamedTask):
        return False
    return options.one_by_one or bool(task.slices) or mirror_of(os.fspath(task.folder)) is not None


def together(
    items: Iterable[Task | ListedFolder | LogPart], tasks: int = 0
) -> Iterator[Task | SmallFolders | LogPart]:
    """The items, which are of so many tasks; listed folders one after another that are small are one item.

    The first items are small, so that other processes begin soon; the next ones grow, and cost less by folder.
    A folder of a store is one by itself: its files are waited for, which several processes do at once.
    """
    small: list[ListedFolder] = []
    size, grown = 0, TOGETHER
    for item in items:
        tasks -= not isinstance(item, LogPart)
        added = item.folder.size_in_bytes if isinstance(item, ListedFolder) else 0
        is_alone = not isinstance(item, ListedFolder) or mirror_of(os.fspath(item.folder.path)) is not None
        most = grown if len(small) * OF_THE_REST < tasks else TOGETHER
        if small and (is_alone or size + added > most or len(small) == MOST):
            yield SmallFolders(small)
            small, size, grown = [], 0, min(2 * grown, LARGE)
        if not isinstance(item, ListedFolder):
            yield item
        elif is_alone:
            yield SmallFolders([item])
        else:
            small.append(item)
            size += added
    if small:
        yield SmallFolders(small)


def _done(
    item: Task | SmallFolders | LogPart, check: Check, options: CheckOptions
) -> Sequence[Report | PartRead]:
    """The results of one item of the work. Runs in any process."""
    if isinstance(item, LogPart):
        return [read_part(item)]
    if isinstance(item, SmallFolders):
        return _checked_together(item.folders, check, options)
    if isinstance(item, NamedTask):
        return [check_named_file(item.path, item.place, options)]
    return [check(item, options=options)]


def _checked_together(folders: Sequence[ListedFolder], check: Check, options: CheckOptions) -> list[Report]:
    from kctl.checks.small_logs import SmallLogs  # one folder alone needs none of it

    logs = small_logs(folder for _, folder in folders)
    with closing(SmallLogs(logs, scan_of(Place(), options))) as read:
        if isinstance(check, CheckOfSeveral):
            return check.of_several(folders, options, read)
        return [check(task, options=options, folder=folder, parts=read) for task, folder in folders]


def small_logs(folders: Iterable[Folder]) -> Iterator[LogSegment]:
    """The live segments of folders whose logs may be read together."""
    for folder in folders:
        for segment in folder.segments:
            if segment.log and 0 < segment.log.size_in_bytes <= LARGEST:
                yield segment


def _checked(task: Task, plan: TaskPlan, parts: PlannedParts, check: Check, options: CheckOptions) -> Report:
    if isinstance(task, NamedTask):
        return check_named_file(task.path, task.place, options, parts)
    return check(task, options=options, folder=plan.folder, parts=parts)


# --- cutting ------------------------------------------------------------------------------------------


def plan_of(task: Task, options: CheckOptions, *, may_be_cut: bool = True) -> TaskPlan | None:
    """How a task is cut; None if it is a file that is small, or cannot be read, or is large and may not be cut."""
    if isinstance(task, NamedTask):
        return _plan_of_file(task, options)
    try:
        folder = read_folder(task.folder)
    except OSError:
        return None
    logs = logs_of(folder)
    if sum(log.size_in_bytes for log, _ in logs) < LARGE:
        return TaskPlan((), folder)
    if not may_be_cut:
        return None
    parts = [parts_of(log, index, task.place_of(shown_name(log)), options) for log, index in logs]
    return TaskPlan([*chain.from_iterable(parts)], folder)


def logs_of(folder: Folder) -> list[tuple[FolderFile, FolderFile | None]]:
    """The logs of a folder, leftovers too, each with its offset index."""
    segments = (*folder.segments, *folder.leftovers)
    return [(segment.log, segment.index) for segment in segments if segment.log]


def _plan_of_file(task: NamedTask, options: CheckOptions) -> TaskPlan | None:
    size = task.path.stat().st_size if task.path.is_file() else 0
    if size < LARGE or not is_log(task.path):
        return None
    index = task.path.with_suffix(".index")
    has_index = task.path.suffix == ".log" and index.is_file()
    index_file = FolderFile(index, index.stat().st_size) if has_index else None
    parts = parts_of(FolderFile(task.path, size), index_file, whole_place(task.path, task.place), options)
    return TaskPlan(parts) if parts else None


def parts_of(log: FolderFile, index: FolderFile | None, place: Place, options: CheckOptions) -> list[LogPart]:
    """The parts of a log, cut where its index says that batches begin; none where it cannot be read."""
    try:
        hints = hints_in(index.path if index else None)
        splits = splits_of(log.path, hints, PART)
    except OSError:
        return []
    scan = scan_of(place, options)
    return [part_of(log.path, scan, split, hints) for split in splits]


def scan_of(place: Place, options: CheckOptions) -> ScanOptions:
    """The options of a scan for a check."""
    limit = options.max_decompressed_bytes
    return ScanOptions(level=options.level, place=place, max_decompressed_bytes=limit)


def part_of(path: Path, scan: ScanOptions, split: Split, hints: Ints) -> LogPart:
    """A part of a log, with those of the hints that are of use for it."""
    start, end = split
    inside = hints[(hints > start) & (hints < end)]
    return LogPart(path, replace(scan, start=start, end=end), end, inside, os.getpid())


# --- reading, and putting together --------------------------------------------------------------------


def read_part(part: LogPart) -> PartRead:
    """The pieces of a part, packed for another process."""
    pieces = pieces_of(part)
    if os.getpid() == part.sender:
        return PartRead(pieces)
    done: list[PackedPiece] = []
    try:
        for piece in pieces:
            done.append(packed(piece))
    except OSError as error:
        return PartRead(done, error)
    return PartRead(done)


def pieces_of(part: LogPart, digest: Digest | None = None) -> Iterator[ScannedPiece]:
    """The pieces of a part as they are read; `digest`, if wanted, is then that of the log."""
    with opened_digested(part.path, digest) as source:
        for piece in PieceScan(source, part.options, part.hints):
            if piece.end > part.end:
                return
            yield piece


class PlannedParts:
    """The parts of one task as they come back, in the order in which they were planned."""

    def __init__(
        self,
        planned: Sequence[LogPart],
        results: Iterator[Report | PartRead],
        progress: Progress,
        digests: Mapping[Path, str] = NO_DIGESTS,
    ) -> None:
        self._planned = deque(planned)
        self._results = results
        self._progress = progress
        self._digests = digests  # of logs, as far as they are known
        self.size_in_bytes = 0  # of those that came back

    def pieces(self, path: Path, source: Source, options: ScanOptions) -> Iterator[ScannedPiece] | None:
        """The pieces of a log as one scan would give them; None where nothing of it was planned."""
        if not any(part.path == path for part in self._planned):
            return None
        while self._planned[0].path != path:  # of a file that is gone by now
            self._next()
        return self._joined(path, source, options)

    def source_of(self, path: Path) -> None:
        """None: the bytes are with the process that read them."""

    def digest_of(self, path: Path) -> str | None:
        """The digest of a log, if a process has made it."""
        return self._digests.get(path)

    def indexes_of(self, path: Path) -> None:
        """None: they are read by whoever checks the folder."""

    def finish(self) -> None:
        """Take the results of the parts that are left, so that those of the next task come next."""
        while self._planned:
            self._next()

    def _next(self) -> tuple[LogPart, PartRead]:
        part, read = self._planned.popleft(), next(self._results)
        assert isinstance(read, PartRead)
        size = part.end - part.options.start
        self.size_in_bytes += size
        self._progress.advance(size)
        return part, read

    def _joined(self, path: Path, source: Source, options: ScanOptions) -> Iterator[ScannedPiece]:
        position, last_offset, is_right = 0, -1, True
        while self._planned and self._planned[0].path == path:
            part, read = self._next()
            if not is_right:
                continue
            for sent in read.pieces:
                piece = unpacked(sent) if isinstance(sent, PackedPiece) else sent
                if piece.position == part.options.start and piece.position and not begins_soundly(piece):
                    break
                yield piece
                position = piece.end
                sound = piece.headers.last_offset[piece.headers.crc_valid]
                last_offset = int(sound[-1]) if len(sound) else last_offset
            if read.error is not None:
                raise read.error
            # A batch across the end of the part, or damage at it, shows that the log must not be cut there.
            is_right = position == part.end
            if not is_right:
                yield from PieceScan(source, replace(options, start=position, last_offset=last_offset))


def begins_soundly(piece: ScannedPiece) -> bool:
    """Whether a piece begins with a sound batch, so that nothing before it can change what follows."""
    return len(piece.headers) > 0 and bool(piece.headers.crc_valid[0])
