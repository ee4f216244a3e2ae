"""SHA-256 of files, so that a report says which bytes it is about."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from kctl.audit.resume import KeptDigests
from kctl.files import open_file
from kctl.model import Progress
from kctl.scan.pool import Jobs, ordered

PIECE = 1 << 20


def digest(path: Path) -> tuple[str | None, int]:
    """The SHA-256 of a regular file, in hexadecimal, and its size; None where it cannot be read."""
    total, size = hashlib.sha256(), 0
    try:
        with open_file(path, follow=True) as file:
            while piece := file.read(PIECE):
                total.update(piece)
                size += len(piece)
    except OSError:
        return None, size
    return total.hexdigest(), size


def digests(
    paths: Sequence[Path], jobs: Jobs, progress: Progress, kept: Path | None = None
) -> dict[Path, str]:
    """The SHA-256 of each file that can be read; in the folder `kept` are those of an earlier run."""
    earlier = KeptDigests(kept)
    found = {path: value for path in paths if (value := earlier.of(path)) is not None}
    left = [path for path in paths if path not in found]
    progress.start("hashing", sum(path.stat().st_size for path in left if path.is_file()))
    for path, (new, size) in zip(left, ordered(digest, left, jobs=jobs), strict=True):
        progress.advance(size)
        if new is not None:
            found[path] = new
            earlier.add(path, new)
    return found
