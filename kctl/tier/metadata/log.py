"""The records of `__remote_log_metadata` in evidence: each once, by metadata partition and offset.

A metadata partition with one replica is read once. Of several replicas the headers are compared first: the replica
with the newest leader epoch and the greatest end is read; what it lacks comes from the others, and batches that
differ are findings. Values come in chunks: a buffer, and the position of each value in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints
from formats.errors import FormatError
from formats.log.record_batch import CONTROL
from formats.log.records import LogEntry, iterate_records, walk
from formats.log_dir.file_names import FolderKind, parse_segment_file
from formats.messages.remote_log_metadata import RemoteLogMetadata, read_remote_log_metadata
from formats.values import Struct, field, replace
from kctl.errors import reason_of
from kctl.evidence.model import Arriving, FoundEvidence, Root
from kctl.files import read_padded
from kctl.findings import Finding, Place
from kctl.findings import remote as codes
from kctl.scan.options import Chunk, Level, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import opened_source
from kctl.scan.splits import hints_of

METADATA_TOPIC = "__remote_log_metadata"
MOST_HOLES = 1000
LEAST = 8  # bytes in a buffer, so that a row without a value has a valid position

Say = Callable[[Finding], None]


class ValueChunk(Struct):
    """Values of records of one metadata partition, in the order of their offsets.

    Partition and offset are None and -1 for values alone, as from standard input.
    """

    metadata_partition: int | None
    data: NDArray[np.uint8]
    starts: Ints
    sizes: Ints  # -1 for null
    offsets: Ints

    def __getitem__(self, rows: slice) -> ValueChunk:
        return ValueChunk(
            self.metadata_partition, self.data, self.starts[rows], self.sizes[rows], self.offsets[rows]
        )

    def value(self, row: int) -> bytes | None:
        size = int(self.sizes[row])
        start = int(self.starts[row])
        return None if size < 0 else self.data[start : start + size].tobytes()

    def records(
        self, say_: Say, rows: Iterable[int] | None = None
    ) -> Iterator[tuple[int, RemoteLogMetadata]]:
        """Each row, or the given ones, with its record; a value that is no record is a finding."""
        for row in range(len(self.offsets)) if rows is None else rows:
            value = self.value(row)
            try:
                if value is None:
                    raise FormatError("the value is null", 0)
                record = read_remote_log_metadata(value)
            except FormatError as error:
                say_(bad_record(self.metadata_partition, int(self.offsets[row]), error))
            else:
                yield row, record


def bad_record(metadata_partition: int | None, offset: int, error: Exception) -> Finding:
    """The finding about a value that is no record."""
    at = offset if offset >= 0 else None
    topic = None if metadata_partition is None else METADATA_TOPIC
    place = Place(topic=topic, partition=metadata_partition, base_offset=at, last_offset=at)
    return codes.METADATA_RECORD_BAD.at(place, reason=str(error))


def chunk_of(metadata_partition: int | None, values: Iterable[tuple[int, bytes | None]]) -> ValueChunk:
    """A chunk from single values with their offsets."""
    rows = list(values)
    sizes = np.array([-1 if value is None else len(value) for _, value in rows], np.int64)
    ends = np.cumsum(np.maximum(sizes, 0))
    data = b"".join([*(value or b"" for _, value in rows), bytes(LEAST)])
    starts = ends - np.maximum(sizes, 0)
    offsets = np.array([offset for offset, _ in rows], np.int64)
    return ValueChunk(metadata_partition, np.frombuffer(data, np.uint8), starts, sizes, offsets)


def values_in(entry: LogEntry) -> list[tuple[int, bytes | None]]:
    """Offset and value of each record of a batch; none of a control batch."""
    if entry.batch is not None and entry.batch.is_control:
        return []
    return [(record.offset, record.value) for record in iterate_records(entry)]


class MetadataReplica(Struct, frozen=True):
    """The segments of one replica of a metadata partition, or one single segment."""

    metadata_partition: int | None
    files: tuple[Path, ...]
    place_of: Callable[[Path], Place]
    broker_id: int | None = None
    arriving: Arriving | None = None  # fetches the segments of a running cluster; then `files` is empty

    def segments(self) -> Iterable[Path]:
        """The files in order; a fetched one is removed when the next one is taken."""
        return self.arriving() if self.arriving else self.files


class Extent(Struct):
    """Which offsets of a metadata partition were read: those up to `end`, except `holes`."""

    end: int
    """Initially where the log begins."""
    holes: list[tuple[int, int]] = field(default_factory=list)
    """At most `MOST_HOLES`. Only deletion removes records of this topic, and only from the front."""

    def take(self, base: Ints, last: Ints) -> None:
        """Add sound batches, in the order of the log."""
        if not len(base):
            return
        ends = np.maximum.accumulate(np.append(self.end, last + 1))
        for row in np.flatnonzero(base > ends[:-1])[: MOST_HOLES - len(self.holes)].tolist():
            self.holes.append((int(ends[row]), int(base[row])))
        self.end = int(ends[-1])


class MetadataLog(Struct):
    """The metadata partitions in evidence; `chunks` gives each record once."""

    replicas: dict[int | None, list[MetadataReplica]] = field(default_factory=dict)
    extents: dict[int | None, Extent] = field(default_factory=dict)
    """What was read of each metadata partition, complete once its chunks were taken."""
    say: Say = field(default=lambda finding: None)
    partitions: int | None = None  # of the topic, if the evidence has it

    def chunks(self, metadata_partition: int | None = None) -> Iterator[ValueChunk]:
        """All values, or those of one partition. A chunk is valid until the next one is taken."""
        for number, replicas in sorted(
            self.replicas.items(), key=lambda item: -1 if item[0] is None else item[0]
        ):
            if metadata_partition is not None and number != metadata_partition:
                continue
            extent = self.extents[number] = Extent(min(map(_begins_at, replicas)))
            if len(replicas) == 1:
                yield from values_of(replicas[0], self.say, extent)
            else:
                yield from united(replicas, self.say, extent)


# --- where they lie -----------------------------------------------------------------------------------

_FOLDER = re.compile(rf"{METADATA_TOPIC}-(\d+)")


def find_metadata(
    evidence: FoundEvidence, say_: Say = lambda finding: None, *, moment: str | None = None
) -> MetadataLog:
    """The metadata partitions in evidence, of the given moment or of the newest one that has any."""
    log = MetadataLog(say=say_)
    copies = [replica for replica in evidence.replicas if replica.topic == METADATA_TOPIC]
    moments = {replica.moment for replica in copies}
    chosen = moment or next((name for name in reversed(evidence.moments) if name in moments), None)

    def add(
        number: int | None, root: Root, files: tuple[Path, ...], broker_id: int | None = None,
        moment: str | None = None, arriving: Arriving | None = None,
    ) -> None:  # fmt: skip
        topic = METADATA_TOPIC if number is not None else None

        def place_of(path: Path) -> Place:
            where = evidence.place_of(path, root)
            return replace(where, broker_id=broker_id, topic=topic, partition=number, moment=moment)

        added = MetadataReplica(number, files, place_of, broker_id, arriving)
        log.replicas.setdefault(number, []).append(added)

    for replica in copies:
        if replica.kind is FolderKind.LIVE and replica.moment == chosen:
            root = replica.log_dir.root
            files = segments_in(replica.folder, say_, root, evidence)
            add(replica.partition, root, files, replica.broker_id, replica.moment, replica.arriving)
    for path, root in evidence.files:
        folder = _FOLDER.fullmatch(path.parent.name)
        add(int(folder[1]) if folder else None, root, (path,))
    for path, log_dir in evidence.loose_folders:
        files = segments_in(path, say_, log_dir.root, evidence)
        add(None, log_dir.root, files, log_dir.broker_id, log_dir.moment)
    return log


def segments_in(folder: Path, say_: Say, root: Root, evidence: FoundEvidence) -> tuple[Path, ...]:
    """The live segments of a partition folder, by base offset; empty, with a finding, if it cannot be read."""
    try:
        return live_segments(folder)
    except OSError as error:
        say_(codes.METADATA_UNREADABLE.at(evidence.place_of(folder, root), reason=reason_of(error)))
        return ()


def live_segments(folder: Path) -> tuple[Path, ...]:
    """The live segments of a partition folder, by base offset. Raises OSError."""
    live = []
    for path in folder.iterdir():
        name = parse_segment_file(path.name)
        if name and name.suffix == ".log" and not name.state:
            live.append((name.base_offset, path))
    return tuple(path for _, path in sorted(live))


# --- one replica ----------------------------------------------------------------------------------------


def _begins_at(replica: MetadataReplica) -> int:
    """The base offset of a replica's first segment, by its name."""
    segment_name = parse_segment_file(replica.files[0].name) if replica.files else None
    return segment_name.base_offset if segment_name else 0


def values_of(replica: MetadataReplica, say_: Say, extent: Extent | None = None) -> Iterator[ValueChunk]:
    """All values of a replica in the order of its log; notes in `extent` which offsets were read."""
    for path in replica.segments():
        for chunk in _scan(replica, path, say_, Level.RECORDS):
            if extent:
                sound = chunk.headers[chunk.headers.crc_valid]
                extent.take(sound.base_offset, sound.last_offset)
            values = _values(replica, chunk)
            if values is not None:
                yield values


def _scan(
    replica: MetadataReplica, path: Path, say_: Say, level: Level, *, silent: bool = False
) -> Iterator[Chunk]:
    """The chunks of a segment; unless `silent`, what is wrong with it is a finding."""
    place = replica.place_of(path)
    options = ScanOptions(level=level, keep_records=level is Level.RECORDS, place=place)
    try:
        with opened_source(path) as source:
            for chunk in scan_segment(source, options, hints=_hints(path)):
                if not silent:
                    for finding in chunk.findings:
                        say_(finding)
                yield chunk
    except OSError as error:
        say_(codes.METADATA_UNREADABLE.at(place, reason=reason_of(error)))


def _hints(path: Path) -> Ints | None:
    """Where batches may begin, by the index beside a segment; it only makes the scan faster."""
    try:
        return hints_of(read_padded(path.with_suffix(".index")))
    except (OSError, ValueError):
        return None


def _values(replica: MetadataReplica, chunk: Chunk) -> ValueChunk | None:
    records, headers = chunk.records, chunk.headers
    if records is None or not len(records):
        return None
    use = headers.crc_valid & ((headers.attributes & CONTROL) == 0)
    if not use.all():
        records = records[use[records.batch]]
    if not len(records):
        return None
    return ValueChunk(
        replica.metadata_partition, records.data, records.value_position, records.value_size, records.offset
    )


# --- several replicas ---------------------------------------------------------------------------------


class _Outline(NamedTuple):
    """The sound batches of a replica: first and last offset, CRC, and where each lies."""

    replica: MetadataReplica
    last_epoch: int
    base: Ints
    last: Ints
    crc: Ints
    position: Ints
    file: Ints  # its index among the replica's files

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return int(self.last.max(initial=-1)) + 1


def _outline(replica: MetadataReplica, say_: Say) -> _Outline:
    parts, last_epoch = [np.empty((5, 0), np.int64)], -1
    for number, path in enumerate(replica.files):
        for chunk in _scan(replica, path, say_, Level.CRC):
            headers = chunk.headers[chunk.headers.crc_valid]
            if len(headers):
                columns = (headers.base_offset, headers.last_offset, headers.crc, headers.position)
                file = np.full(len(headers), number)
                parts.append(np.stack([column.astype(np.int64) for column in (*columns, file)]))
                last_epoch = int(headers.partition_leader_epoch[-1])
    return _Outline(replica, last_epoch, *np.concatenate(parts, axis=1))


def united(replicas: list[MetadataReplica], say_: Say, extent: Extent) -> Iterator[ValueChunk]:
    """Each record once, by offset; differences between replicas are findings. Notes in `extent` which offsets were read."""
    outlines = [_outline(replica, say_) for replica in replicas]
    # The history of the newest leader counts.
    outlines.sort(key=lambda outline: (-outline.last_epoch, -outline.end, outline.replica.broker_id or 0))
    chosen, *others = outlines
    lacking: list[tuple[int, int, _Outline, int]] = []
    for other in others:
        _compare(chosen, other, say_)
        lacking += _lacking(chosen, other)
    lacking.sort(key=lambda batch: batch[0])
    bases = np.concatenate((chosen.base, np.array([batch[0] for batch in lacking], np.int64)))
    lasts = np.concatenate((chosen.last, np.array([batch[1] for batch in lacking], np.int64)))
    order = np.argsort(bases, kind="stable")
    extent.take(bases[order], lasts[order])
    extra = _read_extra(lacking)
    missing = next(extra, None)
    for path in chosen.replica.files:
        for scanned in _scan(chosen.replica, path, say_, Level.RECORDS, silent=True):
            chunk = _values(chosen.replica, scanned)
            while chunk is not None and missing is not None and missing.offsets[0] <= chunk.offsets[-1]:
                cut = int(np.searchsorted(chunk.offsets, missing.offsets[0]))
                if cut:
                    yield chunk[slice(0, cut)]
                yield missing
                chunk, missing = chunk[slice(cut, None)], next(extra, None)
            if chunk is not None and len(chunk.offsets):
                yield chunk
    while missing is not None:
        yield missing
        missing = next(extra, None)


def _compare(chosen: _Outline, other: _Outline, say_: Say) -> None:
    _, chosen_rows, other_rows = np.intersect1d(chosen.base, other.base, return_indices=True)
    differs = np.flatnonzero(
        (chosen.crc[chosen_rows] != other.crc[other_rows])
        | (chosen.last[chosen_rows] != other.last[other_rows])
    )
    # A batch that begins inside one of the other replica has another boundary, and so other content.
    inside = _inside(chosen, other)
    if not len(differs) and not len(inside):
        return
    bases = np.concatenate((other.base[other_rows[differs]], other.base[inside]))
    lasts = np.concatenate((other.last[other_rows[differs]], other.last[inside]))
    replica = other.replica
    place = Place(
        broker_id=replica.broker_id,
        topic=METADATA_TOPIC,
        partition=replica.metadata_partition,
        base_offset=int(bases.min()),
        last_offset=int(lasts.max()),
    )
    name = "another replica" if chosen.replica.broker_id is None else f"broker {chosen.replica.broker_id}"
    say_(codes.METADATA_REPLICAS_DIFFER.at(place, count=len(bases), other=name))


def _inside(chosen: _Outline, other: _Outline) -> Ints:
    """Batches of `other` that overlap one of `chosen` and begin elsewhere."""
    if not len(chosen.base) or not len(other.base):
        return np.empty(0, np.int64)
    order = np.argsort(chosen.base, kind="stable")
    base, last = chosen.base[order], np.maximum.accumulate(chosen.last[order])
    before = np.searchsorted(base, other.base, side="right") - 1
    after = np.minimum(before + 1, len(base) - 1)
    overlaps = (before >= 0) & (last[before] >= other.base) & (base[before] != other.base)
    overlaps |= (base[after] > other.base) & (base[after] <= other.last)
    return np.flatnonzero(overlaps)


def _lacking(chosen: _Outline, other: _Outline) -> list[tuple[int, int, _Outline, int]]:
    """Batches of `other` whose offsets `chosen` lacks and could have had."""
    missing = ~np.isin(other.base, chosen.base)
    missing[_inside(chosen, other)] = False
    # After the end of the leading replica no batch is missing: it was truncated there, or is behind.
    if chosen.last_epoch > other.last_epoch:
        missing &= other.base < chosen.end
    rows = np.flatnonzero(missing).tolist()
    return [(int(other.base[row]), int(other.last[row]), other, row) for row in rows]


def _read_extra(lacking: list[tuple[int, int, _Outline, int]]) -> Iterator[ValueChunk]:
    """The values of single batches by offset, each range once."""
    end = -1
    for base, last, outline, row in lacking:
        if base <= end:
            continue
        end = last
        path = outline.replica.files[int(outline.file[row])]
        try:
            with opened_source(path) as source:
                entry = next(walk(source, position=int(outline.position[row])))
                rows = values_in(entry) if isinstance(entry, LogEntry) else []
        except (OSError, StopIteration, FormatError):
            continue
        if rows:
            yield chunk_of(outline.replica.metadata_partition, rows)
