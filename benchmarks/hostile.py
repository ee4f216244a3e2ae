"""What hostile evidence costs: memory and time of a command over input that was made to exhaust either.

    python -m benchmarks.hostile                    # every case, into RESULTS.md
    python -m benchmarks.hostile zstd-bomb sparse   # these, printed only

A case writes its evidence and names a command; the command runs in one process of its own.
"""

import argparse
import base64
import contextlib
import datetime
import gzip
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import KCTL, machine
from benchmarks.results import shown, table, write_section
from formats.binary.crc import crc32c
from formats.compression.snappy import XERIAL
from formats.compression.writers import FRAME_MAGIC, LZ4_CHECKSUM, LZ4_DESCRIPTOR
from formats.log.record_batch import Record, write_record
from kctl.changes.journal import LARGEST_ENTRY

MOST_MEMORY = 300 << 20
MOST_SECONDS = 120
STOPPED_AT = 4 << 30  # bytes of address space: what reaches it ends with a MemoryError
GIB = 1 << 30
SEGMENTS, EPOCHS, PARTINGS = 60_000, 1_000_000, 2000
SIZE = GIB  # of what is behind few bytes
LINE, RECORDS, FILES, FINDINGS, BATCHES = 200_000_000, 20_000_000, 1_000_000, 10_000_000, 10_000_000
DENSE = 60 << 20  # bytes of an index
LOG = f"{0:020d}.log"
WIDE = b"\0" * (1 << 20)


class Line(NamedTuple):
    """One figure of RESULTS.md."""

    what: str
    figure: str
    goal: str
    reached: bool | None


# --- evidence -----------------------------------------------------------------------------------------


def batch(
    body: bytes, *, base: int = 0, count: int = 1, codec: int = 0, crc_of: bytes | None = None
) -> bytes:
    """A batch of magic 2 with a right CRC around any body."""
    last = min(count - 1, 2**31 - 1)
    after = (
        struct.pack(">hiqqqhii", codec, last, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, count) + body
    )
    return struct.pack(">qiibI", base, len(after) + 9, 0, 2, crc32c(after)) + after


def gzip_of(pieces: Iterator[bytes]) -> bytes:
    """One gzip member."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return b"".join(map(packer.compress, pieces)) + packer.flush()


def zstd_of(pieces: Iterator[bytes]) -> bytes:
    """One frame without a content size."""
    import zstandard

    packer = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join(map(packer.compress, pieces)) + packer.flush()


def lz4_of(pieces: Iterator[bytes]) -> bytes:
    """One frame of independent blocks of 64 KiB."""
    import lz4.block

    blocks = []
    for piece in pieces:
        for at in range(0, len(piece), 64 << 10):
            block = lz4.block.compress(piece[at : at + (64 << 10)], store_size=False)
            blocks.append(struct.pack("<I", len(block)) + block)
    return FRAME_MAGIC + LZ4_DESCRIPTOR + LZ4_CHECKSUM + b"".join(blocks) + bytes(4)


def snappy_of(pieces: Iterator[bytes]) -> bytes:
    """Blocks of a megabyte in the framing of the Java client."""
    import cramjam

    blocks = [bytes(cramjam.snappy.compress_raw(piece)) for piece in pieces]
    return XERIAL + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)


CODECS: dict[str, tuple[int, Callable[[Iterator[bytes]], bytes]]] = {
    "gzip": (1, gzip_of),
    "snappy": (2, snappy_of),
    "lz4": (3, lz4_of),
    "zstd": (4, zstd_of),
}


def _zeros(size: int) -> Iterator[bytes]:
    return (WIDE for _ in range(size // len(WIDE)))


def _record_of(size: int) -> Iterator[bytes]:
    """One record whose value takes the size."""
    length = size - 16
    yield _varint(length + 6 + len(_varint(length))) + bytes(3) + b"\1" + _varint(length)
    yield from _zeros(size)


def _empty_records(count: int) -> Iterator[bytes]:
    """Records without key and value, by offset delta: those whose delta takes equally many bytes together."""
    first = 0
    for width in range(1, 6):
        deltas = np.arange(first, min(count, 1 << (7 * width - 1)), dtype=np.int64) << 1
        rows = np.zeros((len(deltas), width + 6), np.uint8)
        rows[:, 0] = (width + 5) << 1
        for place in range(width):
            more = 0x80 if place < width - 1 else 0
            rows[:, 3 + place] = deltas >> (7 * place) & 0x7F | more
        rows[:, -3:-1] = 1
        yield rows.tobytes()
        first += len(deltas)


def _varint(value: int) -> bytes:
    value = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def partition(folder: Path, data: bytes = b"", name: str = "data/orders-0") -> Path:
    """A partition folder with one segment."""
    (folder / name).mkdir(parents=True)
    (folder / name / LOG).write_bytes(data)
    return folder


def replica(folder: Path, broker_id: int, data: bytes) -> Path:
    """The folder of a broker's copy, with one segment."""
    log_dir = folder / f"broker-{broker_id}"
    partition(log_dir, data, "orders-0")
    (log_dir / "meta.properties").write_text(f"version=0\nbroker.id={broker_id}\n")
    return log_dir / "orders-0"


def _znode(path: str, data: bytes = b"") -> bytes:
    return json.dumps({"path": path, "data": base64.b64encode(data).decode()}).encode() + b"\n"


def _cluster(*more: bytes) -> bytes:
    return b"".join((_znode("/cluster/id", b'{"version":"1","id":"x"}'), _znode("/brokers/ids"), *more))


# --- cases --------------------------------------------------------------------------------------------

Command = Sequence[object]
CASES: dict[str, Callable[[Path], Iterator[Command]]] = {}


def case(make: Callable[[Path], Iterator[Command]]) -> Callable[[Path], Iterator[Command]]:
    """Enter a case under its name."""
    CASES[make.__name__.strip("_").replace("_", "-")] = make
    return make


def _bomb(name: str) -> None:
    codec, compress = CODECS[name]

    def bomb(folder: Path) -> Iterator[Command]:
        partition(folder, batch(compress(_record_of(SIZE)), codec=codec))
        log = folder / "data" / "orders-0" / LOG
        yield "segment", "verify", folder
        yield "segment", "dump", log, "--records"

    CASES[f"{name}-bomb"] = bomb


for _name in CODECS:
    _bomb(_name)


@case
def large_batches(folder: Path) -> Iterator[Command]:
    """Batches whose bytes no codec makes fewer: one record that does not end, and one of almost the largest size."""
    noise = random.Random(1).randbytes(1 << 20)
    endless = b"".join([next(_record_of(SIZE)), *repeat(noise, SIZE >> 20)])
    partition(folder, batch(endless))
    log = folder / "data" / "orders-0" / LOG
    yield "segment", "verify", folder
    yield "segment", "dump", log, "--records"
    log.write_bytes(batch(write_record(Record(0, 0, None, noise * 60), 0, 0)))
    yield "segment", "verify", folder
    shutil.rmtree(folder / "data")
    for broker, end in ((1, b"x"), (2, b"y")):
        replica(folder, broker, batch(endless + end))
    yield "replica", "compare", folder, "--compacted", "orders"


@case
def many_claimed(folder: Path) -> Iterator[Command]:
    partition(
        folder, batch(bytes(100), count=2**31 - 1) + batch(bytes(10), base=2**31, count=2**31 - 1, codec=1)
    )
    yield "segment", "verify", folder
    yield "segment", "dump", folder / "data" / "orders-0" / LOG, "--records"
    yield "replica", "loss", folder


@case
def highest_offsets(folder: Path) -> Iterator[Command]:
    record = b"\x0c\0\0\0\1\1\0"
    for broker in (1, 2):
        name = f"broker-{broker}/data/orders-0"
        partition(folder, batch(record, base=0) + batch(record * broker, base=2**63 - 1, count=broker), name)
    yield "segment", "verify", folder
    yield "replica", "compare", folder
    yield "replica", "loss", folder


@case
def long_line(folder: Path) -> Iterator[Command]:
    with (folder / "server.log").open("wb") as file:
        file.write(b"[2024-01-01 00:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n")
        file.write(b"[2024-01-01 00:00:01,000] INFO ")
        for _ in range(LINE // 1_000_000):
            file.write(b"x" * 1_000_000)
        file.write(b" (kafka.server.KafkaServer)\n")
    yield "state-log", "merge", folder
    yield "state-log", "timeline", folder


@case
def deep_json(folder: Path) -> Iterator[Command]:
    deep = b"[" * 1_000_000 + b"]" * 1_000_000
    export = folder / "znodes.jsonl"
    export.write_bytes(
        _cluster(_znode("/brokers/topics/orders", deep), _znode("/config/topics/orders", deep))
    )
    (folder / "plan.json").write_bytes(b'{"version":1,"partitions":' + deep + b"}")
    yield "topic", "list", "--snapshot", export
    yield "znode", "show", "/brokers/topics/orders", "--snapshot", export
    yield "reassign", "verify", folder / "plan.json", "--snapshot", export


@case
def deep_znodes(folder: Path) -> Iterator[Command]:
    export = folder / "znodes.jsonl"
    export.write_bytes(_cluster(_znode("/a" * 50_000)))
    yield "znode", "tree", "--snapshot", export
    yield "topic", "list", "--snapshot", export


@case
def sparse(folder: Path) -> Iterator[Command]:
    partition(folder, batch(b"\x0c\0\0\0\1\1\0"))
    inside = folder / "data" / "orders-0"
    names = [inside / f"{0:020d}{suffix}" for suffix in (".index", ".timeindex", ".txnindex")]
    names += [
        inside / f"{1:020d}.snapshot",
        inside / "leader-epoch-checkpoint",
        inside / "partition.metadata",
    ]
    names += [folder / "data" / "replication-offset-checkpoint", folder / "data" / "meta.properties"]
    for path in (*names, folder / "znodes.jsonl"):
        with path.open("wb") as file:
            file.write(b"0\n")
            file.truncate(8 * GIB)
    yield "segment", "verify", folder
    yield "replica", "loss", folder
    yield "topic", "list", "--snapshot", folder / "znodes.jsonl"
    yield "segment", "dump", names[0]


@case
def dense_indexes(folder: Path) -> Iterator[Command]:
    """Indexes and a snapshot as large as are dumped, full of entries, and a checkpoint."""
    partition(folder, batch(b"\x0c\0\0\0\1\1\0"))
    inside = folder / "data" / "orders-0"
    forms = {".index": ">ii", ".timeindex": ">qi", ".txnindex": ">hqqqq"}
    for suffix, form in forms.items():
        values = [(n,) * (len(form) - 1) for n in range(1, 1001)]
        rows = b"".join(
            struct.pack(form, *(0 if code == "h" else v for v, code in zip(of, form[1:], strict=True)))
            for of in values
        )
        (inside / f"{0:020d}{suffix}").write_bytes(rows * (DENSE // len(rows)))
    count = (DENSE - 10) // 46
    producers = struct.pack(">i", count) + struct.pack(">qhiqiqiq", 1, 0, 0, 0, 0, 0, -1, -1) * count
    (inside / f"{1:020d}.snapshot").write_bytes(struct.pack(">hI", 1, crc32c(producers)) + producers)
    for suffix in forms:
        yield "segment", "dump", "--limit", "3", inside / f"{0:020d}{suffix}"
    yield "segment", "dump", "--limit", "3", inside / f"{1:020d}.snapshot"
    yield "segment", "dump", "--from-offset", "900", inside / LOG
    yield "segment", "dump", "--from-time", "900", inside / LOG


@case
def export_bomb(folder: Path) -> Iterator[Command]:
    export = folder / "znodes.jsonl.gz"
    with gzip.open(export, "wb") as file:
        for piece in _zeros(SIZE):
            file.write(piece)
    yield "topic", "list", "--snapshot", export
    yield "replica", "loss", folder


@case
def empty_records(folder: Path) -> Iterator[Command]:
    """In one batch each of two brokers, in other bytes, so that contents are compared."""
    body = b"".join(_empty_records(RECORDS))
    for broker, name in ((1, "gzip"), (2, "zstd")):
        codec, compress = CODECS[name]
        partition(
            folder,
            batch(compress(iter([body])), count=RECORDS, codec=codec),
            f"broker-{broker}/data/orders-0",
        )
    yield "replica", "compare", folder
    yield "segment", "verify", folder
    yield "audit", "run", folder / "broker-1", folder / "broker-2", "--out", folder / "out"


@case
def million_files(folder: Path) -> Iterator[Command]:
    partition(folder, batch(b"\x0c\0\0\0\1\1\0"))
    for number in range(FILES):
        os.close(os.open(folder / "data" / "orders-0" / f"file-{number}", os.O_CREAT | os.O_WRONLY))
    yield "segment", "verify", folder
    yield "audit", "run", folder / "data", "--out", folder / "out"


@case
def many_segments(folder: Path) -> Iterator[Command]:
    """Empty ones, and no index."""
    partition(folder)
    for number in range(1, SEGMENTS):
        os.close(os.open(folder / "data" / "orders-0" / f"{number:020d}.log", os.O_CREAT | os.O_WRONLY))
    yield "segment", "verify", folder
    yield "replica", "loss", folder


@case
def many_epochs(folder: Path) -> Iterator[Command]:
    """Two copies with one record, and a checkpoint of a million leader epochs."""
    entries = "".join(f"{epoch} {epoch}\n" for epoch in range(EPOCHS))
    for broker_id in (1, 2):
        copy = replica(folder, broker_id, batch(b"\x0c\0\0\0\1\1\0"))
        (copy / "leader-epoch-checkpoint").write_text(f"0\n{EPOCHS}\n{entries}")
    yield "segment", "verify", folder
    yield "replica", "compare", folder
    yield "replica", "loss", folder
    yield "epoch", "compare", folder


@case
def many_partings(folder: Path) -> Iterator[Command]:
    """Two copies that hold each other offset in turn."""
    for broker_id in (1, 2):
        offsets = range(broker_id - 1, 2 * PARTINGS, 2)
        replica(folder, broker_id, b"".join(batch(b"\x0c\0\0\0\1\1\0", base=base) for base in offsets))
    yield "replica", "compare", folder
    yield "replica", "loss", folder


@case
def many_findings(folder: Path) -> Iterator[Command]:
    """Batches of one offset, none above the one before it."""
    one = batch(b"\x0c\0\0\0\1\1\0", base=0)
    partition(folder)
    with (folder / "data" / "orders-0" / LOG).open("wb") as file:
        for _ in range(FINDINGS // 100_000):
            file.write(one * 100_000)
    yield "segment", "verify", folder, "--jobs", "1"
    yield "audit", "run", folder / "data", "--out", folder / "out", "--jobs", "1"


@case
def many_batches(folder: Path) -> Iterator[Command]:
    """Audits of two brokers whose tables say that each has so many batches of one partition."""
    partition(folder, batch(b"\x0c\0\0\0\1\1\0"))
    audits = [folder / f"audit-{broker_id}" for broker_id in (1, 2)]
    for broker_id, out in enumerate(audits):
        yield "audit", "run", folder / "data", "--out", out
        (part,) = (out / "batches").glob("*.parquet")
        columns = pq.read_table(part)
        with pq.ParquetWriter(part, columns.schema, compression="zstd") as writer:
            for start in range(0, BATCHES, 500_000):
                offsets = np.arange(start, min(BATCHES, start + 500_000))
                piece = columns.take(np.zeros(len(offsets), np.int64))
                for name, values in (
                    ("broker_id", np.full(len(offsets), broker_id)),
                    ("base_offset", offsets),
                    ("last_offset", offsets),
                ):
                    at = columns.schema.get_field_index(name)
                    piece = piece.set_column(at, columns.schema.field(at), pa.chunked_array([values]))
                writer.write_table(piece)
    yield "audit", "run", "--merge", *audits, "--out", folder / "joined"


@case
def nul_logs(folder: Path) -> Iterator[Command]:
    """Logs of four brokers with more NUL bytes after each line than a block takes."""
    for broker_id in range(1, 5):
        for name in ("server.log", "controller.log", "state-change.log"):
            path = folder / f"broker-{broker_id}" / "logs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                line = b"[2026-11-21 13:00:00,00%d] INFO [Broker id=%d] Deleting 1 partition(s). (state.change.logger)\n"
                file.write(line % (0, broker_id) * 20)
                file.seek(30 << 20)
                file.write(b"\n" + line % (1, broker_id))
                file.truncate(80 << 20)
    yield "state-log", "merge", folder
    yield "replica", "loss", folder


@case
def huge_entry(folder: Path) -> Iterator[Command]:
    """An entry of the journal as large as one may be, all of it a title."""
    yield from _large_entry(folder, b'{"format":1,"id":"entry","title":"', b"x" * 1_000_000, b'"}')


@case
def dense_entry(folder: Path) -> Iterator[Command]:
    """The same of empty lists, of which three bytes become 64 in memory."""
    yield from _large_entry(folder, b'{"format":1,"id":"entry","details":[', b"[]," * 333_333, b"0]}")


def _large_entry(folder: Path, head: bytes, part: bytes, tail: bytes) -> Iterator[Command]:
    journal = folder / "journal"
    journal.mkdir()
    with (journal / "entry.json").open("wb") as file:
        file.write(head)
        for _ in range(min(LINE, LARGEST_ENTRY) // 1_000_000):
            file.write(part)
        file.write(tail)
    (journal / "chain.jsonl").write_text('{"id":"entry","sha256":"","previous":"","hash":""}\n')
    for verb in (("list",), ("show", "entry"), ("verify",), ("undo", "entry", "--yes")):
        yield "journal", *verb


# --- measuring ----------------------------------------------------------------------------------------


class Used(NamedTuple):
    """What one run took."""

    peak: int  # bytes, of the process itself
    seconds: float
    status: int | None  # None where it was ended


def run(command: Command, folder: Path) -> Used:
    """Run kctl, its output thrown away, and watch its memory; one that takes too much of anything is ended."""
    environment = {
        **os.environ, "KCTL_CONFIG": os.devnull + "/none", "TMPDIR": str(folder), "KCTL_JOURNAL": str(folder / "journal"),
    }  # fmt: skip
    began, peak = time.monotonic(), 0
    process = subprocess.Popen(
        [*KCTL, *map(str, command), "--output", "jsonl"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (STOPPED_AT, STOPPED_AT)),
    )
    while process.poll() is None:
        with contextlib.suppress(OSError, StopIteration, ValueError):
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            peak = max(peak, int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) << 10)
        if time.monotonic() - began > MOST_SECONDS:
            os.killpg(process.pid, signal.SIGKILL)  # its workers too
            process.wait()
            return Used(peak, time.monotonic() - began, None)
        time.sleep(0.02)
    return Used(peak, time.monotonic() - began, process.returncode)


def measured(name: str, work: Path) -> Iterator[Line]:
    """The figures of one case; its evidence is taken away behind it."""
    folder = Path(tempfile.mkdtemp(prefix=f"hostile-{name}-", dir=work))
    try:
        for command in CASES[name](folder):
            used = run(command, folder)
            ended = "ended by this benchmark" if used.status is None else f"exit {used.status}"
            words = " ".join(str(part) for part in command if not str(part).startswith(str(folder)))
            figure = f"{used.peak / (1 << 20):,.0f} MiB, {used.seconds:,.1f} s, {ended}"
            is_right = used.peak <= MOST_MEMORY and used.status in (0, 3, 4, 5)
            yield Line(f"{name}: {words}", figure, f"{MOST_MEMORY >> 20} MiB", is_right)
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Every case, into a section of RESULTS.md; or the cases asked for, printed only."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", choices=[[], *CASES])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    lines = []
    for name in given.cases or CASES:
        for line in measured(name, given.folder):
            lines.append(line)
            print(shown(line), flush=True)
    if not given.cases:
        today = datetime.datetime.now(datetime.UTC).date()
        head = f"Measured {today} by `make bench-hostile` on {machine()}."
        how = "Peak memory of the process and wall seconds of one run over evidence made to exhaust them."
        write_section("hostile", f"{head} {how}\n\n{table(lines)}")


if __name__ == "__main__":
    main()
