"""Rows of a log: batches, their records, and a finding for each range that is neither."""

from collections.abc import Iterator

from formats.compression import CompressionError, TooLarge
from formats.errors import FormatError
from formats.kafka_text.dump_log_segments import codec_name, time_name
from formats.log import message_set
from formats.log.log_bytes import LogBytes
from formats.log.record_batch import BatchHeader, Record
from formats.log.records import CRC_AT, Damage, LogEntry, iterate_records, walk
from formats.secrets import withheld
from formats.values import Struct
from kctl.dump.decoded import decoded, holds_secret
from kctl.dump.seeking import first_position
from kctl.dump.selection import DumpSelection
from kctl.dump.values import header_rows, named
from kctl.findings import Finding, Place, segments
from kctl.rows.dump import BATCH, RECORD
from kctl.scan.damage import finding_of
from kctl.scan.source import Source

Row = dict[str, object]


class Left(Struct):
    """How many rows may still be given; None: all."""

    rows: int | None

    def take(self) -> bool:
        """Whether one more may be given; it is counted."""
        if self.rows is None:
            return True
        self.rows -= 1
        return self.rows >= 0

    def take_all(self, count: int) -> None:
        """Count rows that were printed."""
        if self.rows is not None:
            self.rows = max(0, self.rows - count)

    @property
    def is_empty(self) -> bool:
        return self.rows is not None and self.rows <= 0


def log_rows(source: Source, path: str, shown: str, wanted: DumpSelection, left: Left) -> Iterator[Row]:
    """The rows of a log, as many as are wanted and left."""
    if left.is_empty:
        return
    log = LogBytes(source)
    for item in walk(log, position=first_position(path, log, wanted)):
        yield from item_rows(item, source, shown, wanted, left)
        if left.is_empty or (isinstance(item, LogEntry) and wanted.is_past(item)):
            return
    if log.end < source.size:
        yield segments.FILE_CHANGED.at(Place(file=shown), before=source.size, after=log.end).row()


def item_rows(
    item: LogEntry | Damage, source: Source, shown: str, wanted: DumpSelection, left: Left
) -> Iterator[Row]:
    """The finding about damage, or the rows of an entry in which something may be wanted."""
    if isinstance(item, Damage):
        is_last = item.position + item.size_in_bytes >= source.size
        yield finding_of(item, source, Place(file=shown), is_last=is_last).row()
    elif wanted.entry_may_hold(item):
        yield from entry_rows(item, shown, wanted, left)


def entry_rows(entry: LogEntry, shown: str, wanted: DumpSelection, left: Left) -> Iterator[Row]:
    """The batch where something in it is wanted, then its records where they are asked for."""
    trouble: list[Finding] = []
    if not entry.crc_valid:
        trouble.append(_crc_finding(entry, shown))
    if wanted.records or wanted.needs_records:
        records = wanted.chosen(_readable(entry, shown, wanted, trouble))
        first = next(records, None)
        if first is None and wanted.is_filtered and not trouble:
            return
    else:
        first, records = None, iter(())
    if wanted.records or left.take():
        yield batch_row(entry, shown)
    is_control = bool(entry.batch and entry.batch.is_control)
    while wanted.records and first is not None and left.take():
        yield record_row(first, entry, shown, is_control, wanted)
        first = next(records, None)
    for found in trouble:
        yield found.row()


def _place(entry: LogEntry, shown: str) -> Place:
    return Place(
        file=shown,
        position=entry.position,
        size_in_bytes=entry.size_in_bytes,
        base_offset=entry.base_offset,
        last_offset=entry.last_offset,
    )


def _crc_finding(entry: LogEntry, shown: str) -> Finding:
    starts = CRC_AT[entry.magic]
    computed = entry.source.crc(entry.magic, entry.position + starts, entry.next_position)
    return segments.BATCH_CRC_MISMATCH.at(_place(entry, shown), stored=entry.header.crc, computed=computed)


def _readable(entry: LogEntry, shown: str, wanted: DumpSelection, trouble: list[Finding]) -> Iterator[Record]:
    """The records that can be read; why the others cannot goes to `trouble`, unless a wrong CRC says it."""
    number = 0
    try:
        for record in iterate_records(entry, limit=wanted.max_decompressed_bytes):
            number += 1
            yield record
    except FormatError as error:
        if not entry.crc_valid:
            return
        place = _place(entry, shown)
        if isinstance(error, TooLarge):
            found = segments.NOT_EXAMINED.at(place, limit=error.limit, examined=number)
        elif isinstance(error, CompressionError):
            found = segments.NOT_DECOMPRESSED.at(place, codec=codec(entry.header.codec), what=error.what)
        else:
            count = entry.batch.records_count if entry.batch else "its set"
            found = segments.RECORD_MALFORMED.at(place, number=number + 1, count=count, what=error.what)
        trouble.append(found)


def batch_row(entry: LogEntry, shown: str) -> Row:
    """The row of an entry of any magic."""
    if isinstance(entry.header, BatchHeader):
        return BATCH(
            file=shown, crc_valid=entry.crc_valid, position=entry.position, **_of_batch(entry.header)
        )
    header = entry.header
    head = entry.source.peek(entry.position, 26)
    plain = not header.codec
    return BATCH(
        file=shown,
        position=entry.position,
        size_in_bytes=entry.size_in_bytes,
        base_offset=header.offset if plain else None,
        last_offset=header.offset,
        magic=header.magic,
        crc=header.crc,
        crc_valid=entry.crc_valid,
        codec=codec(header.codec),
        attributes=header.attributes,
        timestamp_type=time_name(header.is_log_append_time) if header.magic else None,
        max_timestamp=message_set.timestamp_of(header, head) if header.magic else None,
        records_count=1 if plain else None,
        batch_length=header.message_size,
    )


def _of_batch(header: BatchHeader) -> Row:
    return {
        **header._asdict(),
        "size_in_bytes": header.size_in_bytes,
        "last_offset": header.last_offset,
        "codec": codec(header.codec),
        "timestamp_type": time_name(header.is_log_append_time),
        "delete_horizon_ms": header.delete_horizon_ms,
        "last_sequence": header.last_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
    }


def codec(number: int) -> str:
    """Kafka's name of a codec."""
    return codec_name(number) or f"unknown({number})"


def record_row(record: Record, entry: LogEntry, shown: str, is_control: bool, wanted: DumpSelection) -> Row:
    """The row of a record; of a metadata record that holds a password the value is withheld."""
    value = record.value
    if value is not None and not wanted.show_secrets and holds_secret(wanted.topic, value):
        value = withheld(value).encode()
    return RECORD(
        file=shown,
        position=entry.position,
        offset=record.offset,
        timestamp=record.timestamp,
        headers=header_rows(record.headers),
        sequence=record.sequence if entry.batch else None,
        decoded=decoded(wanted.topic, is_control, record, wanted.show_secrets),
        **named("key", record.key, wanted.keys),
        **named("value", value, wanted.values),
    )
