"""The order of moments: by the greatest zxid of their znode exports, else by how far the metadata log of a KRaft cluster
reaches, else by their newest batch, else as given.

An epoch and an offset of the metadata log come once and in order, whatever the clocks of the nodes that wrote it say.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path

from formats.log_dir.file_names import FolderKind
from kctl.errors import UnreadableFile
from kctl.evidence.model import FoundEvidence
from kctl.files import open_file

METADATA_TOPIC = "__cluster_metadata"
LOG = re.compile(r"\d{20}\.log", re.ASCII)
# From the base offset to the end of maxTimestamp of a magic 2 batch (`R:DefaultRecordBatch.java @ 3.9.0`).
HEADER = struct.Struct(">qiiBIhiqq")
LEGACY_TIMESTAMP = struct.Struct(">q")


def ordered_moments(evidence: FoundEvidence) -> tuple[str, ...]:
    """Names of the moments, oldest first. One that nothing dates keeps its place in the order given."""
    names = [log_dir.moment for log_dir in evidence.log_dirs] + [
        export.moment for export in evidence.znode_exports
    ]
    unique = list(dict.fromkeys([*evidence.given_moments, *filter(None, names)]))
    if len(unique) < 2:
        return tuple(unique)
    for date_of in DATES:
        dates = {name: date_of(evidence, name) for name in unique}
        if all(date is not None for date in dates.values()):
            # The cluster may have been idle between two copies: then the batches tell them apart.
            idle = len(set(dates.values())) < len(unique)
            newest = {name: _newest_timestamp(evidence, name) or 0 for name in unique if idle}
            return tuple(sorted(unique, key=lambda name: (dates[name] or 0, newest.get(name, 0))))
    return tuple(unique)


def is_order_known(evidence: FoundEvidence) -> bool:
    """Whether anything tells the order of the moments: their znodes, their batches, or who gave them."""
    names = evidence.moments
    if len(names) < 2 or set(names) <= set(evidence.given_moments):
        return True
    return any(all(date_of(evidence, name) is not None for name in names) for date_of in DATES)


def _zxid(evidence: FoundEvidence, moment: str) -> int | None:
    if not evidence.znode_exports:
        return None
    from kctl.evidence.znodes import greatest_zxid

    zxids = []
    for export in evidence.znode_exports:
        if export.moment == moment:
            try:
                zxids.append(greatest_zxid(export.path))
            except UnreadableFile:
                continue
    return max(zxids, default=0) or None


def _metadata_reach(evidence: FoundEvidence, moment: str) -> int | None:
    """The epoch and offset of the last batch of any copy of the metadata log, as one number; None without one.

    None too where the moments are of several clusters.
    """
    if len({log_dir.cluster_id for log_dir in evidence.log_dirs} - {None}) > 1:
        return None
    folders = (
        replica.folder
        for replica in evidence.replicas
        if replica.moment == moment and replica.kind is FolderKind.LIVE and replica.topic == METADATA_TOPIC
    )
    reaches = (_of_last_segment(folder, _last_batch) for folder in folders)
    return max((reach for reach in reaches if reach is not None), default=None)


def _newest_timestamp(evidence: FoundEvidence, moment: str) -> int | None:
    folders = (r.folder for r in evidence.replicas if r.moment == moment and r.kind is FolderKind.LIVE)
    return max(filter(None, map(newest_timestamp, folders)), default=None)


def newest_timestamp(folder: Path) -> int | None:
    """The newest batch timestamp in the last segment of a partition folder, in milliseconds, or None."""
    return _of_last_segment(folder, _newest_in)


def _of_last_segment(folder: Path, read: Callable[[BufferedReader], int | None]) -> int | None:
    """What is read of the last segment of a partition folder; None without one."""
    try:
        names = sorted(name for name in os.listdir(folder) if LOG.fullmatch(name))
        if not names:
            return None
        with open_file(folder / names[-1]) as file:
            return read(file)
    except OSError:
        return None


def _newest_in(file: BufferedReader) -> int | None:
    return max(
        (timestamp for _, _, magic, timestamp in _headers(file) if magic and timestamp >= 0), default=None
    )


def _last_batch(file: BufferedReader) -> int | None:
    return max(
        ((max(epoch, 0) << 64) + offset for offset, epoch, _, _ in _headers(file) if offset >= 0),
        default=None,
    )


def _headers(file: BufferedReader) -> Iterator[tuple[int, int, int, int]]:
    """Base offset, leader epoch, magic and newest timestamp of each batch; damage ends the walk."""
    position = 0
    while len(head := file.read(HEADER.size)) == HEADER.size:
        offset, length, epoch, magic, _, _, _, _, timestamp = HEADER.unpack(head)
        if magic == 1:
            (timestamp,) = LEGACY_TIMESTAMP.unpack_from(head, 18)
        if length < 14 or magic > 2:
            break
        yield offset, epoch, magic, timestamp
        position += 12 + length
        file.seek(position)


DATES = (_zxid, _metadata_reach, _newest_timestamp)
