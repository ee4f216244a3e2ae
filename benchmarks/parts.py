"""What is measured, one function a part; each yields lines of the result.

A line is: what was measured, the figure, the goal, and whether it was reached (None: no goal). Figures are
ratios of the same run where they can be, so that they hold on other machines.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import Shape, make, shape_of
from benchmarks.in_memory import InMemory
from benchmarks.kafka_jars import dump_command
from benchmarks.measure import KCTL, Tool, best_cpu, cost_of, memcpy_rate
from benchmarks.plain_decoder import records_of
from formats.binary.crc import crc32c
from formats.compression import Codec, decompress
from formats.log.columns.headers import gather, walk
from kctl.findings import Place
from kctl.scan.options import Level, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.splits import hints_of
from kctl.scan.tables import records_table

MOST_ON_DISK = 8 << 30


class Line(NamedTuple):
    """One figure."""

    what: str
    figure: str
    goal: str = ""
    reached: bool | None = None


@dataclass(frozen=True)
class Setting:
    """What a run works with."""

    folder: Path
    size: int  # of each file of the corpus
    shapes: Sequence[Shape]  # in place of each part's own, where some are given
    kafka: Path | None  # its jars
    large: int  # of the large files

    def log(self, shape: Shape, size: int | None = None) -> Path:
        """The segment of a shape; others go where the corpus would take too much of the disk."""
        wanted = size or self.size
        files = sorted(self.folder.glob("*-0/*.log"), key=lambda path: path.stat().st_mtime)
        total = sum(path.stat().st_size for path in files)
        for path in files:
            if total + wanted > MOST_ON_DISK and path.stat().st_size > 1 << 20:
                total -= path.stat().st_size
                shutil.rmtree(path.parent)
        return make(self.folder, shape, wanted)

    def chosen(self, names: str) -> Sequence[Shape]:
        """The shapes that a part measures."""
        return self.shapes or [shape_of(name) for name in names.split()]

    @property
    def tiny(self) -> Path:
        """A segment of one batch."""
        return make(self.folder, shape_of("none-1x100"), 400)


def at_least(what: str, value: float, goal: float | None, text: str = "") -> Line:
    """A ratio that should be this large."""
    figure = f"{value:.2f}{text and ' (' + text + ')'}"
    return Line(what, figure, "" if goal is None else f"≥ {goal:g}", None if goal is None else value >= goal)


def at_most(what: str, value: float, goal: float, unit: str = "", text: str = "") -> Line:
    """A figure that should be this small."""
    return Line(what, f"{value:.4g}{unit}{text and ' (' + text + ')'}", f"≤ {goal:g}{unit}", value <= goal)


def _verify(level: str) -> Callable[[Path], list[object]]:
    return lambda log: [
        *KCTL,
        "segment",
        "verify",
        "--level",
        level,
        "--jobs",
        1,
        "--output",
        "jsonl",
        log.parent,
    ]


def _batch_sizes(log: Path) -> tuple[int, int, int]:
    """Batches, records and bytes of a segment."""
    data = np.fromfile(log, np.uint8)
    padded = np.concatenate((data, np.zeros(64, np.uint8)))
    headers = gather(padded, walk(padded, 0, len(data)).positions)
    return len(headers), int(headers.records_count.sum()), len(data)


def part_crc(setting: Setting) -> Iterator[Line]:
    """`segment verify --level crc` against a plain run of Kafka's dump tool, and against what reads and checks no more.

    CPU seconds, each tool's start-up taken off; rates are a CPU second's.
    """
    kctl = Tool(_verify("crc"), setting.tiny)
    kafka = None
    if setting.kafka:
        jars = setting.kafka
        kafka = Tool(lambda log: dump_command(jars, log), setting.tiny)
    memory = memcpy_rate()
    for shape in setting.chosen("none-1x100 none-10x100 none-100x100 none-100x1000"):
        log = setting.log(shape, 2 * setting.size)
        batches, _, size = _batch_sizes(log)
        mine = kctl.cpu(log, 3)
        each = size / batches
        what = f"{shape}, batches of {each:,.0f} B: {size / mine / 1e9:.2f} GB/s"
        if kafka:
            goal = 5 if shape.records == 1 else 4 if each <= 20_000 else 2.5
            yield at_least(f"{what}; times Kafka's dump tool", kafka.cpu(log, 1) / mine, goal)
        share = size / mine / memory
        yield at_least(f"{what}; of memcpy", share, 0.15 if each >= 10_000 else None)
        limit = size / best_cpu(partial(_read_and_crc, log))
        text = f"{limit / 1e9:.2f} GB/s"
        yield at_least(f"{what}; of reading and one CRC for each MiB, alone", size / mine / limit, None, text)


def _read_and_crc(log: Path) -> None:
    room = np.empty(1 << 20, np.uint8)
    with log.open("rb", buffering=0) as file:
        while size := file.readinto(room):
            crc32c(room[:size])


RECORDS = """
none-1x100 none-10x100 none-100x100 none-100x1000 lz4-1x100 lz4-100x100 lz4-100x1000 lz4-1000x1000 snappy-1x100
snappy-100x100 zstd-100x1000 gzip-100x1000
"""


def part_records(setting: Setting) -> Iterator[Line]:
    """`segment verify` against `--deep-iteration`, and the codec's share of its CPU time.

    CPU seconds, each tool's start-up taken off; rates are a CPU second's.
    """
    kctl = Tool(_verify("records"), setting.tiny)
    kafka = None
    if setting.kafka:
        jars = setting.kafka
        kafka = Tool(lambda log: dump_command(jars, log, "--deep-iteration"), setting.tiny)
    for shape in setting.chosen(RECORDS):
        log = setting.log(shape)
        _, records, _ = _batch_sizes(log)
        mine = kctl.cpu(log, 3)
        what = f"{shape}: {records / mine / 1e6:.2f} million records/s"
        bound = shape.codec in (Codec.GZIP, Codec.ZSTD)
        quick = shape.records == 1 or (shape.codec in (Codec.LZ4, Codec.SNAPPY) and shape.value == 100)
        if kafka:
            goal = None if bound else 8 if quick else 6 if shape.codec is Codec.LZ4 else 5
            yield at_least(f"{what}; times Kafka with --deep-iteration", kafka.cpu(log, 1) / mine, goal)
        if shape.codec:
            share = _codec_cpu(log) / mine
            yield at_least(f"{what}; the codec's share", share, 0.5 if bound else None)


def _codec_cpu(log: Path) -> float:
    """CPU seconds of the codec alone: its library takes each body by itself, into memory of its own."""
    data = log.read_bytes()
    view = memoryview(data)
    padded = np.frombuffer(data + bytes(64), np.uint8)
    headers = gather(padded, walk(padded, 0, len(data)).positions)
    spans = list(
        zip(
            (headers.position + 61).tolist(),
            headers.next_position.tolist(),
            headers.codec.tolist(),
            strict=True,
        )
    )

    def work() -> None:
        for start, end, codec in spans:
            decompress(codec, view[start:end], magic=2)

    return best_cpu(work, 2)


def part_dump(setting: Setting) -> Iterator[Line]:
    """`segment dump --records` to JSON lines against `--print-data-log`.

    CPU seconds, each tool's start-up taken off; rates are a CPU second's.
    """
    kctl = Tool(lambda log: [*KCTL, "segment", "dump", "--records", "--output", "jsonl", log], setting.tiny)
    kafka = None
    if setting.kafka:
        jars = setting.kafka
        kafka = Tool(lambda log: dump_command(jars, log, "--print-data-log"), setting.tiny)
    for shape in setting.chosen(
        "none-1x100 none-10x100 none-100x100 none-100x1000 lz4-100x100 snappy-100x100"
    ):
        log = setting.log(shape)
        _, records, _ = _batch_sizes(log)
        mine = kctl.cpu(log, 2)
        what = f"{shape}: {records / mine / 1e6:.2f} million records/s"
        if kafka:
            yield at_least(f"{what}; times Kafka with --print-data-log", kafka.cpu(log, 1) / mine, 3)
        else:
            yield Line(what, "")
        if str(shape) == LARGE_VALUES:
            yield at_least(f"{shape}: times the 0.16 of 2026-11-22", records / mine / 1e6 / 0.16, 2.5)
            cost = min((cost_of(kctl.command(log)) for _ in range(3)), key=lambda cost: cost.cpu)
            share, faults = cost.kernel / cost.cpu, f"{cost.faults:,} page faults"
            yield at_most(f"{shape}: the kernel's share, start-up included", share, 0.15, "", faults)


LARGE_VALUES = "none-100x1000"


def _scan(source: InMemory, hints: NDArray[np.int64] | None, level: Level) -> int:
    scan = scan_segment(source, ScanOptions(level=level, base_offset=0), hints=hints)
    return sum(len(chunk.headers) for chunk in scan)


def _to_arrow(source: InMemory) -> int:
    rows = 0
    for chunk in scan_segment(source, ScanOptions(keep_records=True, base_offset=0)):
        rows += records_table(chunk, Place(topic="t", partition=0)).num_rows
    return rows


def part_memory_rates(setting: Setting) -> Iterator[Line]:
    """The scan in memory, without a page cache to copy from, against memcpy."""
    memory = memcpy_rate()
    goals = {1: (0.12, 0.025), 10: (1.0, 0.07), 100: (1.0, 0.25), 1000: (1.0, 0.45)}
    for records, (header_goal, crc_goal) in goals.items():
        log = setting.log(Shape(Codec.NONE, records, 100))
        source = InMemory(log.read_bytes())
        hints = hints_of(log.with_suffix(".index").read_bytes())
        for level, goal in ((Level.HEADER, header_goal), (Level.CRC, crc_goal)):
            cpu = best_cpu(partial(_scan, source, hints, level))
            rate = source.size / cpu
            what = f"none-{records}x100, level {level.name.lower()}: {rate / 1e9:.2f} GB/s; of memcpy"
            yield at_least(what, rate / memory, goal)


def whole_batches(data: bytes, size: int) -> bytes:
    """The batches at the start of a log that fit into a size."""
    end = 0
    while end + 12 <= min(len(data), size):
        following = end + 12 + int.from_bytes(data[end + 8 : end + 12], "big")
        if following > size:
            break
        end = following
    return data[:end]


def part_decode(setting: Setting) -> Iterator[Line]:
    """Every record into Arrow, keys, values and headers included, against a plain decoder in Python."""
    for shape in setting.chosen("none-1x100 none-100x100 none-100x1000 lz4-100x100 snappy-100x100"):
        log = setting.log(shape)
        data = whole_batches(log.read_bytes(), 16 << 20)
        source = InMemory(data)
        rows = _to_arrow(source)
        mine, plain = best_cpu(partial(_to_arrow, source)), best_cpu(partial(records_of, data), 1)
        own = shape.codec is Codec.NONE
        what = f"{shape}: {rows / mine / 1e6:.2f} million records/s; times a plain decoder"
        yield at_least(what, plain / mine, 8 if own else None)


def part_memory(setting: Setting) -> Iterator[Line]:
    """Peak memory on large files of several shapes."""
    for shape in setting.chosen("none-1x100 none-1000x1000 lz4-100x100 zstd-1000x1000 snappy-1x100"):
        name, log = str(shape), setting.log(shape, setting.large)
        commands: dict[str, list[object]] = {
            "verify": [*KCTL, "segment", "verify", "--jobs", 1, "--output", "jsonl", log],
            "dump --records": [*KCTL, "segment", "dump", "--records", "--output", "jsonl", log],
        }
        for what, command in commands.items():
            cost = cost_of(command, watch=True)
            text = f"{cost.wall:.1f} s"
            yield at_most(
                f"{what}, {name} of {setting.large >> 20} MiB", cost.peak / (1 << 20), 300, " MiB", text
            )
        shutil.rmtree(log.parent)


PARTS: dict[str, Callable[[Setting], Iterator[Line]]] = {
    "crc": part_crc,
    "records": part_records,
    "dump": part_dump,
    "in-memory": part_memory_rates,
    "decode": part_decode,
    "memory": part_memory,
}
