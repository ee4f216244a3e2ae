"""Values of one metadata partition from its replicas: read in columns, each record once.

With one replica its segments are read once. With several the headers of all are held against each other first:
the one with the newest leader epoch and the greatest end is read, and what it lacks comes from the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from formats.errors import FormatError
from formats.record_batch import CONTROL
from formats.records import Entry, iterate_records, walk
from kctl.errors import reason_of
from kctl.findings import Place
from kctl.findings import remote as say
from kctl.scan.options import Chunk, Level, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.source import local_file
from kctl.scan.splits import hints_of

if TYPE_CHECKING:
    from kctl.remote.metadata_log import Ints, MetadataReplica, Say, ValueChunk


def values_of(replica: MetadataReplica, say_: Say) -> Iterator[ValueChunk]:
    """All values of a replica, in the order of its log."""
    for path in replica.segments():
        for chunk in _scan(replica, path, say_, Level.RECORDS):
            found = _values(replica, chunk)
            if found is not None:
                yield found


def _scan(
    replica: MetadataReplica, path: Path, say_: Say, level: Level, *, silent: bool = False
) -> Iterator[Chunk]:
    """The chunks of a segment; what is wrong with it is said, unless it was said before."""
    place = replica.place_of(path)
    options = ScanOptions(level=level, keep_records=level is Level.RECORDS, place=place)
    try:
        with local_file(path) as source:
            for chunk in scan_segment(source, options, hints=_hints(path)):
                if not silent:
                    for finding in chunk.findings:
                        say_(finding)
                yield chunk
    except OSError as error:
        say_(say.METADATA_UNREADABLE.at(place, reason=reason_of(error)))


def _hints(path: Path) -> Ints | None:
    """Where batches may begin, from the index beside a segment; only the speed of the walk hangs on it."""
    try:
        return hints_of(path.with_suffix(".index").read_bytes())
    except (OSError, ValueError):
        return None


def _values(replica: MetadataReplica, chunk: Chunk) -> ValueChunk | None:
    from kctl.remote.metadata_log import ValueChunk

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


@dataclass(slots=True)
class _Outline:
    """The sound batches of a replica: where each begins and ends, and what its content is by CRC."""

    replica: MetadataReplica
    base: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    last: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    crc: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    position: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    file: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    last_epoch: int = -1

    @property
    def end(self) -> int:
        """Behind the last record."""
        return int(self.last.max()) + 1 if len(self.last) else 0


def _outline(replica: MetadataReplica, say_: Say) -> _Outline:
    parts: list[tuple[Ints, ...]] = []
    outline = _Outline(replica)
    for number, path in enumerate(replica.files):
        for chunk in _scan(replica, path, say_, Level.CRC):
            headers = chunk.headers[chunk.headers.crc_valid]
            if len(headers):
                where = np.full(len(headers), number, np.int64)
                crc = headers.crc.astype(np.int64)
                parts.append((headers.base_offset, headers.last_offset, crc, headers.position, where))
                outline.last_epoch = int(headers.partition_leader_epoch[-1])
    if parts:
        columns = (np.concatenate([part[i] for part in parts]) for i in range(5))
        outline.base, outline.last, outline.crc, outline.position, outline.file = columns
    return outline


def united(replicas: list[MetadataReplica], say_: Say) -> Iterator[ValueChunk]:
    """Each record once, by offset; replicas that differ are findings."""
    outlines = [_outline(replica, say_) for replica in replicas]
    # The newest leader's history is the one that counts.
    outlines.sort(key=lambda one: (-one.last_epoch, -one.end, one.replica.broker_id or 0))
    chosen, *others = outlines
    lacking: list[tuple[int, int, _Outline, int]] = []
    for other in others:
        _compare(chosen, other, say_)
        lacking += _lacking(chosen, other)
    extra = _read_extra(sorted(lacking, key=lambda one: one[0]))
    waiting = next(extra, None)
    for path in chosen.replica.files:
        for scanned in _scan(chosen.replica, path, say_, Level.RECORDS, silent=True):
            chunk = _values(chosen.replica, scanned)
            while chunk is not None and waiting is not None and waiting.offsets[0] <= chunk.offsets[-1]:
                cut = int(np.searchsorted(chunk.offsets, waiting.offsets[0]))
                if cut:
                    yield chunk[slice(0, cut)]
                yield waiting
                chunk, waiting = chunk[slice(cut, None)], next(extra, None)
            if chunk is not None and len(chunk.offsets):
                yield chunk
    while waiting is not None:
        yield waiting
        waiting = next(extra, None)


def _compare(chosen: _Outline, other: _Outline, say_: Say) -> None:
    _, mine, theirs = np.intersect1d(chosen.base, other.base, return_indices=True)
    differs = np.flatnonzero(
        (chosen.crc[mine] != other.crc[theirs]) | (chosen.last[mine] != other.last[theirs])
    )
    # A batch that begins inside one of the other's is cut otherwise, and so is its content.
    inside = _inside(chosen, other)
    if not len(differs) and not len(inside):
        return
    bases = np.concatenate((other.base[theirs[differs]], other.base[inside]))
    lasts = np.concatenate((other.last[theirs[differs]], other.last[inside]))
    replica = other.replica
    place = Place(
        broker_id=replica.broker_id,
        topic="__remote_log_metadata",
        partition=replica.metadata_partition,
        base_offset=int(bases.min()),
        last_offset=int(lasts.max()),
    )
    name = "another replica" if chosen.replica.broker_id is None else f"broker {chosen.replica.broker_id}"
    say_(say.METADATA_REPLICAS_DIFFER.at(place, count=len(bases), other=name))


def _inside(chosen: _Outline, other: _Outline) -> Ints:
    """Batches of `other` that overlap one of `chosen` and do not begin where it does."""
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
    """Batches of `other` whose offsets `chosen` has not, and could have had."""
    missing = ~np.isin(other.base, chosen.base)
    missing[_inside(chosen, other)] = False
    # Behind the end of the replica that leads there is nothing to take: it was truncated there, or lags.
    if chosen.last_epoch > other.last_epoch:
        missing &= other.base < chosen.end
    rows = np.flatnonzero(missing).tolist()
    return [(int(other.base[row]), int(other.last[row]), other, row) for row in rows]


def _read_extra(lacking: list[tuple[int, int, _Outline, int]]) -> Iterator[ValueChunk]:
    """The values of single batches, by offset; each range once."""
    from kctl.remote.metadata_log import chunk_of

    end = -1
    for base, last, outline, row in lacking:
        if base <= end:
            continue
        end = last
        path = outline.replica.files[int(outline.file[row])]
        try:
            with local_file(path) as source:
                entry = next(walk(source, position=int(outline.position[row])))
                rows = (
                    [(r.offset, r.value) for r in iterate_records(entry)] if isinstance(entry, Entry) else []
                )
        except (OSError, StopIteration, FormatError):
            continue
        if rows:
            yield chunk_of(outline.replica.metadata_partition, rows)
