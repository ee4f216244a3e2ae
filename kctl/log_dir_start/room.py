"""Room on the file system of a log directory: what a start and the first compaction write, and what is free.

A recovered segment gets new indexes, an entry of 8 bytes and one of 12 every `index.interval.bytes`. The cleaner writes a
compacted segment before it deletes the old ones (`cleanSegments`, `K:log/LogCleaner.scala @ 2.4.1 to 3.9.0`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import disk_usage
from typing import NamedTuple

from kctl.checks.directory import CLEANER
from kctl.evidence.model import FoundEvidence, LogDir
from kctl.findings import Finding
from kctl.findings import directories as codes
from kctl.log.index_rules import DEFAULT_INTERVAL
from kctl.log_dir_start.configured import Surroundings
from kctl.log_dir_start.directory import DirectoryStart, read_offsets
from kctl.log_dir_start.rules import StartRules


class Room(NamedTuple):
    """The room of a log directory. `free` is None of a copy: that of the broker's file system is not in it."""

    log_dir: LogDir
    free: int | None
    recovery: int  # bytes that the start writes
    compaction: int  # bytes of the largest segment that the cleaner may write anew


def room_of(log_dir: LogDir, directory: DirectoryStart, around: Surroundings, rules: StartRules) -> Room:
    """The room of a directory that was loaded."""
    entry = 20 if rules.has_time_index else 8
    recovery = sum(
        loaded.bytes_recovered // DEFAULT_INTERVAL * entry for loaded in directory.partitions.values()
    )
    compacted = {str(partition) for partition in read_offsets(log_dir.path / CLEANER)}
    largest = max(
        (
            size
            for name, loaded in directory.partitions.items()
            if name in compacted
            for file, size in loaded.files.items()
            if file.endswith(".log")
        ),
        default=0,
    )
    return Room(log_dir, _free(log_dir.path, around), recovery, largest)


def _free(path: Path, around: Surroundings) -> int | None:
    """The free bytes of a directory that is the broker's own: `log.dirs` lists it with this very path."""
    listed = around.settings.listed_dirs if around.settings else []
    if str(path) not in {os.path.realpath(name) for name in listed if name.startswith("/")}:
        return None
    try:
        return disk_usage(path).free
    except OSError:
        return None


def room_findings(evidence: FoundEvidence, rooms: list[Room]) -> Iterator[Finding]:
    """A finding for each directory whose file system has less room than is needed."""
    for log_dir, free, recovery, compaction in rooms:
        if free is None or free >= recovery + compaction:
            continue
        place = evidence.place_of(log_dir.path, log_dir.root)
        if free < recovery:
            yield codes.NO_ROOM_FOR_RECOVERY.at(place, free=free, needed=recovery, path=log_dir.path)
        else:
            yield codes.NO_ROOM_FOR_COMPACTION.at(place, free=free, needed=compaction, path=log_dir.path)
