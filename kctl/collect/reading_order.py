"""The order in which files of a running broker are read, so that what a later file says holds for an earlier one.

Batches are appended before the indexes name them, and a high watermark never exceeds the log's end: what is derived is
read before what it is derived from. Retention and the cleaner take the oldest segments first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from formats.log_dir.file_names import LEADER_EPOCHS, OFFSET_CHECKPOINTS, FileState, parse_segment_file
from kctl.collect.transport import FILE, Entry

# A segment's log comes behind what points into it.
SUFFIXES = (".index", ".timeindex", ".txnindex", ".log")
SNAPSHOTS = (".snapshot", ".checkpoint")
READ_TWICE = frozenset({*OFFSET_CHECKPOINTS, LEADER_EPOCHS})
"""Small files that a broker writes anew as its log goes on: read first, and once more behind the log."""


def in_reading_order(entries: Iterable[Entry]) -> list[Entry]:
    """The files of a partition folder: checkpoints, snapshots, then segments oldest first and the active one last."""
    return sorted((entry for entry in entries if entry.kind == FILE), key=_place)


def _place(entry: Entry) -> tuple[int, int, int, str]:
    named = parse_segment_file(entry.name)
    if named is None:
        return (0, 0, 0, entry.name)
    if named.suffix in SNAPSHOTS:
        return (1, named.base_offset, 0, entry.name)
    rank = SUFFIXES.index(named.suffix) if named.suffix in SUFFIXES else 0
    return (2, named.base_offset, rank, entry.name)


def active_segment(entries: Sequence[Entry]) -> int | None:
    """The base offset of the newest live segment, or None."""
    offsets = (
        named.base_offset
        for entry in entries
        if (named := parse_segment_file(entry.name))
        and named.suffix == ".log"
        and named.state is FileState.LIVE
    )
    return max(offsets, default=None)
