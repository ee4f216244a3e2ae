"""What people wait for on little evidence: the start of a command, and many small logs."""

import os
import shutil
import struct
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import KCTL, best_cpu, cost_of, least_cpu
from benchmarks.parts import Line, Setting, at_least, at_most
from formats.binary.crc import crc32c
from formats.log.record_batch import Record, write_batch

STARTS = {
    "--help": 0.05,
    "topic list --help": 0.12,
    "checkpoint show {checkpoint}": 0.12,
    "segment dump {log}": 0.12,
    "segment verify {log}": 0.12,
    "audit run {folder} --out {out} --overwrite --questions integrity": 0.25,
}
"""Commands on a small file, and the CPU seconds that they should take."""
FOLDERS, SMALL_LOG = 1000, 50_000
BEFORE = 613  # folders of such a log that were verified in a CPU second
LARGE_FOLDERS, LARGE_LOG = 300, 3_400_000


def part_start_up(setting: Setting) -> Iterator[Line]:
    """CPU seconds of whole commands on a small file, beside what Python, click and numpy take by themselves."""
    folder = brokers_folder(setting.folder / "one", 1, SMALL_LOG)
    log = next(folder.rglob("*.log"))
    for what in ("pass", "import click", "import numpy", "import pyarrow"):
        yield Line(f"python -c '{what}'", f"{least_cpu([sys.executable, '-c', what], 7):.3f} s")
    for command, goal in STARTS.items():
        checkpoint, out = log.parent / "leader-epoch-checkpoint", setting.folder / "audit-of-one"
        words = command.format(folder=folder, log=log, checkpoint=checkpoint, out=out).split()
        yield at_most(command, least_cpu([*KCTL, *words], 7), goal, " s")


def part_small_logs(setting: Setting) -> Iterator[Line]:
    """Folders a CPU second, one process, and what an audit costs beside verification alone, start-up included."""
    for count, size in ((FOLDERS, SMALL_LOG), (LARGE_FOLDERS, LARGE_LOG)):
        folder = brokers_folder(setting.folder / f"folders-{count}", count, size)
        out = setting.folder / "audit-of-folders"
        audit = [*KCTL, "audit", "run", folder, "--out", out, "--overwrite", "--jobs", "1"]
        verify = min(cost_of([*KCTL, "segment", "verify", folder, "--jobs", "1"]).cpu for _ in range(3))
        plain = min(cost_of([*audit, "--digests", "none"]).cpu for _ in range(3))
        digested = min(cost_of(audit).cpu for _ in range(3))
        shutil.rmtree(out)
        what = f"{count} folders of {size // 1000} kB"
        rate = count / verify
        if size == SMALL_LOG:
            text = f"{rate:.0f} folders a CPU second"
            yield at_least(
                f"{what}: segment verify, times the {BEFORE} of 2026-11-23", rate / BEFORE, 5, text
            )
        limit = best_cpu(partial(_read_and_crc, folder)) / verify
        yield Line(f"{what}: listing, reading and one CRC for each file, alone, of verify", f"{limit:.2f}")
        yield at_most(f"{what}: audit without digests against segment verify", plain / verify, 1.3)
        yield Line(f"{what}: audit with SHA-256 against segment verify", f"{digested / verify:.2f}")


def _read_and_crc(folder: Path) -> None:
    for partition in folder.glob("*-0"):
        for path in partition.iterdir():
            crc32c(path.read_bytes())


def brokers_folder(folder: Path, count: int, size: int) -> Path:
    """A log directory of so many partitions with a log of this size and its indexes, hard links of the first."""
    if folder.exists():
        return folder
    making = folder.with_suffix(".making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    (making / "meta.properties").write_text("version=0\nbroker.id=1\n")
    data, entries, value, end = bytearray(), [], os.urandom(100), 0
    while len(data) < size:
        if not entries or len(data) - entries[-1][1] > 4096:
            entries.append((end + 9, len(data)))
        data += write_batch(
            [Record(end + n, 1_700_000_000_000 + end + n, None, value, ()) for n in range(10)]
        )
        end += 10
    files = {
        f"{0:020d}.log": bytes(data),
        f"{0:020d}.index": b"".join(struct.pack(">ii", *entry) for entry in entries[1:]),
        f"{0:020d}.timeindex": b"".join(
            struct.pack(">qi", 1_700_000_000_000 + offset, offset) for offset, _ in entries[1:]
        ),
        "leader-epoch-checkpoint": b"0\n1\n0 0\n",
    }
    for number in range(count):
        partition = making / f"topic.{number}-0"
        partition.mkdir()
        for name, content in files.items():
            if number:
                os.link(making / "topic.0-0" / name, partition / name)
            else:
                (partition / name).write_bytes(content)
    marks = "".join(f"topic.{number} 0 {end}\n" for number in range(count))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (making / name).write_text(f"0\n{count}\n{marks}")
    (making / "log-start-offset-checkpoint").write_text("0\n0\n")
    making.rename(folder)
    return folder
