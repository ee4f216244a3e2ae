"""What a run of an audit keeps in DIR/.resume, so that one that was killed goes on where it was.

Kept are the report of each partition folder with its rows of `batches`, and each file's SHA-256. Both are taken
up again only for the same version of kctl, the same options, and files of the same names, sizes and times.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from kctl import __version__
from kctl.audit.batch_rows import Parts
from kctl.checks.replica import ReplicaTask
from kctl.checks.report import CheckOptions, Report

FOLDER = ".resume"
FORM = 1  # of what is kept
DIGESTS = "sha256.jsonl"
Stamp = tuple[str, int, int]
"""Path, size in bytes, time of last change in nanoseconds."""


def keep_below(out: Path) -> Path:
    """The folder below `out`, made if it is not there."""
    folder = out / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def forget(out: Path) -> None:
    """Take it away: the audit is whole."""
    shutil.rmtree(out / FOLDER, ignore_errors=True)


def check_or_recall(
    task: ReplicaTask, options: CheckOptions, *, check: Callable[..., Report], kept: Path, parts: Parts | None
) -> Report:
    """What an earlier run kept of this folder; else what `check` gives, which is kept. Runs in workers."""
    try:
        file = kept / f"{_fingerprint(task, options)}.report"
    except OSError:
        return check(task, options=options)
    own = parts.path_of(task.place) if parts else None
    spare = kept / own.name if own else None
    with contextlib.suppress(OSError, EOFError, ValueError, AttributeError, ImportError, pickle.PickleError):
        report, has_part = pickle.loads(file.read_bytes())  # noqa: S301  # kctl's own, in a folder of mode 700
        if isinstance(report, Report):
            if has_part and own and spare:
                _link(spare, own)
            return report
    report = check(task, options=options)
    has_part = own is not None and own.exists()
    if has_part and own and spare:
        _link(own, spare)
    aside = file.with_suffix(f".{os.getpid()}")
    aside.write_bytes(pickle.dumps((report, has_part)))
    aside.replace(file)
    return report


def _fingerprint(task: ReplicaTask, options: CheckOptions) -> str:
    with os.scandir(task.folder) as entries:
        files = sorted((one.name, *_times(one.stat(follow_symlinks=False))) for one in entries)
    how = options.level, options.max_decompressed_bytes, options.max_findings, sorted(options.compacted)
    return sha256(repr((FORM, __version__, task, how, files)).encode("utf-8", "surrogateescape")).hexdigest()


def _times(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _link(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    new.unlink(missing_ok=True)
    try:
        os.link(old, new)
    except OSError:  # a file system without links
        shutil.copyfile(old, new)


def stamp(path: Path) -> Stamp | None:
    """What tells that a file is still the same; None where it cannot be asked."""
    try:
        return (str(path), *_times(path.stat()))
    except OSError:
        return None


class KeptDigests:
    """SHA-256 of files by their stamps, a line of JSON each, appended as they are found."""

    def __init__(self, folder: Path | None) -> None:
        self.path = folder / DIGESTS if folder else None
        self.known: dict[Stamp, str] = {}
        if self.path and self.path.exists():
            for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
                with contextlib.suppress(ValueError, TypeError):  # a line that a kill cut off
                    name, size, time, value = json.loads(line)
                    self.known[name, size, time] = value

    def of(self, path: Path) -> str | None:
        """The digest of a file that has not changed since."""
        key = stamp(path) if self.known else None
        return self.known.get(key) if key else None

    def add(self, path: Path, value: str) -> None:
        """Keep one."""
        key = stamp(path) if self.path else None
        if key and self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([*key, value]) + "\n")
