"""The options of a scan, and its results: chunks and totals."""

import enum

from formats.compression import DEFAULT_LIMIT
from formats.log.columns.headers import Headers
from formats.log.records import Damage
from formats.values import Struct, field
from kctl.findings import Finding, Place
from kctl.scan.records import Records


class Level(enum.IntEnum):
    """How much of each batch is looked at; each level includes those before it."""

    HEADER = 0  # framing and headers
    CRC = 1  # and the CRC of every batch
    RECORDS = 2  # and every record


class ScanOptions(Struct, frozen=True, kw_only=True):
    """What to scan and how."""

    level: Level = Level.RECORDS
    keep_records: bool = False
    """Whether chunks carry record columns; records are checked at level RECORDS in any case."""
    start: int = 0
    end: int | None = None
    """Positions between which to scan; both batch boundaries, as `kctl.scan.splits` gives them."""
    last_offset: int = -1
    """Of the last good batch before `start`."""
    base_offset: int | None = None
    """The offset in the file's name; None if it has none."""
    is_compacted: bool | None = None
    """Whether the topic is compacted; None if that is unknown."""
    place: Place = field(default_factory=Place)
    """What findings say about where the file is: broker, topic, partition, file, moment."""
    max_decompressed_bytes: int = DEFAULT_LIMIT
    max_findings: int = 10_000


class Chunk(Struct, frozen=True):
    """A run of a segment's bytes [position, end): every one of them is in a batch or in damage."""

    position: int
    end: int
    headers: Headers
    damage: tuple[Damage, ...]
    findings: tuple[Finding, ...]
    records: Records | None = None
    """Of the batches in `headers`, where `keep_records` was asked for."""


class ScanTotals(Struct):
    """Counts over what was scanned so far."""

    batches: int = 0
    records: int = 0
    good_bytes: int = 0  # in batches whose CRC is right, a torn tail and trailing zeros included
    damaged_bytes: int = 0
    base_offset: int | None = None  # of the first batch
    next_offset: int | None = None  # behind the highest last offset of a sound batch
    max_timestamp: int = -1
    findings: int = 0
