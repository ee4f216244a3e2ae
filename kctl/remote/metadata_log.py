"""The records of `__remote_log_metadata` in evidence: each once, by metadata partition and offset.

Where several replicas of a metadata partition are there, the one with the newest leader epoch and the greatest
end is read; what it lacks comes from the others, and batches that differ are findings. Values come in chunks: a
buffer, and where in it each value lies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.log_dir_files import FolderKind, parse_segment_file
from formats.records import Damage, Entry, Reason, iterate_records, walk
from formats.remote_log_metadata import RemoteLogMetadata, read_remote_log_metadata
from kctl.evidence.model import Evidence, Root
from kctl.findings import Finding, Place
from kctl.findings import remote as say

METADATA_TOPIC = "__remote_log_metadata"
CHUNK = 1 << 16  # records
PADDING = 256  # bytes that may be read behind the last value
HARMLESS = (Reason.TORN_TAIL, Reason.ZEROS)

Ints = NDArray[np.int64]
Say = Callable[[Finding], None]


@dataclass(slots=True)
class ValueChunk:
    """Values of records of one metadata partition, in the order of their offsets.

    Partition and offset are None and -1 where only values are there, as on standard input.
    """

    metadata_partition: int | None
    data: NDArray[np.uint8]  # goes on for PADDING bytes behind the last value
    starts: Ints
    sizes: Ints  # -1 for null
    offsets: Ints

    def value(self, row: int) -> bytes | None:
        """One value."""
        size = int(self.sizes[row])
        start = int(self.starts[row])
        return None if size < 0 else self.data[start : start + size].tobytes()

    def records(self) -> Iterator[tuple[int, RemoteLogMetadata | FormatError]]:
        """Offset and record, or why the value is none."""
        for row, offset in enumerate(self.offsets.tolist()):
            value = self.value(row)
            try:
                if value is None:
                    raise FormatError("the value is null", 0)
                yield offset, read_remote_log_metadata(value)
            except FormatError as error:
                yield offset, error


def bad_record(metadata_partition: int | None, offset: int, error: Exception) -> Finding:
    """The finding about a value that is no record."""
    at = offset if offset >= 0 else None
    topic = None if metadata_partition is None else METADATA_TOPIC
    place = Place(topic=topic, partition=metadata_partition, base_offset=at, last_offset=at)
    return say.METADATA_RECORD_BAD.at(place, reason=str(error))


def chunk_of(metadata_partition: int | None, values: Iterable[tuple[int, bytes | None]]) -> ValueChunk:
    """A chunk from single values with their offsets."""
    rows = list(values)
    sizes = np.array([-1 if value is None else len(value) for _, value in rows], np.int64)
    ends = np.cumsum(np.maximum(sizes, 0))
    data = b"".join([*(value or b"" for _, value in rows), bytes(PADDING)])
    starts = ends - np.maximum(sizes, 0)
    offsets = np.array([offset for offset, _ in rows], np.int64)
    return ValueChunk(metadata_partition, np.frombuffer(data, np.uint8), starts, sizes, offsets)


@dataclass(frozen=True, slots=True)
class MetadataReplica:
    """The segments of one replica of a metadata partition, or one segment named alone."""

    metadata_partition: int | None
    files: tuple[Path, ...]
    place_of: Callable[[Path], Place]
    broker_id: int | None = None


@dataclass
class MetadataLog:
    """The metadata partitions of evidence; iterating gives each record once."""

    replicas: dict[int | None, list[MetadataReplica]] = field(default_factory=dict)
    say: Say = field(default=lambda finding: None)
    partitions: int | None = None  # of the topic, where the evidence tells

    def chunks(self, metadata_partition: int | None = None) -> Iterator[ValueChunk]:
        """All values, or those of one partition, partition by partition."""
        for number, replicas in sorted(
            self.replicas.items(), key=lambda item: -1 if item[0] is None else item[0]
        ):
            if metadata_partition is None or number == metadata_partition:
                yield from self._partition(number, replicas)

    def _partition(self, number: int | None, replicas: list[MetadataReplica]) -> Iterator[ValueChunk]:
        logs = [_ReplicaLog(replica, self.say) for replica in replicas]
        # The newest leader's history is the one that counts.
        logs.sort(key=lambda log: (-log.last_epoch, -log.end, log.replica.broker_id or 0))
        chosen = _united(logs, self.say)
        rows: list[tuple[int, bytes | None]] = []
        for log, batch in chosen:
            rows += log.values(batch)
            if len(rows) >= CHUNK:
                yield chunk_of(number, rows)
                rows = []
        if rows:
            yield chunk_of(number, rows)


@dataclass(frozen=True, slots=True)
class _Batch:
    file: Path
    entry: Entry

    @property
    def same(self) -> tuple[int, int]:
        return self.entry.last_offset, self.entry.header.crc


class _ReplicaLog:
    """The sound batches of one replica by base offset."""

    def __init__(self, replica: MetadataReplica, say: Say) -> None:
        self.replica = replica
        self.say = say
        self.batches: dict[int, _Batch] = {}
        for path in replica.files:
            self._read(path)
        last = max(self.batches.values(), key=lambda b: b.entry.last_offset, default=None)
        self.end = last.entry.last_offset + 1 if last else 0
        self.last_epoch = last.entry.batch.partition_leader_epoch if last and last.entry.batch else -1

    def _read(self, path: Path) -> None:
        place = self.replica.place_of(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            self.say(say.METADATA_UNREADABLE.at(place, reason=error.strerror or error))
            return
        for item in walk(data):
            if isinstance(item, Entry) and item.crc_valid:
                self.batches[item.base_offset] = _Batch(path, item)
            elif isinstance(item, Entry) or item.reason not in HARMLESS:
                reason = "its CRC is wrong" if isinstance(item, Entry) else str(item.reason)
                where = _moved(place, item)
                self.say(say.METADATA_DAMAGED.at(where, reason=reason))

    def values(self, batch: _Batch) -> Iterator[tuple[int, bytes | None]]:
        entry = batch.entry
        if entry.batch is not None and entry.batch.is_control:
            return
        try:
            for record in iterate_records(entry):
                yield record.offset, record.value
        except FormatError as error:
            self.say(
                say.METADATA_DAMAGED.at(_moved(self.replica.place_of(batch.file), entry), reason=str(error))
            )


def _moved(place: Place, item: Entry | Damage) -> Place:
    from dataclasses import replace

    base = item.base_offset if isinstance(item, Entry) else None
    last = item.last_offset if isinstance(item, Entry) else None
    return replace(
        place, position=item.position, size_in_bytes=item.size_in_bytes, base_offset=base, last_offset=last
    )


def _united(logs: list[_ReplicaLog], say_: Say) -> Iterator[tuple[_ReplicaLog, _Batch]]:
    """Each batch once, by offset, from the first log that has it."""
    chosen: dict[int, tuple[_ReplicaLog, _Batch]] = {}
    first = logs[0]
    for log in logs:
        differing: list[int] = []
        for base, batch in log.batches.items():
            if base not in chosen:
                chosen[base] = (log, batch)
            elif chosen[base][1].same != batch.same:
                differing.append(base)
        if differing:
            place = Place(
                broker_id=log.replica.broker_id,
                topic=METADATA_TOPIC,
                partition=log.replica.metadata_partition,
                base_offset=min(differing),
                last_offset=max(log.batches[base].entry.last_offset for base in differing),
            )
            say_(
                say.METADATA_REPLICAS_DIFFER.at(
                    place, count=len(differing), other=_name(first.replica.broker_id)
                )
            )
    end = -1
    for base in sorted(chosen):
        log, batch = chosen[base]
        if batch.entry.last_offset > end:
            yield log, batch
            end = batch.entry.last_offset


def _name(broker_id: int | None) -> str:
    return "another replica" if broker_id is None else f"broker {broker_id}"


# --- where they lie -----------------------------------------------------------------------------------

_FOLDER = re.compile(rf"{METADATA_TOPIC}-(\d+)")


def find_metadata(
    evidence: Evidence, say_: Say = lambda finding: None, moment: str | None = None
) -> MetadataLog:
    """The metadata partitions in evidence; of several moments the newest that has them, or the one asked for."""
    found = MetadataLog(say=say_)
    wanted = moment
    if wanted is None and evidence.moments:
        have = {r.moment for r in evidence.replicas if r.topic == METADATA_TOPIC}
        wanted = next((m for m in reversed(evidence.moments) if m in have), None)
    for replica in evidence.replicas:
        if replica.topic != METADATA_TOPIC or replica.kind is not FolderKind.LIVE or replica.moment != wanted:
            continue
        files = segments_in(replica.folder, say_, replica.log_dir.root, evidence)
        place_of = _places(
            evidence, replica.log_dir.root, replica.partition, replica.broker_id, replica.moment
        )
        one = MetadataReplica(replica.partition, files, place_of, replica.broker_id)
        found.replicas.setdefault(replica.partition, []).append(one)
    for path, root in evidence.files:
        folder = _FOLDER.fullmatch(path.parent.name)
        number = int(folder[1]) if folder else None
        place_of = _places(evidence, root, number, None, None)
        found.replicas.setdefault(number, []).append(MetadataReplica(number, (path,), place_of))
    for path, log_dir in evidence.loose_folders:
        files = segments_in(path, say_, log_dir.root, evidence)
        place_of = _places(evidence, log_dir.root, None, log_dir.broker_id, log_dir.moment)
        found.replicas.setdefault(None, []).append(MetadataReplica(None, files, place_of, log_dir.broker_id))
    return found


def _places(
    evidence: Evidence, root: Root, number: int | None, broker_id: int | None, moment: str | None
) -> Callable[[Path], Place]:
    from dataclasses import replace

    def place_of(path: Path) -> Place:
        return replace(
            evidence.place_of(path, root),
            broker_id=broker_id,
            topic=METADATA_TOPIC if number is not None else None,
            partition=number,
            moment=moment,
        )

    return place_of


def segments_in(folder: Path, say_: Say, root: Root, evidence: Evidence) -> tuple[Path, ...]:
    """The live segments of a partition folder, by base offset."""
    try:
        names = list(folder.iterdir())
    except OSError as error:
        say_(say.METADATA_UNREADABLE.at(evidence.place_of(folder, root), reason=error.strerror or error))
        return ()
    parsed = [(parse_segment_file(path.name), path) for path in names]
    live = [(one.base_offset, path) for one, path in parsed if one and one.suffix == ".log" and not one.state]
    return tuple(path for _, path in sorted(live))
