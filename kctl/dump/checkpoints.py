"""The checkpoint files that paths name or hold, and their entries."""

import os
from collections.abc import Callable, Iterator, Sequence

from formats.log_dir.file_names import LEADER_EPOCHS, OFFSET_CHECKPOINTS, segment_file_name
from kctl.dump.entries import ENTRIES
from kctl.dump.file_kinds import FileKind, kind_of
from kctl.dump.opening import opened
from kctl.dump.selection import DumpSelection
from kctl.errors import KctlError, UnreadableFile, file_error
from kctl.model import Row
from kctl.stores.mirror import given_name

Report = Callable[[Exception], None]
NAMES = frozenset((*OFFSET_CHECKPOINTS, LEADER_EPOCHS))


class BadBelowFolder(KctlError):
    """A checkpoint found below a named folder that cannot be read: the rest is done, then status 5."""

    exit_code = 5
    hint = "`kctl segment verify` on its folder shows the damage"


def checkpoint_rows(paths: Sequence[str], report: Report) -> Iterator[Row]:
    """Entries of every checkpoint named, or found below a folder, in the order of their names."""
    several = sum(os.path.isdir(path) for path in paths) > 1
    for path in paths:
        if not os.path.isdir(path):
            try:
                yield from _rows(path, given_name(path))
            except KctlError as error:
                report(error)
            continue
        has_any = False
        for file in checkpoints_below(path, report):
            has_any = True
            name = os.path.relpath(file, path)
            try:
                for row in _rows(file, name):
                    yield {**row, "evidence": given_name(path)} if several else row
            except KctlError as error:
                report(BadBelowFolder(error.message, error.hint))
        if not has_any:
            report(
                KctlError(
                    f"{path}: no checkpoint file found here",
                    "name a log directory, a partition folder or a checkpoint",
                )
            )


def _rows(path: str, shown_name: str) -> Iterator[Row]:
    with opened(path) as source:
        name = segment_file_name(os.path.basename(path))
        kind = FileKind.EPOCHS if name == LEADER_EPOCHS else FileKind.CHECKPOINT
        if name not in NAMES:
            kind = kind_of(source, name) or kind
            if kind not in (FileKind.EPOCHS, FileKind.CHECKPOINT):
                raise UnreadableFile(f"{shown_name}: is not a checkpoint", "see `kctl segment dump`")
        yield from ENTRIES[kind](source, path, shown_name, DumpSelection())


def checkpoints_below(folder: str, report: Report) -> Iterator[str]:
    """The checkpoint files in a folder and below it, by name; links to folders are not followed."""
    for where, folders, files in os.walk(folder, onerror=lambda e: report(_unreadable(e))):
        folders.sort()
        yield from (os.path.join(where, name) for name in sorted(files) if name in NAMES)


def _unreadable(error: OSError) -> KctlError:
    return file_error(error.filename, error, BadBelowFolder)
