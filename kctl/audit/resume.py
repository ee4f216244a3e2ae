"""What an audit keeps in DIR/.resume, so that after a kill it skips the folders that have a finished report.

Kept are the report of each partition folder (MessagePack), its rows of `batches` (Parquet), and the SHA-256 of other
files. They are used only by the same run (version of kctl, evidence, options), and only for files whose names, sizes and
times are the same. Anybody who can write to DIR may have written these files: they are decoded by a schema and opened
without following symbolic links; a folder whose report does not fit is examined again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from formats.values import replace
from kctl.audit.batch_rows import BatchFiles, FolderBatches
from kctl.checks.digests import digest_of
from kctl.checks.report import CheckOptions, ReplicaTask, Report
from kctl.errors import Refused
from kctl.findings.evidence import UNREADABLE, VANISHED
from kctl.model import Progress
from kctl.scan.parquet import WrittenPart, part_difference
from kctl.scan.pool import Jobs, ordered
from kctl.scan.tables import PACKED_BATCHES, SCHEMAS, TEXT
from kctl.stores.mirror import given_name
from kctl.version import __version__

FOLDER = ".resume"
PASSING = frozenset({UNREADABLE.code, VANISHED.code})
"""Findings that the next run may not make again although the names, sizes and times of all files are the same."""
VERSION = 4  # of what is kept
RUN, DIGESTS = "run.json", "sha256.jsonl"
OWN_NAME = re.compile(r"run\.json|sha256\.jsonl|[0-9a-f]{64}\.(report|parquet)|\..*\.writing")
TEXTS = [field.name for field in SCHEMAS["batches"] if field.type == TEXT]
Stamp = tuple[str, int, int]
"""Path, size in bytes, time of last change in nanoseconds."""


class Kept(msgspec.Struct, forbid_unknown_fields=True):
    """The report of a partition folder as it is kept. `rows` are those of `batches`; None where there are none."""

    report: Report
    rows: WrittenPart | None
    is_part: bool  # whether they are a file of the table of their own


# --- the folder -------------------------------------------------------------------------------------------


def run_digest(evidence: tuple[str, ...], options: CheckOptions, *settings: object) -> str:
    """A text that identifies a run: the digest of kctl's version, the evidence and the options."""
    paths = sorted(given_name(str(Path(path).resolve())) for path in evidence)
    run = repr((VERSION, __version__, paths, options.level, sorted(options.compacted), *settings))
    return sha256(run.encode("utf-8", "surrogateescape")).hexdigest()


def keep_below(out: Path, digest: str) -> Path:
    """The folder below `out`, made if it does not exist; `Refused` where another run has left it."""
    folder = out / FOLDER
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not is_of_run(out, digest) and os.listdir(folder):
        raise Refused(
            f"{folder} belongs to another run: its evidence, its options or its version of kctl differ",
            "name a new folder with --out, or start over with --overwrite",
        )
    _write(folder, RUN, json.dumps({"version": VERSION, "run": digest}).encode())
    return folder


def is_of_run(out: Path, digest: str) -> bool:
    """Whether `out` holds what an earlier start of the same run kept."""
    with contextlib.suppress(OSError, ValueError):
        with _opened(out / FOLDER, RUN) as file:
            document: object = json.loads(file.read(4096))
        return document == {"version": VERSION, "run": digest}
    return False


def forget(out: Path) -> None:
    """Take away what is kept; files that kctl did not write stay, and then the folder."""
    with contextlib.suppress(OSError), _descriptor(out / FOLDER) as folder:
        for name in os.listdir(folder):
            if OWN_NAME.fullmatch(name):
                os.unlink(name, dir_fd=folder)
        os.rmdir(out / FOLDER)


@contextmanager
def _descriptor(folder: Path) -> Iterator[int]:
    """The folder, which must not be a symbolic link."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _opened(folder: Path, name: str) -> Iterator[BinaryIO]:
    """A regular file of the folder for reading; `OSError` for a symbolic link or anything else."""
    with _descriptor(folder) as below:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=below), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(f"{folder / name}: is not a regular file")
            yield file


def _write(folder: Path, name: str, data: bytes) -> None:
    """A file of the folder, whole or not at all."""
    with _descriptor(folder) as below:
        aside = f".{name}.{token_hex(8)}.writing"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(aside, flags, 0o600, dir_fd=below), "wb") as file:
            file.write(data)
        os.replace(aside, name, src_dir_fd=below, dst_dir_fd=below)


# --- reports of partition folders -------------------------------------------------------------------------


def check_or_recall(
    task: ReplicaTask,
    options: CheckOptions,
    *,
    check: Callable[..., Report],
    resume_folder: Path,
    out: BatchFiles,
) -> Report:
    """The report that an earlier run kept of this folder; else that of `check`, which is kept. Runs in workers."""
    try:
        name = _fingerprint(task, options)
    except OSError:
        return check(task, options=options)
    own = out.path_of(task.place)
    # If what is kept is damaged, the folder is examined again.
    with contextlib.suppress(OSError, ValueError, pa.ArrowException, msgspec.MsgspecError):
        return _recalled(resume_folder, name, own)
    report = check(task, options=options)
    if any(finding.code in PASSING for finding in report.all_findings()):
        return report
    with contextlib.suppress(UnicodeEncodeError):  # names that are no text are not kept
        _keep(resume_folder, name, own, report)
    return report


def is_kept(task: ReplicaTask, options: CheckOptions, resume_folder: Path) -> bool:
    """Whether an earlier run kept the report of this folder."""
    with contextlib.suppress(OSError):
        return (resume_folder / f"{_fingerprint(task, options)}.report").exists()
    return False


def _keep(resume_folder: Path, name: str, own: Path, report: Report) -> None:
    added = report.added
    assert isinstance(added, FolderBatches)
    rows = added.part
    if rows:
        _link(own, resume_folder / f"{name}.parquet")
    elif added.rows:
        sink = pa.BufferOutputStream()
        rows_kept = pa.Table.from_batches(added.rows, PACKED_BATCHES)
        pq.write_table(rows_kept, sink, store_schema=False)
        data = sink.getvalue().to_pybytes()
        _write(resume_folder, f"{name}.parquet", data)
        rows = WrittenPart(f"{name}.parquet", sum(batch.num_rows for batch in added.rows), len(data))
    kept = Kept(replace(report, added=None), rows, added.part is not None)
    _write(resume_folder, f"{name}.report", msgspec.msgpack.encode(kept))


def _recalled(resume_folder: Path, name: str, own: Path) -> Report:
    """The report as it was kept; `OSError`, `ValueError` or an error of the decoders where it does not fit."""
    with _opened(resume_folder, f"{name}.report") as file:
        kept = msgspec.msgpack.decode(file.read(), type=Kept)
    batches: list[pa.RecordBatch] = []
    if kept.rows:
        with _opened(resume_folder, f"{name}.parquet") as file:
            if problem := part_difference(file, kept.rows, SCHEMAS["batches"]):
                raise ValueError(problem)
            if kept.is_part:
                _link(resume_folder / f"{name}.parquet", own)
            else:
                file.seek(0)
                batches = pq.ParquetFile(file, read_dictionary=TEXTS).read().cast(PACKED_BATCHES).to_batches()
    part = kept.rows._replace(name=own.name) if kept.rows and kept.is_part else None
    kept.report.added = FolderBatches(batches, part)
    return kept.report


def _fingerprint(task: ReplicaTask, options: CheckOptions) -> str:
    with os.scandir(task.folder) as entries:
        files = sorted((entry.name, *_times(entry.stat(follow_symlinks=False))) for entry in entries)
    check_options = replace(options, compacted=frozenset())
    facts = (check_options, sorted(options.compacted), replace(task, slices=(), bytes_read=0), files)
    text = given_name(repr((VERSION, __version__, *facts)))
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _times(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _link(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    new.unlink(missing_ok=True)
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError:  # a file system without links
        with _opened(old.parent, old.name) as source, new.open("xb") as target:
            shutil.copyfileobj(source, target)


# --- digests of files -------------------------------------------------------------------------------------


def stamp(path: Path) -> Stamp | None:
    """The name, size and time of a file, by which it counts as unchanged; None where it cannot be read."""
    try:
        return (given_name(str(path)), *_times(path.stat()))
    except OSError:
        return None


class KeptDigests:
    """SHA-256 of files by their stamps, a line of JSON each, appended as they are found."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.digests: dict[Stamp, str] = {}
        if folder:
            with contextlib.suppress(OSError), _opened(folder, DIGESTS) as file:
                for line in file:
                    with contextlib.suppress(msgspec.MsgspecError, ValueError):  # a line that a kill cut off
                        name, size, time, value = msgspec.json.decode(line, type=tuple[str, int, int, str])
                        if re.fullmatch(r"[0-9a-f]{64}", value):
                            self.digests[name, size, time] = value
            # Written anew: the next line would be appended to one that was cut off.
            lines = (json.dumps([*key, value]) + "\n" for key, value in self.digests.items())
            _write(folder, DIGESTS, "".join(lines).encode())

    def of(self, path: Path) -> str | None:
        """The digest of a file that has not changed since."""
        key = stamp(path) if self.digests else None
        return self.digests.get(key) if key else None

    def add(self, path: Path, value: str) -> None:
        """Append the digest of a file."""
        key = stamp(path) if self.folder else None
        if key and self.folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            with (
                _descriptor(self.folder) as below,
                os.fdopen(os.open(DIGESTS, flags, 0o600, dir_fd=below), "ab") as file,
            ):
                file.write(json.dumps([*key, value]).encode() + b"\n")


def digests(
    paths: Sequence[Path], algorithm: str, jobs: Jobs, progress: Progress, resume_folder: Path | None = None
) -> dict[Path, str]:
    """The digest of each file that no worker has read: of those that can be; `resume_folder` holds those of an earlier run."""
    earlier = KeptDigests(resume_folder if algorithm == "sha256" else None)
    digest_by_path = {path: value for path in paths if (value := earlier.of(path)) is not None}
    unread = [path for path in paths if path not in digest_by_path]
    if not unread:
        return digest_by_path
    progress.start("hashing", sum(path.stat().st_size for path in unread if path.is_file()))
    results = ordered(partial(digest_of, algorithm=algorithm), unread, jobs=jobs)
    for path, (new, size) in zip(unread, results, strict=True):
        progress.advance(size)
        if new is not None:
            digest_by_path[path] = new
            earlier.add(path, new)
    return digest_by_path
