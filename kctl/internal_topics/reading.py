"""The records of an internal topic, from the best copies in the evidence.

Where several copies of a partition are there, one is read: of the last moment, then the one that reaches
furthest. Records of aborted transactions are left out, and those of transactions still open, as a consumer of
`read_committed` would have it; the markers themselves are no records.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError
from formats.log import control_records
from formats.log.record_batch import BatchHeader
from formats.log.records import Damage, LogEntry, iterate_records, walk
from formats.log_dir.file_names import FolderKind
from formats.values import Struct
from kctl.errors import reason_of
from kctl.evidence.model import Arriving, FoundEvidence, Replica
from kctl.log.folder import read_folder
from kctl.model import TopicPartition
from kctl.scan.source import opened_source

LIMIT = 64 << 20
"""Most bytes that one batch of an internal topic may decompress to: their records are small."""


class TopicRecord(NamedTuple):
    """A record of an internal topic, and where it lies."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Unreadable(NamedTuple):
    """A range of a log that gave no records: why, and where."""

    file: Path
    position: int
    what: str
    is_closed: bool = False  # the system refused it; what it holds is not known


class AsOf(Struct, frozen=True):
    """Up to where a log counts: offsets below `offset`, records stamped at `timestamp` (ms) or before."""

    offset: int | None = None
    timestamp: int | None = None

    def includes(self, offset: int, timestamp: int) -> bool:
        """Whether a record counts."""
        return (self.offset is None or offset < self.offset) and (
            self.timestamp is None or timestamp <= self.timestamp
        )


NOW = AsOf()


def copies_to_read(evidence: FoundEvidence, topic: str) -> list[Replica]:
    """One live copy of each partition of the topic, by partition."""
    return [best[0] for best in _best_copies(evidence, topic)]


def whole_copies(evidence: FoundEvidence, topic: str) -> list[Replica]:
    """The same; of copies that reach as far one that can be read whole, for which they are read."""
    return [
        next((copy for copy in best if _is_whole(copy)), best[0]) if len(best) > 1 else best[0]
        for best in _best_copies(evidence, topic)
    ]


def _is_whole(replica: Replica) -> bool:
    trouble: list[Unreadable] = []
    for _ in entries(replica.folder, trouble):
        if trouble:
            break
    return not trouble


def _best_copies(evidence: FoundEvidence, topic: str) -> list[list[Replica]]:
    """The live copies of each partition that reach furthest, by partition."""
    order = {name: place for place, name in enumerate(evidence.moments)}
    best: dict[TopicPartition, tuple[tuple[int, int, int], list[Replica]]] = {}
    for replica in evidence.replicas:
        if replica.topic != topic or replica.kind is not FolderKind.LIVE:
            continue
        try:
            last = [] if replica.arriving else segments(replica.folder)[-1:]
            reach = (int(last[0].stem), last[0].stat().st_size) if last else (-1, 0)
        except OSError:  # an error when it is read, which it is without a better copy
            reach = (-2, 0)
        if replica.arriving:
            reach = (sys.maxsize, 0)  # its leader has it now
        rank = (order.get(replica.moment or "", -1), *reach)
        best_so_far = best.get(replica.topic_partition)
        if best_so_far is None or rank > best_so_far[0]:
            best[replica.topic_partition] = (rank, [replica])
        elif rank == best_so_far[0] and not replica.arriving:
            best_so_far[1].append(replica)
    return [best[key][1] for key in sorted(best)]


def segments(folder: Path) -> list[Path]:
    """The `.log` files of a partition folder that a broker would read, by base offset."""
    return [segment.log.path for segment in read_folder(folder).logs if segment.log]


def newest_segments(folder: Path, most_bytes: int | None) -> tuple[list[Path], int]:
    """The last segments that together have at most so many bytes, by base offset, and how many they have."""
    total, paths = 0, list[Path]()
    for path in reversed(segments(folder)):
        size = path.stat().st_size if path.exists() else 0
        if most_bytes is not None and total + size > most_bytes:
            break
        total += size
        paths.append(path)
    return paths[::-1], total


def entries(
    folder: Path, trouble: list[Unreadable], most_bytes: int | None = None, arriving: Arriving | None = None
) -> Iterator[LogEntry]:
    """The sound entries of a partition folder in the order of the log; the rest goes to `trouble`.

    `most_bytes`: only of the newest segments that have no more. `arriving` gives the segments in place of the folder.
    """
    last_offset = -1
    try:
        if not arriving:
            below = read_folder(folder)
            odd = sorted({*below.links, *(path for path, _ in below.odd)})
            trouble += [
                Unreadable(path, 0, "it is not a regular file", is_closed=True)
                for path in odd
                if path.suffix == ".log"
            ]
        paths: Iterable[Path] = arriving() if arriving else newest_segments(folder, most_bytes)[0]
    except OSError as error:
        trouble.append(Unreadable(folder, 0, reason_of(error), is_closed=True))
        return
    torn: Unreadable | None = None
    for path in paths:
        try:
            with opened_source(path) as data:
                for item in walk(data, last_offset=last_offset):
                    if torn:  # the log goes on behind it: no broker was writing there
                        trouble.append(torn)
                        torn = None
                    if isinstance(item, Damage):
                        if item.reason == "torn-tail":
                            torn = Unreadable(path, item.position, "torn-tail")
                        elif item.reason != "zeros":
                            trouble.append(Unreadable(path, item.position, str(item.reason)))
                    elif not item.crc_valid:
                        trouble.append(Unreadable(path, item.position, "crc-mismatch"))
                    else:
                        last_offset = item.last_offset
                        yield item
        except OSError as error:
            trouble.append(Unreadable(path, 0, reason_of(error), is_closed=True))


def topic_records(
    replica: Replica,
    *,
    as_of: AsOf = NOW,
    committed_only: bool = True,
    trouble: list[Unreadable] | None = None,
    most_bytes: int | None = None,
    still_open: dict[tuple[int, int], list[TopicRecord]] | None = None,
) -> Iterator[TopicRecord]:
    """The records of one copy in the order in which they count: those of a transaction at its commit.

    `still_open` takes the records of transactions without an end, by producer id and epoch.
    """
    trouble = trouble if trouble is not None else []
    pending: dict[tuple[int, int], list[TopicRecord]] = still_open if still_open is not None else {}
    for entry in entries(replica.folder, trouble, most_bytes, replica.arriving):
        batch = entry.batch
        if batch is not None and batch.is_control:
            yield from _ended(entry, batch, pending, as_of)
            continue
        try:
            records = [
                TopicRecord(replica.partition, r.offset, r.timestamp, r.key, r.value)
                for r in iterate_records(entry, limit=LIMIT)
                if as_of.includes(r.offset, r.timestamp)
            ]
        except FormatError as error:
            trouble.append(Unreadable(replica.folder, entry.position, str(error)))
            continue
        if committed_only and batch is not None and batch.is_transactional:
            pending.setdefault((batch.producer_id, batch.producer_epoch), []).extend(records)
        else:
            yield from records


def _ended(
    entry: LogEntry, batch: BatchHeader, pending: dict[tuple[int, int], list[TopicRecord]], as_of: AsOf
) -> Iterator[TopicRecord]:
    """The records of the transaction that a marker commits; those of one that it aborts are dropped."""
    try:
        markers = list(iterate_records(entry, limit=LIMIT))
        kind = control_records.read_key(markers[0].key).type if markers else None
    except FormatError:
        return
    if not markers or not as_of.includes(markers[0].offset, markers[0].timestamp):
        return
    # A marker may carry a higher epoch than the records that it ends (KIP-360, KIP-890).
    for key in [
        producer
        for producer in pending
        if producer[0] == batch.producer_id and producer[1] <= batch.producer_epoch
    ]:
        records = pending.pop(key)
        if kind == control_records.ControlType.COMMIT:
            yield from records
