"""The order of moments: by the greatest zxid of their znode exports, else by their newest batch, else as given."""

from __future__ import annotations

import os
import re
import struct
from io import BufferedReader
from pathlib import Path

from formats.log_dir.file_names import FolderKind
from kctl.errors import UnreadableFile
from kctl.evidence.model import FoundEvidence
from kctl.files import open_file

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
    for date_of in (_zxid, _newest_timestamp):
        dates = {name: date_of(evidence, name) for name in unique}
        if all(date is not None for date in dates.values()):
            # ZooKeeper may have been idle between two copies: then the batches tell them apart.
            idle = len(set(dates.values())) < len(unique)
            newest = {name: _newest_timestamp(evidence, name) or 0 for name in unique if idle}
            return tuple(sorted(unique, key=lambda name: (dates[name] or 0, newest.get(name, 0))))
    return tuple(unique)


def is_order_known(evidence: FoundEvidence) -> bool:
    """Whether anything tells the order of the moments: their znodes, their batches, or who gave them."""
    names = evidence.moments
    if len(names) < 2 or set(names) <= set(evidence.given_moments):
        return True
    return any(
        all(date_of(evidence, name) is not None for name in names) for date_of in (_zxid, _newest_timestamp)
    )


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


def _newest_timestamp(evidence: FoundEvidence, moment: str) -> int | None:
    folders = (r.folder for r in evidence.replicas if r.moment == moment and r.kind is FolderKind.LIVE)
    return max(filter(None, map(newest_timestamp, folders)), default=None)


def newest_timestamp(folder: Path) -> int | None:
    """The newest batch timestamp in the last segment of a partition folder, in milliseconds, or None."""
    try:
        names = sorted(name for name in os.listdir(folder) if LOG.fullmatch(name))
        if not names:
            return None
        with open_file(folder / names[-1]) as file:
            return _newest_in(file)
    except OSError:
        return None


def _newest_in(file: BufferedReader) -> int | None:
    """Step from header to header; damage ends the walk, what was seen until then counts."""
    newest, position = None, 0
    while len(head := file.read(HEADER.size)) == HEADER.size:
        _, length, _, magic, _, _, _, _, timestamp = HEADER.unpack(head)
        if magic == 1:
            (timestamp,) = LEGACY_TIMESTAMP.unpack_from(head, 18)
        if length < 14 or magic > 2:
            break
        if magic and timestamp >= 0:
            newest = max(newest or 0, timestamp)
        position += 12 + length
        file.seek(position)
    return newest
