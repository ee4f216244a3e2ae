"""`segment rebuild` for one partition folder: which rules, what is written where, how it compares.

Nothing is written but below the folder asked for, in a new folder named like the partition's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from formats.log_dir.file_names import LEADER_EPOCHS, FileState, FolderKind, parse_segment_file
from formats.values import Struct
from kctl.checks.replica import LEAVING, check_replica
from kctl.checks.report import CheckOptions, ReplicaTask
from kctl.errors import KctlError, Refused, file_error
from kctl.files import LARGEST_TABLE, read_whole
from kctl.log.folder import Folder, read_folder
from kctl.log.index_rules import NEWEST, IndexRules
from kctl.rebuilding.compare_rebuilt import Compared, Existing, FileVerdict, compare, score
from kctl.rebuilding.rebuild import Method, RebuiltFiles, make, methods
from kctl.scan.options import Level

BESIDE = (".index", ".timeindex", ".txnindex", ".snapshot")
# Files that Kafka always has beside a log; of the others it is normal that some are not there.
ALWAYS = (".index", ".timeindex")


class RebuildOptions(Struct, frozen=True):
    """The options of a rebuild; `rules` and `interval` None: the newest, and what the existing indexes tell."""

    rules: IndexRules | None = None
    interval: int | None = None
    is_check: bool = False
    out: Path | None = None


class Rebuilt(Struct, frozen=True):
    """One file: made, compared, or both."""

    name: str
    type: str
    size_in_bytes: int
    entries: int
    rules: IndexRules
    compared: Compared | None


def rebuild(task: ReplicaTask, options: RebuildOptions) -> Iterator[Rebuilt]:
    """The files beside the logs of a partition folder, written and compared as asked."""
    try:
        folder = read_folder(task.folder)
        existing = _existing(folder)
        rebuilt_files, method = _best_rebuilt(folder, existing, options)
    except OSError as error:
        raise file_error(error.filename or task.folder, error) from error
    if options.out:
        write_files(rebuilt_files, options.out, task.folder.name)
    if options.is_check:
        check = check_replica(task, CheckOptions(level=Level.CRC))
        existing.wrong = Existing.wrong_in(check)
    for name, data in rebuilt_files.files.items():
        compared = compare(name, data, existing) if options.is_check else None
        yield Rebuilt(name, _type_of(name), len(data), rebuilt_files.entries[name], method.rules, compared)
    if options.is_check:
        for name in sorted(existing.files.keys() - rebuilt_files.files.keys()):
            is_wrong = name in existing.wrong
            verdict = FileVerdict.DIFFERENT if is_wrong else FileVerdict.EQUIVALENT
            text = "not made from this log" if is_wrong else None
            yield Rebuilt(name, _type_of(name), 0, 0, method.rules, Compared(verdict, 0, text))


def is_different(rebuilt: Rebuilt, kind: FolderKind = FolderKind.LIVE) -> bool:
    """Whether a comparison found what no broker would have written from this log.

    A broker that deletes a folder takes its files away in any order.
    """
    if rebuilt.compared is None:
        return False
    missing = rebuilt.compared.verdict is FileVerdict.MISSING and rebuilt.name.endswith(ALWAYS)
    missing = missing and kind not in LEAVING
    return missing or rebuilt.compared.verdict is FileVerdict.DIFFERENT


def _type_of(name: str) -> str:
    named = parse_segment_file(name)
    return named.suffix.removeprefix(".") if named else "epochs"


def _existing(folder: Folder) -> Existing:
    existing = Existing({})
    for file in folder.files():
        named = file.named
        is_beside = named is not None and named.state is FileState.LIVE and named.suffix in BESIDE
        if is_beside or file.name == LEADER_EPOCHS:
            existing.files[file.name] = read_whole(file.path, LARGEST_TABLE)
    return existing


def _best_rebuilt(folder: Folder, existing: Existing, options: RebuildOptions) -> tuple[RebuiltFiles, Method]:
    """The files by the rules asked for; of a check that names none, by those that match best.

    Within the rules of one version it is the existing files that tell whether a leader or a follower wrote
    them, and at which interval.
    """
    has_time = any(name.endswith(".timeindex") for name in existing.files)
    has_time = has_time or not (options.is_check or options.rules is IndexRules.V0_8)
    newest = (NEWEST,) if not options.is_check else tuple(IndexRules)
    rules = (options.rules,) if options.rules else newest
    best: tuple[int, RebuiltFiles, Method] | None = None
    for method in methods(folder, rules, options.interval):
        rebuilt_files = make(folder, method, has_time_indexes=has_time)
        equal = score(rebuilt_files, existing)
        if best is None or equal > best[0]:
            best = equal, rebuilt_files, method
        if equal == len(rebuilt_files.files):
            break
    assert best is not None
    return best[1], best[2]


def refuse_evidence(out: Path, folders: Iterable[Path]) -> None:
    """`Refused` where the folder to write to lies in one of these."""
    place = Path(os.path.realpath(out))
    for folder in folders:
        if place.is_relative_to(os.path.realpath(folder)):
            raise Refused(
                f"{out}: is inside the evidence", "choose a folder outside of the evidence with --to"
            )


def write_files(rebuilt_files: RebuiltFiles, out: Path, name: str) -> None:
    """Write into the folder below `out` named like the partition's; what an earlier run made is replaced."""
    target = out / name
    aside = target
    try:
        target.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            raise Refused(f"{target}: is a symbolic link", "name another folder with --to")
        for file_name, data in rebuilt_files.files.items():
            aside = target / f"{file_name}.tmp"
            aside.unlink(missing_ok=True)
            with aside.open("xb") as file:
                file.write(data)
            aside.replace(target / file_name)
    except OSError as error:
        if aside != target:
            aside.unlink(missing_ok=True)
        raise file_error(error.filename or target, error, KctlError) from error
