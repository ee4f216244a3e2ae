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
from kctl.model import Row
from kctl.rows.dump import BATCH, RECORD
from kctl.scan.damage import finding_of
from kctl.scan.source import Source


class RowLimit(Struct):
    """How many more rows may be returned; None: all."""

    rows: int | None

    def take(self) -> bool:
        """Count a row; whether it may be returned."""
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


def log_rows(
    source: Source, path: str, file: str, selection: DumpSelection, row_limit: RowLimit
) -> Iterator[Row]:
    """The selected rows of a log, up to the limit."""
    if row_limit.is_empty:
        return
    log = LogBytes(source)
    for item in walk(log, position=first_position(path, log, selection)):
        yield from item_rows(item, source, file, selection, row_limit)
        if row_limit.is_empty or (isinstance(item, LogEntry) and selection.is_past(item)):
            return
    if log.end < source.size:
        yield segments.FILE_CHANGED.at(Place(file=file), before=source.size, after=log.end).row()


def item_rows(
    item: LogEntry | Damage, source: Source, file: str, selection: DumpSelection, row_limit: RowLimit
) -> Iterator[Row]:
    """The finding about damage, or the selected rows of an entry."""
    if isinstance(item, Damage):
        is_last = item.position + item.size_in_bytes >= source.size
        yield finding_of(item, source, Place(file=file), is_last=is_last).row()
    elif selection.entry_may_hold(item):
        yield from entry_rows(item, file, selection, row_limit)


def entry_rows(entry: LogEntry, file: str, selection: DumpSelection, row_limit: RowLimit) -> Iterator[Row]:
    """The batch if the selection has any of it, then its selected records."""
    findings: list[Finding] = []
    if not entry.crc_valid:
        findings.append(_crc_finding(entry, file))
    if selection.records or selection.needs_records:
        records = selection.chosen(_readable(entry, file, selection, findings))
        first = next(records, None)
        if first is None and selection.is_filtered and not findings:
            return
    else:
        first, records = None, iter(())
    if selection.records or row_limit.take():
        yield batch_row(entry, file)
    is_control = bool(entry.batch and entry.batch.is_control)
    while selection.records and first is not None and row_limit.take():
        yield record_row(first, entry, file, is_control, selection)
        first = next(records, None)
    for finding in findings:
        yield finding.row()


def _place(entry: LogEntry, file: str) -> Place:
    return Place(
        file=file,
        position=entry.position,
        size_in_bytes=entry.size_in_bytes,
        base_offset=entry.base_offset,
        last_offset=entry.last_offset,
    )


def _crc_finding(entry: LogEntry, file: str) -> Finding:
    starts = CRC_AT[entry.magic]
    computed = entry.source.crc(entry.magic, entry.position + starts, entry.next_position)
    return segments.BATCH_CRC_MISMATCH.at(_place(entry, file), stored=entry.header.crc, computed=computed)


def _readable(
    entry: LogEntry, file: str, selection: DumpSelection, findings: list[Finding]
) -> Iterator[Record]:
    """The records that can be read; a finding about the others goes to `findings`, unless the CRC is wrong."""
    number = 0
    try:
        for record in iterate_records(entry, limit=selection.max_decompressed_bytes):
            number += 1
            yield record
    except FormatError as error:
        if not entry.crc_valid:
            return
        place = _place(entry, file)
        if isinstance(error, TooLarge):
            finding = segments.NOT_EXAMINED.at(place, limit=error.limit, examined=number)
        elif isinstance(error, CompressionError):
            finding = segments.NOT_DECOMPRESSED.at(place, codec=codec(entry.header.codec), what=error.what)
        else:
            count = entry.batch.records_count if entry.batch else "its set"
            finding = segments.RECORD_MALFORMED.at(place, number=number + 1, count=count, what=error.what)
        findings.append(finding)


def batch_row(entry: LogEntry, file: str) -> Row:
    """The row of an entry of any magic."""
    if isinstance(entry.header, BatchHeader):
        return BATCH(file=file, crc_valid=entry.crc_valid, position=entry.position, **_of_batch(entry.header))
    header = entry.header
    head = entry.source.peek(entry.position, 26)
    plain = not header.codec
    return BATCH(
        file=file,
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


def record_row(record: Record, entry: LogEntry, file: str, is_control: bool, selection: DumpSelection) -> Row:
    """The row of a record; the value of a metadata record that holds a password is withheld."""
    value = record.value
    if value is not None and not selection.show_secrets and holds_secret(selection.topic, value):
        value = withheld(value).encode()
    return RECORD(
        file=file,
        position=entry.position,
        offset=record.offset,
        timestamp=record.timestamp,
        headers=header_rows(record.headers),
        sequence=record.sequence if entry.batch else None,
        decoded=decoded(selection.topic, is_control, record, selection.show_secrets),
        **named("key", record.key, selection.keys),
        **named("value", value, selection.values),
    )
