"""Damaged input for every call of a native library that takes bytes of evidence or of an earlier output.

    python -m tests.fuzz.native --minutes 5

A native library may end the process instead of raising, which no test in the same process survives: each run of
mutations is a child. What kills one is kept in `--keep`, and printed.
"""

from __future__ import annotations

import argparse
import contextlib
import mmap
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

from formats.compression import Codec, decompress, pieces
from formats.compression.in_place import reader_into
from formats.compression.many import small_bodies
from formats.compression.writers import compress
from formats.errors import FormatError
from kctl.errors import failure_of
from tests.conftest import kctl, recording
from tests.fuzz.mutations import fields, some_bytes, times

RUN = 50  # mutations a child
MOST_MEMORY = 4 << 30  # bytes of address space of a child
HUGE = (
    b"\xff\xff\xff\xff\x07",
    b"\xfe\xff\xff\xff\x0f",
    b"\xff" * 9 + b"\x01",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
)
LONGEST = 600  # seconds of a child
LIMIT = 16 << 20
CODECS = {codec.name.lower(): codec for codec in Codec if codec is not Codec.NONE}


def frames(codec: int) -> Callable[[bytes, Path], None]:
    """Every way in which a compressed body is read."""

    def read(data: bytes, folder: Path) -> None:
        for call in (
            lambda: decompress(codec, data, magic=2, limit=LIMIT),
            lambda: sum(map(len, pieces(codec, data, magic=2, limit=LIMIT))),
            lambda: decompress(codec, data, magic=1, limit=LIMIT) if codec < Codec.ZSTD else b"",
        ):
            with contextlib.suppress(FormatError):
                call()
        into = reader_into(codec)
        if into is not None:
            into(memoryview(data), memoryview(bytearray(1 << 20)))
        three = np.frombuffer(data * 3, np.uint8)
        starts = np.arange(3) * len(data)
        small_bodies(
            codec, three, starts, starts + len(data), lambda size: memoryview(bytearray(size)), LIMIT
        )

    return read


def tables(data: bytes, folder: Path) -> None:
    """A part of a table of an audit, by the commands that read tables back."""
    audit = folder / "audit"
    if not audit.exists():
        shutil.copytree(audited(), audit)
    (part,) = (audit / "findings").glob("*.parquet")
    part.write_bytes(data)
    for words in (
        ("report", audit), ("sql", audit, "SELECT * FROM findings ORDER BY code"), ("sql", audit, "SELECT count(*) FROM findings"),
        ("run", "--merge", audit, audit, "--out", folder / "merged", "--overwrite"),
    ):  # fmt: skip
        assert kctl("audit", *words).status in (0, 2, 3, 4, 5), words


def audited() -> Path:
    """The audit whose tables are damaged."""
    out = Path(tempfile.gettempdir()) / f"native-audit-{os.getppid()}"
    if not out.exists():
        kctl("audit", "run", recording("segments/2.8.2"), "--out", out, "--jobs", 1, "--no-sha256")
    return out


CALLS: dict[str, Callable[[bytes, Path], None]] = {
    **{name: frames(codec) for name, codec in CODECS.items()},
    "parquet": tables,
}


def thrift(rng: Random, data: bytes) -> bytes:
    """One edit of the compact encoding in which Parquet's footer and the headers of its pages stand."""
    if len(data) < 500:
        return some_bytes(rng, data)
    footer = min(max(4, len(data) - 8 - int.from_bytes(data[-8:-4], "little")), len(data) - 9)
    at = rng.randrange(footer, len(data) - 8) if rng.random() < 0.8 else rng.randrange(4, 400)
    match rng.randrange(4):
        case 0:  # a number or a length
            return data[:at] + rng.choice(HUGE) + data[at + 1 :]
        case 1:  # a list of countless elements
            return data[:at] + bytes([0xF0 | rng.randrange(16)]) + rng.choice(HUGE) + data[at + 2 :]
        case 2:  # a field of another type, or another field
            return data[:at] + bytes([rng.getrandbits(8)]) + data[at + 1 :]
        case _:  # the length of the footer
            return (
                data[:-8]
                + rng.choice((0, 1, footer, len(data), 2**31 - 1, 2**32 - 1)).to_bytes(4, "little")
                + data[-4:]
            )


def original(name: str) -> bytes:
    """What is mutated: content that compresses here and there, or the part of a table."""
    if name in CODECS:
        content = b"".join(Random(7).randbytes(40) + b"value of a record " * 30 for _ in range(60))
        return compress(CODECS[name], content, magic=2)
    (part,) = (audited() / "findings").glob("*.parquet")
    return part.read_bytes()


def child(name: str, seed: int, done: mmap.mmap, keep: Path) -> None:
    """One run; where it is, stands in `done`, and the input in a file."""
    signal.alarm(LONGEST)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    edits = (some_bytes, fields, *([thrift] * 3 if name == "parquet" else []))
    with tempfile.TemporaryDirectory() as folder:
        data = original(name)
        for number in range(RUN):
            rng = Random(f"{name} {seed} {number}")
            damaged = times(rng, data, rng.choice(edits))
            done[:8] = number.to_bytes(8, "big")
            keep.write_bytes(damaged)
            try:
                CALLS[name](damaged, Path(folder))
            except Exception as error:
                if failure_of(error) is None:
                    raise
    keep.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument(
        "--keep", type=Path, default=Path(tempfile.gettempdir()), help="folder for what kills"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--call", action="append", choices=CALLS, help="only this; repeatable")
    given = parser.parse_args()
    audited_by_all = Path(tempfile.gettempdir()) / f"native-audit-{os.getpid()}"
    done, end, seed, killed = mmap.mmap(-1, 8), time.monotonic() + 60 * given.minutes, given.seed, 0
    runs = dict.fromkeys(given.call or CALLS, 0)
    while time.monotonic() < end:
        for name in runs:
            keep = given.keep / f"native-{name}-{seed}"
            pid = os.fork()
            if not pid:
                try:
                    child(name, seed, done, keep)
                except BaseException as error:
                    print(f"{name}, seed {seed}, {int.from_bytes(done[:8], 'big')}: {error!r}", flush=True)
                    os._exit(1)
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            runs[name] += RUN
            if status:
                killed += 1
                how = (
                    signal.Signals(os.WTERMSIG(status)).name
                    if os.WIFSIGNALED(status)
                    else f"exit {status >> 8}"
                )
                print(f"{name}: {how} upon mutation {int.from_bytes(done[:8], 'big')}: {keep}", flush=True)
        seed += 1
    shutil.rmtree(audited_by_all, ignore_errors=True)
    print(f"{runs}, {killed} runs ended early")
    sys.exit(5 if killed else 0)


if __name__ == "__main__":
    main()
