"""Estimate an audit: tasks, files, bytes, requests and time. Nothing is opened or written."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from formats.log_dir.file_names import FolderKind
from formats.words import counted
from kctl.audit.slices import LARGE, OF_A_CORE
from kctl.evidence.model import FoundEvidence
from kctl.model import Row
from kctl.rows.audit import AUDIT_ESTIMATE
from kctl.stores.mirror import given_name, mirror_of
from kctl.stores.objects import RANGE

RATE = 200_000_000
"""Bytes of log by second of a core: audits of 300 MB took 220 MB/s of lz4 and 330 uncompressed, start-up included."""
TOGETHER = 3_500_000_000  # the same where slices are put together: measured with batches of 8 kB
A_TASK = 0.01  # seconds besides
A_REQUEST = 0.03  # seconds until a store answers
AROUND_A_READ = 4
"""Requests for an object besides its ranges: it is opened and, when it has been read, looked at, by two parts in most cases."""


def estimate(evidence: FoundEvidence, paths: tuple[str, ...], cores: int | None) -> Row:
    """The row of kind `audit-estimate`; `cores` is None where a cluster says how many there are."""
    folders = [replica.folder for replica in evidence.replicas] + [
        folder for folder, _ in evidence.loose_folders
    ]
    tasks = [_sizes(folder) for folder in folders] + [_size(path) for path, _ in evidence.files]
    beside_logs = [
        _size(log_dir.path / name)
        for log_dir in evidence.log_dirs
        if log_dir.is_whole
        for name in log_dir.files
    ]
    stored = any(mirror_of(str(root.path)) for root in evidence.roots)
    requests = sum(_requests(size) for task in (*tasks, *beside_logs) for size in task) if stored else None
    largest = max(map(sum, tasks), default=0)
    total = sum(map(sum, (*tasks, *beside_logs)))
    cut = max(LARGE, total // ((cores or 1) * OF_A_CORE)) if cores != 1 else largest
    alone = min(largest, cut) / RATE + (largest / TOGETHER if largest > cut else 0) + A_TASK
    together = total / RATE + len(tasks) * A_TASK + (requests or 0) * A_REQUEST
    return AUDIT_ESTIMATE(
        evidence=given_name(" ".join(paths)),
        files=sum(map(len, (*tasks, *beside_logs))),
        bytes=total,
        tasks=len(tasks),
        largest_task=largest,
        comparisons=_comparisons(evidence),
        requests=requests,
        cores=cores,
        core_seconds=round(together, 1),
        seconds=None if cores is None else round(max(alone, together / cores), 1),
    )


def _sizes(folder: Path) -> list[int]:
    """Sizes of the files of a partition folder; none if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return [
                e.stat(follow_symlinks=False).st_size for e in entries if e.is_file(follow_symlinks=False)
            ]
    except OSError:
        return []


def _size(path: Path) -> list[int]:
    try:
        return [path.stat().st_size]
    except OSError:
        return []


def _requests(size: int) -> int:
    return AROUND_A_READ + -(-size // RANGE) if size else 0


def _comparisons(evidence: FoundEvidence) -> int:
    """Partitions that several brokers hold at one moment."""
    copies_by_partition = Counter(
        (replica.topic_partition, replica.moment)
        for replica in evidence.replicas
        if replica.kind is FolderKind.LIVE and replica.broker_id is not None
    )
    return sum(copies > 1 for copies in copies_by_partition.values())


def estimate_text(row: Row) -> Iterator[str]:
    """The estimate as lines of text."""
    files, tasks = counted(row["files"], "file"), counted(row["tasks"], "task")
    compared = counted(row["comparisons"], "partition")
    yield f"would check  {row['bytes']:,} bytes in {files}, in {tasks}; the largest has {row['largest_task']:,} bytes"
    yield f"would compare  the copies of {compared}"
    if row["requests"] is not None:
        yield f"would ask  the store {counted(row['requests'], 'time')} or more"
    spent = f"{row['core_seconds']:,} s of one core"
    if row["cores"] is None:
        yield f"would take  about {spent}, shared by the cores of the cluster"
    else:
        yield f"would take  about {row['seconds']:,} s on {counted(row['cores'], 'core')} ({spent})"
