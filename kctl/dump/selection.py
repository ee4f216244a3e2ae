"""The part of a file to dump: offsets, times, a key, and a limit of rows."""

from collections.abc import Iterable, Iterator

from formats.log.record_batch import Record
from formats.log.records import DEFAULT_LIMIT, LogEntry
from formats.values import Struct
from kctl.dump.file_kinds import FileKind


class DumpSelection(Struct, frozen=True, kw_only=True):
    """Which rows to return, and in which form."""

    records: bool = False
    from_offset: int | None = None
    to_offset: int | None = None  # exclusive
    from_time: int | None = None  # ms
    to_time: int | None = None  # ms, exclusive
    key: bytes | None = None
    limit: int | None = None
    keys: str = "utf8"
    values: str = "utf8"
    kind: FileKind | None = None
    topic: str | None = None
    max_decompressed_bytes: int = DEFAULT_LIMIT
    show_secrets: bool = False

    @property
    def needs_records(self) -> bool:
        """Whether the records tell which batches are selected."""
        return self.key is not None or self.from_time is not None or self.to_time is not None

    @property
    def is_filtered(self) -> bool:
        """Whether any row may be left out."""
        return self.needs_records or self.from_offset is not None or self.to_offset is not None

    def offset_is_in(self, offset: int) -> bool:
        """Whether an offset lies in the range."""
        return (self.from_offset is None or offset >= self.from_offset) and (
            self.to_offset is None or offset < self.to_offset
        )

    def time_is_in(self, timestamp: int) -> bool:
        """Whether a time lies in the range."""
        return (self.from_time is None or timestamp >= self.from_time) and (
            self.to_time is None or timestamp < self.to_time
        )

    def entry_may_hold(self, entry: LogEntry) -> bool:
        """Whether an entry may hold a selected record, by its header."""
        if self.from_offset is not None and entry.last_offset < self.from_offset:
            return False
        # Of a compressed message of magic 0 or 1 only the last offset is known.
        starts = entry.base_offset if entry.batch or not entry.header.codec else entry.last_offset - (1 << 31)
        if self.to_offset is not None and starts >= self.to_offset:
            return False
        batch = entry.batch
        return not (self.from_time is not None and batch and batch.max_timestamp < self.from_time)

    def is_past(self, entry: LogEntry) -> bool:
        """Whether no selected record can follow a sound entry."""
        return self.to_offset is not None and entry.crc_valid and entry.last_offset >= self.to_offset - 1

    def chosen(self, records: Iterable[Record]) -> Iterator[Record]:
        """The selected records."""
        for record in records:
            if (
                self.offset_is_in(record.offset)
                and self.time_is_in(record.timestamp)
                and (self.key is None or record.key == self.key)
            ):
                yield record
