"""A log as Kafka's dump tool walks it: what it prints, and where it would stop.

Kafka's reader stops silently before the last 17 bytes and at an entry that goes past the end; it throws at a
size below 14. Where Kafka's tool ends with a stack trace, here the file's text ends, or goes on behind what
cannot be read, and a `Stop` says what Kafka throws.

Source: clients/src/main/java/org/apache/kafka/common/record/FileLogInputStream.java,
core/src/main/scala/kafka/tools/DumpLogSegments.scala @ 3.9.0-rc3
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from formats.binary.layout import read
from formats.errors import FormatError
from formats.kafka_text import dump_log_segments as kafka_text
from formats.kafka_text.dump_log_segments import Decoder
from formats.log import message_set, record_batch
from formats.log.framing import FRAMING_SIZE, Framing
from formats.log.log_bytes import LogBytes
from formats.log.message_set import MessageHeader
from formats.log.record_batch import LOG_OVERHEAD
from formats.log.records import Damage, LogEntry, iterate_records, walk
from kctl.scan.options import Chunk, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import Source

# Text is handed on in pieces of about this many characters.
PIECE = 1 << 18


class Stop(NamedTuple):
    """What makes Kafka's tool end with an exception, and at which byte."""

    position: int
    exception: str
    ends_walk: bool = True


def kafka_entries(log: LogBytes, start: int = 0, *, check_crc: bool = True) -> Iterator[LogEntry | Stop]:
    """Entries as Kafka's file reader finds them; a `Stop` as the last item where it throws."""
    position = start
    while position < log.end - FRAMING_SIZE:
        head = log.peek(position, record_batch.HEADER_SIZE)
        if len(head) <= FRAMING_SIZE:
            return
        framing = read(Framing, head)
        if framing.length < message_set.MIN_SIZES[0]:
            yield Stop(
                position,
                f"CorruptRecordException: Found record size {framing.length} smaller than minimum record overhead (14)",
            )
            return
        size = LOG_OVERHEAD + framing.length
        if position + size > log.end:
            return
        if framing.magic < 0:
            yield Stop(
                position, f"IllegalArgumentException: Invalid magic used in LegacyRecord: {framing.magic}"
            )
            return
        if framing.magic >= 2 and size < record_batch.HEADER_SIZE:
            yield Stop(position, "IndexOutOfBoundsException")
            return
        yield _entry(log, position, size, framing.magic, check_crc)
        position += size


def _entry(log: LogBytes, position: int, size: int, magic: int, check_crc: bool) -> LogEntry:
    head = log.peek(position, record_batch.HEADER_SIZE)
    if magic >= 2:
        batch = record_batch.read_header(head)
        at = position + record_batch.CRC_STARTS_AT
        sound = not check_crc or log.crc(2, at, position + size) == batch.crc
        return LogEntry(position, size, magic, batch.base_offset, batch.last_offset, batch, sound, log)
    message = read(MessageHeader, head)
    at = position + message_set.CRC_STARTS_AT
    sound = not check_crc or log.crc(magic, at, position + size) == message.crc
    return LogEntry(position, size, magic, message.offset, message.offset, message, sound, log)


def with_line_feeds(text: bytes | memoryview) -> bytes | memoryview:
    """Whole lines with every line end a line feed.

    Kafka's tool writes a payload's carriage returns as they are; its output is compared with ours as text, in
    which they are line ends, and a bare one would hide the start of a line on a terminal.
    """
    if b"\r" not in (data := bytes(text)):
        return text
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class LogText:
    """The text of one log, and what was noticed on the way."""

    def __init__(self, log: LogBytes, *, records: bool, decode: Decoder, limit: int) -> None:
        self.log = log
        self.records = records
        self.decode = decode
        self.limit = limit
        self.stops: list[Stop] = []
        self.gaps: list[tuple[int, int]] = []  # newest first, as Kafka prints them
        self.unsound = 0
        self.good_bytes = 0
        self.last_offset = -1  # of the last batch
        self._last_record = -1

    def pieces(self, source: Source | None = None) -> Iterator[bytes | memoryview]:
        """The text of batches, and of records if `records` is set; a source makes it quicker."""
        position = 0
        if source is not None and self.records and self.decode is kafka_text.decode_text:
            for chunk in scan_segment(
                source, ScanOptions(keep_records=True, max_decompressed_bytes=self.limit)
            ):
                if chunk.damage or chunk.position == chunk.end:
                    break  # from here on Kafka's own walk decides
                yield from self._of_chunk(chunk)
                position = chunk.end
        yield from self._entry_texts(position, None)
        self.gaps.reverse()

    def _of_chunk(self, chunk: Chunk) -> Iterator[bytes | memoryview]:
        """A run of batches from columns, where all in it is sound."""
        # Arrow is slow to load; who dumps an index needs none of it.
        from kctl.dump.kafka_text.columns import controls_are_sound, kafka_lines
        from kctl.dump.plain_runs import is_plain

        records = chunk.records
        if records is None or not is_plain(chunk, records) or not controls_are_sound(chunk.headers, records):
            yield from self._entry_texts(chunk.position, chunk.end)
            return
        for lines in kafka_lines(chunk.headers, records):
            yield with_line_feeds(lines)
        offsets = np.concatenate(([self._last_record], records.offset))
        if self._last_record == -1:
            offsets = offsets[1:]
        jumps = np.flatnonzero(np.diff(offsets) != 1)
        self.gaps += zip(offsets[jumps].tolist(), offsets[jumps + 1].tolist(), strict=True)
        self._last_record = int(offsets[-1])
        self.good_bytes, self.last_offset = chunk.end, int(chunk.headers.last_offset[-1])

    def _entry_texts(self, position: int, end: int | None) -> Iterator[bytes | memoryview]:
        lines: list[str] = []
        characters = 0
        for item in kafka_entries(self.log, position):
            if isinstance(item, Stop):
                self.stops.append(item)
                break
            if end is not None and item.position >= end:
                break
            for line in self._lines(item):
                lines.append(line)
                characters += len(line)
                if characters > PIECE:
                    yield with_line_feeds("".join(lines).encode("utf-8", "surrogateescape"))
                    lines, characters = [], 0
            self.good_bytes, self.last_offset = item.next_position, item.last_offset
        yield with_line_feeds("".join(lines).encode("utf-8", "surrogateescape"))

    def item_behind(self) -> Damage | LogEntry | None:
        """The damage or entry behind the last entry that Kafka reads; None at the end."""
        return next(walk(self.log, position=self.good_bytes, last_offset=self.last_offset), None)

    def _lines(self, entry: LogEntry) -> Iterator[str]:
        self.unsound += not entry.crc_valid
        if kafka_text.codec_name(entry.header.codec) is None:
            text = f"IllegalArgumentException: Unknown compression type id: {entry.header.codec}"
            self.stops.append(Stop(entry.position, text, ends_walk=False))
        batch, message = entry.batch, entry.message
        if batch:
            yield kafka_text.batch_line(batch, entry.position, entry.crc_valid)
        elif message:
            timestamp = message_set.timestamp_of(message, self.log.peek(entry.position, 26))
            yield kafka_text.message_line(message, timestamp, entry.position, entry.crc_valid)
        if self.records:
            yield from self._record_lines(entry)

    def _record_lines(self, entry: LogEntry) -> Iterator[str]:
        time = kafka_text.timestamp_type(entry.header)
        header, decode = entry.header, self.decode
        try:
            for record in iterate_records(entry, limit=self.limit):
                if self._last_record not in (-1, record.offset - 1):
                    self.gaps.append((self._last_record, record.offset))
                self._last_record = record.offset
                yield kafka_text.record_line(header, time, record, decode)
        except FormatError as error:
            # Kafka's tool ends here with one of several exceptions; ours goes on with the next batch.
            self.stops.append(Stop(entry.position, str(error), ends_walk=False))
