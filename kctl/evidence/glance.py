"""What a folder seems to hold, by names alone and quickly: for the hints of `kctl` without arguments."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from kctl.evidence.names import broker_log_kind

MOST_FOLDERS = 2000
DEEPEST = 5  # as partitions lie in copies of several moments: moments/after/broker-1/data/orders-0
DEEPEST_LOGS = 2  # broker-1/logs, where nothing else is there: anybody may have a server.log far below


class Glance(NamedTuple):
    """How many of each were counted; `is_whole` is False if the walk ended at `MOST_FOLDERS`."""

    partitions: int = 0
    logs: int = 0
    segments: int = 0
    is_whole: bool = True


def glance(folder: Path) -> Glance:
    """Counts in a folder and those below it, `MOST_FOLDERS` of them at most."""
    partitions = logs = near_logs = segments = looked = 0
    for path, folders, files in islice(os.walk(folder), MOST_FOLDERS):
        looked += 1
        depth = len(Path(path).relative_to(folder).parts)
        folders[:] = [] if depth == DEEPEST else [name for name in folders if not name.startswith(".")]
        own = sum(file.endswith(".log") and file[:-4].isdigit() for file in files)
        partitions, segments = partitions + bool(own), segments + own
        has_logs = any(broker_log_kind(file) is not None for file in files)
        logs, near_logs = logs + has_logs, near_logs + (has_logs and depth <= DEEPEST_LOGS)
    return Glance(partitions, logs if partitions else near_logs, segments, looked < MOST_FOLDERS)
