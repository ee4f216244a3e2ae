"""Files as Kafka 3.9's dump tool prints them, one after the other, and its summary for standard error."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from formats.errors import FormatError, Truncated
from formats.kafka_text import dump_log_segments as kafka_text
from formats.kafka_text.dump_log_segments import Decoder, decode_text, java_path
from formats.log.log_bytes import LogBytes
from formats.log.records import DEFAULT_LIMIT, Damage, DamageReason
from formats.log_dir.file_names import BOOTSTRAP_CHECKPOINT, parse_segment_file
from formats.log_dir.index_files import AbortedTransaction, entries_of
from formats.log_dir.producer_snapshot import SnapshotCrcMismatch, UnknownVersion, check_crc, read_entries
from formats.values import Struct, field
from kctl.dump.decoded import METADATA_TOPIC, without_secrets
from kctl.dump.file_kinds import BY_SUFFIX, FileKind, base_offset_of, sibling
from kctl.dump.files import topic_of
from kctl.dump.kafka_text.indexes import Verdicts, offset_index_lines, time_index_lines
from kctl.dump.kafka_text.log import LogText, Stop
from kctl.dump.opening import opened, whole
from kctl.errors import KctlError
from kctl.stores.mirror import given_name

HEALTHY_TAILS = (DamageReason.ZEROS, DamageReason.TORN_TAIL)
Piece: TypeAlias = str | bytes | memoryview
MOST_OF_AN_INDEX = 1 << 26


class Summary(Struct):
    """The lines for standard error, by file, in the order of the files."""

    mismatches: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    timestamps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    out_of_order: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    not_found: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    gaps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """The blocks in Kafka's order and words."""
        for file, pairs in self.mismatches.items():
            yield f"Mismatches in :{file}"
            yield from (f"  Index offset: {a}, log offset: {b}" for a, b in pairs)
        for file, pairs in self.timestamps.items():
            yield f"Found timestamp mismatch in :{file}"
            yield from (f"  Index timestamp: {a}, log timestamp: {b}" for a, b in pairs)
        for file, pairs in self.out_of_order.items():
            yield f"Found out of order timestamp in :{file}"
            yield from (f"  Index timestamp: {a}, Previously indexed timestamp: {b}" for a, b in pairs)
        for pairs in self.not_found.values():
            yield "The following indexed offsets are not found in the log."
            yield from (f"Indexed offset: {a}, found log offset: {b}" for a, b in pairs)
        for file, pairs in self.gaps.items():
            yield f"Non-consecutive offsets in {file}"
            yield from (f"  {a} is followed by {b}" for a, b in pairs)


class KafkaDump:
    """The dump of several files: text in pieces, lines for standard error, and whether something was wrong."""

    def __init__(
        self,
        *,
        records: bool = False,
        kind: FileKind | None = None,
        decode: Decoder = decode_text,
        limit: int = DEFAULT_LIMIT,
        show_secrets: bool = False,
        say: Callable[[str], None],
        report: Callable[[Exception], None],
    ) -> None:
        self.records = records
        self.kind = kind
        self.decode = decode
        self.limit = limit
        self.show_secrets = show_secrets
        self.say = say
        self.report = report
        self.summary = Summary()
        self.is_wrong = False

    def pieces(self, paths: Iterable[str]) -> Iterator[bytes | memoryview]:
        """The text of the files in the order given, in UTF-8; the summary is said at the end."""
        for piece in self._pieces(paths):
            yield piece.encode("utf-8", "surrogateescape") if isinstance(piece, str) else piece

    def _pieces(self, paths: Iterable[str]) -> Iterator[Piece]:
        for path in paths:
            shown_path = given_name(java_path(path))
            yield f"Dumping {shown_path}\n"
            name = Path(path).name
            kind = self.kind or BY_SUFFIX.get(name[name.rfind(".") :] if "." in name else "")
            if kind is None or kind not in PRINTERS:
                self.say(f"Ignoring unknown file {shown_path}")
                continue
            try:
                yield from PRINTERS[kind](self, path)
            except KctlError as error:
                self.report(error)
        for line in self.summary.lines():
            self.say(line)

    def stop(self, path: str, stop: Stop, *, is_wrong: bool = True) -> None:
        """Tell where Kafka's own tool would have ended."""
        self.is_wrong |= is_wrong
        self.say(f"kctl: {path}: Kafka's tool ends at byte {stop.position} with {stop.exception}")

    def log(self, path: str) -> Iterator[Piece]:
        """A log or a KRaft snapshot."""
        with opened(path) as source:
            log = LogBytes(source)
            decode = self.decode
            if decode is decode_text and topic_of(path) == METADATA_TOPIC and not self.show_secrets:
                decode = without_secrets(decode)
            text = LogText(log, records=self.records, decode=decode, limit=self.limit)
            yield self.banner(path, int.from_bytes(source.read_at(0, 8), "big", signed=True))
            size = log.end
            yield from text.pieces(source)
            bytes_left = size - text.good_bytes
            if bytes_left > 0:
                yield f"Found {bytes_left} invalid bytes at the end of {Path(path).name}\n"
            if log.end < size:
                self.report(
                    KctlError(
                        f"{path}: shrank from {size} to {log.end} bytes while it was read",
                        "the broker truncated or deleted it: dump a copy, or dump it again",
                    )
                )
            behind = text.item_behind() if bytes_left > 0 else None
        if text.gaps:
            self.summary.gaps[os.path.abspath(path)] = text.gaps
        self.is_wrong |= bool(text.unsound)
        tail_is_healthy = behind is None or (isinstance(behind, Damage) and behind.reason in HEALTHY_TAILS)
        for stop in text.stops:
            self.stop(path, stop, is_wrong=not (stop.ends_walk and tail_is_healthy))
        if not tail_is_healthy and not any(stop.ends_walk for stop in text.stops):
            self.is_wrong = True
            self.say(f"kctl: {path}: Kafka stops reading at byte {text.good_bytes}, where a length is wrong")

    def banner(self, path: str, first_offset: int) -> str:
        """The line before the first entry; the first offset stands in where the name has none."""
        name = Path(path).name
        if name == BOOTSTRAP_CHECKPOINT:
            return "KRaft bootstrap snapshot\n"
        segment_file = parse_segment_file(name)
        if segment_file and segment_file.suffix == ".checkpoint":
            return f"Snapshot end offset: {segment_file.base_offset}, epoch: {segment_file.epoch}\n"
        base = base_offset_of(path)
        return f"Log starting offset: {first_offset if base is None else base}\n"

    def index(self, path: str) -> Iterator[str]:
        """An offset index, compared with the log beside it."""
        with opened(path) as source:
            data = whole(source, MOST_OF_AN_INDEX)
        if len(data) < 8:
            yield f"{given_name(java_path(path))} is empty.\n"
            return
        base, verdicts = base_offset_of(path) or 0, Verdicts()
        yield from self._compared(path, verdicts, lambda log: offset_index_lines(data, base, log, verdicts))

    def timeindex(self, path: str) -> Iterator[str]:
        """A time index, compared with the log and the index beside it."""
        with opened(path) as source:
            data = whole(source, MOST_OF_AN_INDEX)
        verdicts, index = Verdicts(), b""
        base = base_offset_of(path) or 0
        index_path = sibling(path, ".index")
        if index_path:
            with opened(index_path) as source:
                index = whole(source, MOST_OF_AN_INDEX)
        else:
            self.alone(path, ".index")
        yield from self._compared(
            path, verdicts, lambda log: time_index_lines(data, base, index, log, verdicts, self.limit)
        )

    def _compared(
        self, path: str, verdicts: Verdicts, lines_of: Callable[[LogBytes | None], Iterator[str]]
    ) -> Iterator[str]:
        """The lines of an index, made with the log beside it or, where that is missing, None; then its verdicts."""
        log_path = sibling(path, ".log")
        if log_path:
            with opened(log_path) as source:
                yield from in_pieces(lines_of(LogBytes(source)))
        else:
            self.alone(path, ".log")
            yield from in_pieces(lines_of(None))
        self.take(path, verdicts)

    def alone(self, path: str, suffix: str) -> None:
        """Report a missing log or index beside a file. Kafka's tool ends with an exception there."""
        text = f"NoSuchFileException: no {suffix} beside it"
        self.stop(path, Stop(0, text), is_wrong=False)

    def take(self, path: str, verdicts: Verdicts) -> None:
        """Keep what Kafka's tool says of an index. It is no finding: it stumbles over healthy ones."""
        name = os.path.abspath(path)
        for pairs_by_file, pairs in (
            (self.summary.mismatches, verdicts.mismatches),
            (self.summary.timestamps, verdicts.timestamps),
            (self.summary.out_of_order, verdicts.out_of_order),
            (self.summary.not_found, verdicts.not_found),
        ):
            if pairs:
                pairs_by_file[name] = pairs
        for stop in verdicts.stops:
            self.stop(path, stop, is_wrong=False)

    def txnindex(self, path: str) -> Iterator[str]:
        """A transaction index."""
        with opened(path) as source:
            data = whole(source, MOST_OF_AN_INDEX)
        for number, entry in enumerate(entries_of(AbortedTransaction, data)):
            if entry.version >> 8 > 0:
                text = f"IllegalStateException: Unexpected aborted transaction version {entry.version >> 8}"
                self.stop(path, Stop(number * 34, text))
                return
            yield kafka_text.transaction_line(entry)

    def snapshot(self, path: str) -> Iterator[str]:
        """A producer snapshot; a corrupt one is said on standard error, as Kafka does."""
        with opened(path) as source:
            data = whole(source, MOST_OF_AN_INDEX)
        try:
            entries = read_entries(data)
            check_crc(data)
            yield from in_pieces(map(kafka_text.producer_line, entries))
        except FormatError as error:
            self.is_wrong = True
            self.say(corrupt_snapshot(error))


PRINTERS: dict[FileKind, Callable[[KafkaDump, str], Iterator[Piece]]] = {
    FileKind.LOG: KafkaDump.log,
    FileKind.INDEX: KafkaDump.index,
    FileKind.TIMEINDEX: KafkaDump.timeindex,
    FileKind.TXNINDEX: KafkaDump.txnindex,
    FileKind.SNAPSHOT: KafkaDump.snapshot,
}


def corrupt_snapshot(error: FormatError) -> str:
    """What Kafka says of a snapshot that it cannot read.

    Source: storage/src/main/java/org/apache/kafka/storage/internals/log/ProducerStateManager.java @ 3.9.0-rc3
    """
    if isinstance(error, UnknownVersion):
        return f"Snapshot contained an unknown file version ({error.what})"
    if isinstance(error, SnapshotCrcMismatch):
        return (
            "Snapshot is corrupt (CRC is no longer valid). "
            f"Stored crc: {error.stored}. Computed crc: {error.computed}"
        )
    problem = "cut off" if isinstance(error, Truncated) else "malformed"
    return f"Snapshot failed schema validation: {problem}, {error}"


def in_pieces(lines: Iterator[str]) -> Iterator[str]:
    """Lines joined to pieces that are worth a write."""
    piece: list[str] = []
    for line in lines:
        piece.append(line)
        if len(piece) == 2048:
            yield "".join(piece)
            piece = []
    yield "".join(piece)
