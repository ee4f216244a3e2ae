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
from formats.remote_log_metadata import RemoteLogMetadata, read_remote_log_metadata
from kctl.errors import reason_of
from kctl.evidence.model import Arriving, Evidence, Root
from kctl.findings import Finding, Place
from kctl.findings import remote as say
from kctl.remote.metadata_replicas import united, values_of

METADATA_TOPIC = "__remote_log_metadata"
LEAST = 8  # bytes in a buffer, so that a row without a value has somewhere to point at

Ints = NDArray[np.int64]
Say = Callable[[Finding], None]


@dataclass(slots=True)
class ValueChunk:
    """Values of records of one metadata partition, in the order of their offsets.

    Partition and offset are None and -1 where only values are there, as on standard input.
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
    data = b"".join([*(value or b"" for _, value in rows), bytes(LEAST)])
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
    arriving: Arriving | None = None  # gives the segments of a running cluster, of which none is in `files`

    def segments(self) -> Iterable[Path]:
        """The files in order; one that arrives is gone when the next one is asked for."""
        return self.arriving() if self.arriving else self.files


@dataclass
class MetadataLog:
    """The metadata partitions of evidence; iterating gives each record once."""

    replicas: dict[int | None, list[MetadataReplica]] = field(default_factory=dict)
    say: Say = field(default=lambda finding: None)
    partitions: int | None = None  # of the topic, where the evidence tells

    def chunks(self, metadata_partition: int | None = None) -> Iterator[ValueChunk]:
        """All values, or those of one partition. A chunk is valid until the next one is asked for."""
        for number, replicas in sorted(
            self.replicas.items(), key=lambda item: -1 if item[0] is None else item[0]
        ):
            if metadata_partition is not None and number != metadata_partition:
                continue
            if len(replicas) == 1:
                yield from values_of(replicas[0], self.say)
            else:
                yield from united(replicas, self.say)


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
        one = MetadataReplica(replica.partition, files, place_of, replica.broker_id, replica.arriving)
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
        say_(say.METADATA_UNREADABLE.at(evidence.place_of(folder, root), reason=reason_of(error)))
        return ()
    parsed = [(parse_segment_file(path.name), path) for path in names]
    live = [(one.base_offset, path) for one, path in parsed if one and one.suffix == ".log" and not one.state]
    return tuple(path for _, path in sorted(live))
