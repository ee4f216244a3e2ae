"""The segments that are measured: every codec, batches of 1 to 1000 records, values of 100 B and 1 KB.

Batches are framed as the Java producer frames them (snappy in blocks of 32 KiB, lz4 in independent blocks
of 64 KiB, neither lz4 nor zstd with a content size), values look like JSON and differ by a tenth in size,
2 % of the keys are null and a quarter of the records have headers. A few megabytes are made in truth; the
rest repeats them at other offsets, which a batch's CRC does not cover.

    python -m benchmarks.corpus .cache/corpus --size 64M
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from formats.compression import Codec
from formats.log.columns.headers import gather, walk
from formats.log.record_batch import Record, write_batch

MADE = 4 << 20  # bytes of records, before compression, that are made in truth
INDEX_INTERVAL = 4096
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Shape(NamedTuple):
    """What a file of the corpus is made of."""

    codec: Codec
    records: int  # in a batch
    value: int  # bytes, on average

    def __str__(self) -> str:
        return f"{self.codec.name.lower()}-{self.records}x{self.value}"


SHAPES = [
    Shape(codec, records, value) for value in (100, 1000) for records in (1, 10, 100, 1000) for codec in Codec
]


def shape_of(name: str) -> Shape:
    """The shape called so, as `zstd-100x1000`."""
    return next(shape for shape in SHAPES if str(shape) == name)


def _record(rng: random.Random, offset: int, size: int) -> Record:
    key = None if rng.random() < 0.02 else b"key-%09d" % rng.randrange(10**9)
    words = [f'"field{n}":"{rng.randrange(10**6)}"' for n in range(6)]
    text = "{" + ",".join(words) + ',"text":"'
    left = int(size * rng.uniform(0.9, 1.1)) - len(text) - 2
    text = (text + "".join(rng.choices("abcdefgh ijklmnop", k=max(0, left))) + '"}')[: int(size * 1.1)]
    headers = tuple(
        (b"header-%d" % n, b"%06d" % rng.randrange(10**6)) for n in range(rng.choice([0, 0, 0, 1, 2]))
    )
    if rng.random() < 0.1:
        headers = ()
    return Record(offset, 1_700_000_000_000 + offset, key, text.encode(), headers)


def batches(shape: Shape, seed: int = 1) -> bytes:
    """A few megabytes of batches of a shape, from offset 0 on."""
    rng = random.Random(f"{shape}{seed}")
    out: list[bytes] = []
    size = offset = 0
    while size < MADE or not out:
        some = [_record(rng, offset + n, shape.value) for n in range(shape.records)]
        size += sum(len(one.value or b"") + 30 for one in some)
        out.append(write_batch(some, codec=shape.codec, partition_leader_epoch=1))
        offset += shape.records
    return b"".join(out)


def repeated(made: bytes, size: int) -> Iterator[bytes]:
    """The batches again and again, offsets going on, up to the size."""
    data = np.frombuffer(made + bytes(64), np.uint8).copy()
    positions = walk(data, 0, len(made)).positions
    headers = gather(data, positions)
    span = int(headers.last_offset[-1]) + 1 - int(headers.base_offset[0])
    places = positions[:, None] + np.arange(8)
    written = 0
    while written < size:
        base = (headers.base_offset + written // len(made) * span).astype(">i8")
        data[places] = base.view(np.uint8).reshape(-1, 8)
        left = size - written
        after = headers.next_position[headers.next_position <= left]
        take = len(made) if left >= len(made) else (int(after[-1]) if len(after) else 0)
        yield data[:take].tobytes()
        if take < len(made):
            return
        written += take


def write_index(log: Path, made: bytes) -> None:
    """The offset index about as a leader writes it that was sent one batch at a time."""
    data = np.frombuffer(made + bytes(64), np.uint8)
    headers = gather(data, walk(data, 0, len(made)).positions)
    last = headers.last_offset - int(log.stem)
    size, span = log.stat().st_size, int(last[-1]) + 1
    rounds = np.arange(-(-size // len(made)))[:, None]
    positions = (headers.position + rounds * len(made)).ravel()
    offsets = (last + rounds * span).ravel()
    _, first = np.unique(positions // INDEX_INTERVAL, return_index=True)
    chosen = first[(positions[first] < size) & (positions[first] > 0)]
    np.stack((offsets[chosen], positions[chosen]), 1).astype(">i4").tofile(log.with_suffix(".index"))


def write_time_index(log: Path, made: bytes) -> None:
    """The time index: repeated batches have the timestamps of the first ones, so that only those are in it."""
    size = min(len(made), log.stat().st_size)
    data = np.frombuffer(made[:size] + bytes(64), np.uint8)
    headers = gather(data, walk(data, 0, size).positions)
    _, first = np.unique(headers.position // INDEX_INTERVAL, return_index=True)
    rows = np.union1d(first[headers.position[first] > 0], len(headers) - 1)
    entries = np.zeros(len(rows), [("timestamp", ">i8"), ("offset", ">i4")])
    entries["timestamp"], entries["offset"] = (
        headers.max_timestamp[rows],
        headers.last_offset[rows] - int(log.stem),
    )
    entries.tofile(log.with_suffix(".timeindex"))


def make(folder: Path, shape: Shape, size: int) -> Path:
    """The segment of a shape in a partition folder of its own, made if it is not there; its path."""
    partition = folder / f"{shape}.{size}-0"
    log = partition / f"{0:020d}.log"
    if not log.exists():
        partition.mkdir(parents=True, exist_ok=True)
        aside = log.with_suffix(".making")
        with aside.open("wb") as file:
            made = batches(shape)
            for part in repeated(made, size):
                file.write(part)
        aside.rename(log)
        write_index(log, made)
        write_time_index(log, made)
        (partition / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    return log


def bytes_of(text: str) -> int:
    """`64M` as a number of bytes."""
    unit = UNITS.get(text[-1:].upper(), 1)
    return int(float(text.rstrip("KMGkmg")) * unit)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--size", type=bytes_of, default=bytes_of("64M"))
    arguments.add_argument("shapes", nargs="*", type=shape_of)
    given = arguments.parse_intermixed_args()
    for one in given.shapes or SHAPES:
        print(make(given.folder, one, given.size))
