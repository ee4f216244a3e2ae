"""What a copy of evidence costs, beside `cp` and the digest of the same bytes; and the memory of one of a million files."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.measure import KCTL, best_cpu, cost_of
from benchmarks.parts import Line, Setting, at_most
from benchmarks.small import brokers_folder

PARTITIONS = 20
FOLDERS, FILES = 2000, 500
MOST_MEMORY = 200 << 20
PIECE = 1 << 20


def part_collect(setting: Setting) -> Iterator[Line]:
    """CPU seconds of `collect` against `cp -r` and SHA-256 of the same bytes, start-up included; its memory at a million files."""
    source = brokers_folder(setting.folder / "collected", PARTITIONS, 2 * setting.large // PARTITIONS)
    size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    copy = setting.folder / "copy"
    cp = min(_copied(["cp", "-r", source, copy], copy) for _ in range(3))
    digest = best_cpu(partial(_digests, source), 2)
    cpu = min(_copied([*KCTL, "collect", "--to", copy, source], copy) for _ in range(3))
    text = f"{cpu:.2f} s; cp {cp:.2f} s, SHA-256 {digest:.2f} s"
    what = f"{size / 1e9:.1f} GB local, against cp and the digest"
    yield at_most(what, cpu / (cp + digest), 1.3, "", text)
    yield from _many_files(setting.folder / "a-million", copy)


def _many_files(source: Path, copy: Path) -> Iterator[Line]:
    """A log directory of a million empty files."""
    (source / "data").mkdir(parents=True, exist_ok=True)
    (source / "data" / "meta.properties").write_text("version=0\nbroker.id=1\n")
    try:
        for number in range(FOLDERS):
            folder = source / "data" / f"topic.{number}-0"
            folder.mkdir(exist_ok=True)
            for file in range(FILES):
                (folder / f"{file:020d}.log").touch()
        shutil.rmtree(copy, ignore_errors=True)
        cost = cost_of([*KCTL, "collect", "--to", copy, source], watch=True)
        if cost.status:
            raise RuntimeError(f"collect ended with {cost.status}")
        what = f"{FOLDERS * FILES:,} files: memory"
        peak = cost.peak / (1 << 20)
        yield at_most(what, peak, MOST_MEMORY >> 20, " MiB", f"{cost.cpu:.0f} s CPU")
    finally:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.rmtree(source)


def _copied(command: Sequence[object], copy: Path) -> float:
    """CPU seconds of a copy, which is removed again."""
    cost = cost_of(command)
    os.sync()
    shutil.rmtree(copy)
    if cost.status:
        raise RuntimeError(f"{command} ended with {cost.status}")
    return cost.cpu


def _digests(source: Path) -> None:
    for path in source.rglob("*"):
        if path.is_file():
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while data := file.read(PIECE):
                    digest.update(data)
