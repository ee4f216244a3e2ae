"""What a folder seems to hold, told by names alone and soon: for somebody who stands in it and does not know how to begin."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from kctl.evidence.names import broker_log_kind

MOST_FOLDERS = 2000
DEEPEST = 5  # as partitions lie in copies of several moments: moments/after/broker-1/data/orders-0


class Glance(NamedTuple):
    """How many of each were seen; `is_whole` is false where the look ended early."""

    partitions: int = 0
    logs: int = 0
    segments: int = 0
    is_whole: bool = True


def glance(folder: Path) -> Glance:
    """Look through a folder, not for long."""
    partitions = logs = segments = looked = 0
    for path, folders, files in islice(os.walk(folder), MOST_FOLDERS):
        looked += 1
        is_deepest = len(Path(path).relative_to(folder).parts) == DEEPEST
        folders[:] = [] if is_deepest else [name for name in folders if not name.startswith(".")]
        own = sum(file.endswith(".log") and file[:-4].isdigit() for file in files)
        partitions, segments = partitions + bool(own), segments + own
        logs += any(broker_log_kind(file) is not None for file in files)
    return Glance(partitions, logs, segments, looked < MOST_FOLDERS)
