"""The metadata log of a busy tier, made from arrays, and what it costs to print and to fold it.

    python -m benchmarks.remote                     # 5 million records
    python -m benchmarks.remote --records 1000000

A record a batch, as brokers write them: they wait for each to be read back. Segments are copied, and deleted
some time later, so that a fixed number of them is alive.
"""

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from benchmarks.kafka_jars import CACHE, dump_command, jars
from benchmarks.measure import KCTL, Tool, cost_of, machine
from benchmarks.parts import Line, at_least
from benchmarks.results import shown
from formats.binary.varint import write_varint
from kctl.tier.metadata.partitioner import metadata_partition

LIVE = 100_000
FOR_KAFKA = 100_000  # records; its tool prints some 30,000 a second
TOPIC_IDS = 40
SEGMENT_BYTES = 1 << 28
INDEX_INTERVAL = 4096
NAME = b"orders-of-region-%02d"
_PARTITION = [("name", "S19"), ("topic_id", "V16"), ("partition", ">i4"), ("no_tags", "u1")]
_SEGMENT = [*_PARTITION, ("id", ">u8", (2,)), ("no_tags_of_id", "u1")]
_FRAME = [("frame", "u1"), ("key", "u1"), ("version", "u1"), ("name_length", "u1"), *_SEGMENT]
ADD = [
    *_FRAME, ("start", ">i8"), ("end", ">i8"), ("broker", ">i4"), ("max_timestamp", ">i8"), ("event", ">i8"),
    ("epochs", "u1"), ("epoch", ">i4"), ("first", ">i8"), ("no_tags_of_epoch", "u1"), ("size", ">i4"),
    ("custom", "u1"), ("state", "i1"), ("no_tags_at_end", "u1"),
]  # fmt: skip
UPDATE = [
    *_FRAME,
    ("broker", ">i4"),
    ("event", ">i8"),
    ("custom", "u1"),
    ("state", "i1"),
    ("no_tags_at_end", "u1"),
]
HEADER = [
    ("base", ">i8"), ("length", ">i4"), ("leader_epoch", ">i4"), ("magic", "i1"), ("crc", ">u4"),
    ("attributes", ">i2"), ("last_delta", ">i4"), ("first_time", ">i8"), ("last_time", ">i8"),
    ("producer", ">i8"), ("producer_epoch", ">i2"), ("sequence", ">i4"), ("count", ">i4"),
]  # fmt: skip


def _batches(kind: list[Any], rows: dict[str, Any], offsets: NDArray[np.int64]) -> NDArray[Any]:
    """One batch of one record for each row, CRCs left out."""
    value = np.dtype(kind).itemsize
    body = b"\0\0\0" + write_varint(-1) + write_varint(value)
    head = write_varint(len(body) + value + 1) + body
    layout = np.dtype([*HEADER, ("record", f"V{len(head)}"), *kind, ("no_headers", "u1")])
    made = np.zeros(len(offsets), layout)
    made["record"] = np.void(head)
    made["base"], made["length"], made["magic"], made["count"] = offsets, layout.itemsize - 12, 2, 1
    made["first_time"] = made["last_time"] = rows["event"]
    made["producer"], made["sequence"] = 1000, offsets & 0x7FFFFFFF
    for name, column in rows.items():
        made[name] = column
    return made


def _sealed(batches: NDArray[Any]) -> list[bytes]:
    """The bytes of each batch with its CRC set."""
    size = batches.dtype.itemsize
    raw, crc = batches.tobytes(), google_crc32c.value
    batches["crc"] = [crc(raw[at + 21 : at + size]) for at in range(0, len(raw), size)]
    raw = batches.tobytes()
    return [raw[at : at + size] for at in range(0, len(raw), size)]


class _Writer:
    """Segments with an offset index, rolled by size."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.offset = self.base = self.size = self.since = 0
        self.parts: list[bytes] = []
        self.index: list[bytes] = []

    def write(self, batches: list[bytes]) -> None:
        """Append batches of one record each."""
        for batch in batches:
            if self.since > INDEX_INTERVAL:
                self.index.append((self.offset - self.base).to_bytes(4, "big") + self.size.to_bytes(4, "big"))
                self.since = 0
            self.parts.append(batch)
            self.size += len(batch)
            self.since += len(batch)
            self.offset += 1
        if self.size > SEGMENT_BYTES:
            self.close()
            self.base, self.size, self.since = self.offset, 0, 0

    def close(self) -> None:
        """Write the segment out."""
        name = self.folder / f"{self.base:020d}"
        if self.parts:
            name.with_suffix(".log").write_bytes(b"".join(self.parts))
            name.with_suffix(".index").write_bytes(b"".join(self.index))
        self.parts, self.index = [], []


def _rows(steps: NDArray[np.int64], seed: NDArray[np.uint64]) -> dict[str, Any]:
    """What a copy's records have in common, for the segments that were copied at these steps."""
    topic = steps % TOPIC_IDS
    ids = np.empty((len(steps), 2), np.uint64)
    ids[:, 0] = steps.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ seed[0]
    ids[:, 1] = steps.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F) ^ seed[1]
    names = np.array([NAME % one for one in range(TOPIC_IDS)], "S19")
    topic_ids = np.array([one.to_bytes(16, "big") for one in range(1, TOPIC_IDS + 1)], "V16")
    return {
        "frame": 1, "name_length": len(NAME % 0) + 1, "name": names[topic], "topic_id": topic_ids[topic],
        "partition": 0, "id": ids, "broker": (steps % 3 + 1).astype(np.int32),
    }  # fmt: skip


def make_metadata_log(folder: Path, records: int, live: int = LIVE) -> Path:
    """A folder `__remote_log_metadata-0` with so many records, of so many live segments; made once."""
    name = f"remote-{records}" if live == LIVE else f"tier-{records}"
    target = folder / name / "__remote_log_metadata-0"
    if target.exists():
        return target
    aside = target.with_name("making")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    assert metadata_partition("A" * 21 + "Q", 0, 1) == 0
    seed = np.random.default_rng(1).integers(0, 1 << 63, 2, np.uint64)
    writer, step, chunk = _Writer(aside), 0, min(50_000, max(1, records // 2))
    while writer.offset < records:
        steps = np.arange(step, step + chunk, dtype=np.int64)
        old = steps - live
        deletes = (old >= 0).astype(np.int64)
        first = writer.offset + 2 * np.arange(chunk) + 2 * (np.cumsum(deletes) - deletes)
        time = 1_700_000_000_000 + steps * 10
        start = steps // TOPIC_IDS * 1000
        add = {
            **_rows(steps, seed), "key": 0, "start": start, "end": start + 999, "max_timestamp": time, "event": time,
            "epochs": 2, "epoch": 3, "first": start, "size": 1 << 20, "custom": 0, "state": 0,
        }  # fmt: skip
        columns = [_sealed(_batches(ADD, add, first))]
        for number, who in ((1, steps), (2, old), (3, old)):
            update = {**_rows(who, seed), "key": 1, "event": time + number, "custom": 0, "state": number}
            columns.append(_sealed(_batches(UPDATE, update, first + number)))
        for index, is_old in enumerate(deletes.tolist()):
            writer.write([column[index] for column in columns[: 4 if is_old else 2]])
        step += chunk
    writer.close()
    aside.rename(target)
    return target


def records_in(folder: Path) -> int:
    """Records of a made log: copies and their ends, and deletions of those that are old enough."""
    from formats.log.columns.headers import gather, walk

    total = 0
    for path in sorted(folder.glob("*.log")):
        data = np.concatenate((np.fromfile(path, np.uint8), np.zeros(64, np.uint8)))
        total += len(gather(data, walk(data, 0, len(data) - 64).positions))
    return total


def measure(records: int) -> Iterator[Line]:
    """A line a figure."""
    folder = CACHE / "corpus"
    log, part = make_metadata_log(folder, records), make_metadata_log(folder, FOR_KAFKA)
    count, few = records_in(log), records_in(part)
    size = sum(p.stat().st_size for p in log.glob("*.log")) / 1e6
    kafka = jars()
    theirs = 50_000.0
    if kafka:
        small = part / f"{0:020d}.log"
        started = part.with_name("none")
        started.mkdir(exist_ok=True)
        (started / small.name).write_bytes(b"")
        tool = Tool(
            lambda path: dump_command(kafka, path, "--remote-log-metadata-decoder"), started / small.name
        )
        theirs = few / tool.cpu(small)
    said = "measured" if kafka else "assumed: no Java or Maven here"
    made = f"{count:,} records in {size:,.0f} MB"
    yield Line(f"{made}: Kafka's dump tool, records a CPU second", f"{theirs:,.0f} ({said})")
    for name, command, goal in (
        ("remote format --format kafka", ["remote", "format", "--format", "kafka"], 8),
        ("remote segments", ["remote", "segments", "--output", "jsonl"], 20),
    ):
        cost = min((cost_of([*KCTL, *command, log], watch=True) for _ in range(2)), key=lambda one: one.cpu)
        rate = count / cost.cpu
        text = f"{rate:,.0f} records a CPU second, {cost.cpu:.2f} s"
        yield at_least(f"{made}: {name}, times Kafka's dump tool", rate / theirs, goal, text)
        text = f"{cost.peak / LIVE:,.0f} bytes a live segment"
        yield Line(f"{made}: {name}, peak memory", f"{cost.peak >> 20} MiB ({text})")


def main() -> None:
    """Make the log, measure, print."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--records", type=int, default=5_000_000)
    given = arguments.parse_args()
    print(machine())
    for line in measure(given.records):
        print(shown(line), flush=True)


if __name__ == "__main__":
    main()
