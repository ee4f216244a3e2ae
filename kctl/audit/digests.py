"""Digests of the files that no worker has read as a whole: those of a log directory itself, and files named alone."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kctl.audit.read_files import digest
from kctl.audit.resume import KeptDigests
from kctl.model import Progress
from kctl.scan.pool import Jobs, ordered


def digests(
    paths: Sequence[Path], algorithm: str, jobs: Jobs, progress: Progress, kept: Path | None = None
) -> dict[Path, str]:
    """The digest of each file that can be read; in the folder `kept` are those of an earlier run."""
    earlier = KeptDigests(kept if algorithm == "sha256" else None)
    found = {path: value for path in paths if (value := earlier.of(path)) is not None}
    left = [path for path in paths if path not in found]
    if not left:
        return found
    progress.start("hashing", sum(path.stat().st_size for path in left if path.is_file()))
    results = ordered(partial(digest, algorithm=algorithm), left, jobs=jobs)
    for path, (new, size) in zip(left, results, strict=True):
        progress.advance(size)
        if new is not None:
            found[path] = new
            earlier.add(path, new)
    return found
