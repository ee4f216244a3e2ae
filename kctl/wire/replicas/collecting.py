"""Replicas as files of a copy that `kctl collect` makes: the batches that each broker gives, byte for byte.

A broker gives a client no batch above its high watermark, and no other file of a partition folder; what its answers
tell of them is written as checkpoints. All replicas of a partition are read up to one offset, the high watermark of the
leader as the copy began, so that copies of brokers under load end alike.

Source: KIP-392 (followers answer Fetch, 2.4); core/src/main/scala/kafka/server/ReplicaManager.scala @ 2.4.1, 4.3.0
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from formats.log_dir.checkpoints import EpochEntry, OffsetEntry, format_checkpoint
from formats.log_dir.file_names import LEADER_EPOCHS, PARTITION_METADATA
from formats.log_dir.state_files import PartitionMetadata, format_partition_metadata
from formats.values import Struct
from kctl.cluster.state import ClusterState
from kctl.collect.collection import Collected, Collection
from kctl.collect.manifest import DroppedLine, FileLine, PlannedLine, WholeLine
from kctl.collect.transport import FILE, Entry
from kctl.collect.writing import Written
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import NoAnswer, TooOld, Wire
from kctl.wire.replicas.copying import MOST, whole_batches
from kctl.wire.replicas.epochs import replica_epochs
from kctl.wire.replicas.fetching import (
    CONSUMER,
    EARLIEST,
    LATEST,
    OFFSET_OUT_OF_RANGE,
    Fetched,
    Fetcher,
    FetchPosition,
    list_offsets,
    local_starts,
)

SEGMENT = 1 << 30  # bytes after which the next file begins, as brokers do by default
CATCHING_UP = 5.0  # seconds in which the high watermark of a follower may come up to that of its leader
LOOK = 0.1  # seconds
ATTEMPTS = 5  # of a partition whose first segments retention deletes while it is read
AT_ONCE = 500  # partitions of a request for epochs
WATERMARKS, LOG_STARTS = "replication-offset-checkpoint", "log-start-offset-checkpoint"
TOLD = "made of the broker's answers"


def entry_now(name: str) -> Entry:
    """The entry of a file that is made now."""
    return Entry(name, FILE, 0, time.time_ns(), 0o600, os.getuid(), os.getgid())


class _Deleted(Exception):
    """Retention has deleted batches that were to come next."""


class _FetchedSegment:
    """The batches of a replica from an offset on as an open file; it ends at a bound, or as a segment is full."""

    def __init__(self, replica: "_Replica", first: bytes | memoryview) -> None:
        self._replica, self._next = replica, first
        base_offset = int.from_bytes(first[:8], "big", signed=True) if first else replica.offset
        self.entry = entry_now(f"{max(base_offset, 0):020d}.log")

    def pieces(self) -> Iterator[memoryview | int]:
        """Whole batches; what is no batch as it is, which ends the replica."""
        size, data = 0, self._next
        while data:
            end, last_offset = whole_batches(data, self._replica.until)
            if last_offset < self._replica.offset:
                yield memoryview(data)
                self._replica.is_damaged = True
                self._replica.why = f"the bytes at offset {self._replica.offset} are no batch, and the broker gives none behind them"
                return
            yield memoryview(data)[:end]
            size += end
            self._replica.offset = last_offset + 1
            data = self._replica.fetch() if size < SEGMENT else b""

    def what_happened(self) -> str | None:
        """Where the log of the replica ends, if that is not where the copy does."""
        return self._replica.note()


class _Replica(Struct):
    """A replica that is being copied."""

    wire: Wire
    fetcher: Fetcher
    broker_id: int
    partition: TopicPartition
    offset: int
    """The next one to be read."""
    until: int | None
    """None: as far as the broker gives its log."""
    log_start_offset: int = 0
    log_end_offset: int | None = None
    why: str | None = None
    """Why it was not read up to the bound."""
    is_cut_off: bool = False
    """Whether there is more of it that would have been read."""
    is_damaged: bool = False

    def fetch(self) -> bytes | memoryview:
        """The bytes at the offset; none at the end. Raises _Deleted, KctlError."""
        end = time.monotonic() + CATCHING_UP
        while self.why is None and (self.until is None or self.offset < self.until):
            position = FetchPosition(self.broker_id, self.partition, self.offset)
            (answer,) = self.fetcher.fetch([position], MOST)
            if not isinstance(answer, Fetched):
                raise answer
            if answer.error_code == OFFSET_OUT_OF_RANGE:
                if self._starts_behind():
                    raise _Deleted
                self.why = f"its log ends at {self.offset}"
            elif answer.error:
                self.why, self.is_cut_off = f"{answer.error} at offset {self.offset}", True
            elif answer.data:
                return answer.data
            elif self.until is None:
                break
            elif time.monotonic() > end:
                self.why = f"it gives nothing from offset {self.offset} on: its high watermark is no higher"
            else:
                self.wire.pause(LOOK)
        return b""

    def _starts_behind(self) -> bool:
        key = self.broker_id, self.partition
        start = local_starts(self.wire, [key])[key]
        return isinstance(start, int) and start > self.offset

    def start_again(self) -> None:
        """Begin where the log begins now."""
        key = self.broker_id, self.partition
        start, log_start = local_starts(self.wire, [key])[key], list_offsets(self.wire, [key], EARLIEST)[key]
        self.offset = start if isinstance(start, int) else self.offset
        self.log_start_offset = log_start if isinstance(log_start, int) else self.offset

    def note(self) -> str | None:
        """What the copy lacks."""
        if self.why is not None:
            return self.why
        if self.log_end_offset is not None and self.log_end_offset > self.offset:
            return f"read up to the high watermark {self.offset}; the log ends at {self.log_end_offset}"
        return "read up to the high watermark"


class _Made(Struct):
    """A file that no broker has in this form; `data` are the pieces of it."""

    entry: Entry
    data: Iterable[bytes]

    def pieces(self) -> Iterator[memoryview | int]:
        """The pieces."""
        return map(memoryview, self.data)

    def what_happened(self) -> str | None:
        """How it came to be."""
        return TOLD


def write_made(run: Collection, place: str, shown: str, data: Iterable[bytes], done: Collected) -> None:
    """Write a file that is made of answers. Raises KctlError, and whatever `data` does."""
    content, read_at = _Made(entry_now(place.rpartition("/")[2]), data), run.now_ms()
    try:
        written = run.target.copy(place, content, lambda count: None)
    except BaseException:
        run.target.remove(place)
        raise
    _note(run, place, shown, content.entry, written, TOLD, read_at, done)


def _note(
    run: Collection, place: str, shown: str, entry: Entry, written: Written, note: str | None, read_at: int,
    done: Collected,
) -> None:  # fmt: skip
    run.manifest.add(
        FileLine(
            place, shown, written.size, written.sha256, entry.mode, entry.uid, entry.gid,
            entry.mtime_ns // 1_000_000, entry.mtime_ns, read_at, note,
        )
    )  # fmt: skip
    done.files += 1
    done.bytes += written.size


class BrokerCopy(Struct):
    """The copy of the replicas of one broker: `run` is where it goes, `until` the bound of each partition."""

    run: Collection
    wire: Wire
    state: ClusterState
    broker_id: int
    shown: str
    until: Mapping[TopicPartition, int]

    @property
    def place(self) -> str:
        """Its folder in the copy."""
        return f"broker-{self.broker_id}/data"

    def replicas(self, partitions: Sequence[TopicPartition], done: Collected) -> Iterator[str]:
        """Copy replicas; yields what could not be copied, in words. Raises KctlError as the broker does not answer."""
        manifest, earlier = self.run.manifest, self.run.earlier
        for tp in partitions:
            manifest.add(PlannedLine(f"{self.place}/{tp}", fetched=True))
        manifest.flush()
        fetcher = Fetcher(self.wire, {name: topic.topic_id for name, topic in self.state.topics.items()})
        copied: list[_Replica] = []
        for at in range(0, len(partitions), AT_ONCE):
            chunk: list[_Replica] = []
            for replica in self._opened(fetcher, partitions[at : at + AT_ONCE]):
                if isinstance(replica, str):
                    yield replica
                    continue
                if f"{self.place}/{replica.partition}" in earlier.whole:
                    continue
                yield from self._segments(replica, done)
                if not replica.is_cut_off:
                    chunk.append(replica)
            yield from self._beside(chunk, done)
            for replica in chunk:
                manifest.add(WholeLine(f"{self.place}/{replica.partition}"))
            manifest.flush()
            copied += chunk
        if copied:
            self._checkpoints(copied, done)

    def _opened(self, fetcher: Fetcher, partitions: Sequence[TopicPartition]) -> Iterator[_Replica | str]:
        """The replicas at their beginnings, or why the broker does not tell it."""
        keys = [(self.broker_id, tp) for tp in partitions]
        begins, ends = local_starts(self.wire, keys), list_offsets(self.wire, keys, LATEST)
        starts = list_offsets(self.wire, keys, EARLIEST)
        for key in keys:
            begin, start, end, tp = begins[key], starts[key], ends[key], key[1]
            for answer in (begin, start, end):
                if isinstance(answer, NoAnswer):
                    raise answer
            if isinstance(begin, KctlError):
                yield f"{tp}: {begin.message}"
                continue
            replica = _Replica(self.wire, fetcher, self.broker_id, tp, begin, self.until.get(tp))
            replica.log_start_offset = start if isinstance(start, int) else begin
            replica.log_end_offset = end if isinstance(end, int) else None
            yield replica

    def _segments(self, replica: _Replica, done: Collected) -> Iterator[str]:
        """Copy the segments of a replica; yields why they end early."""
        folder, places = f"{self.place}/{replica.partition}", list[str]()
        for _ in range(ATTEMPTS):
            try:
                data = replica.fetch()
                while data or not places:
                    segment = _FetchedSegment(replica, data)
                    place = f"{folder}/{segment.entry.name}"
                    self._copy(place, segment, done)
                    places.append(place)
                    data = replica.fetch()
                break
            except _Deleted:
                for place in places:
                    self.run.target.remove(place)
                    self.run.manifest.add(DroppedLine(place))
                places.clear()
                replica.start_again()
            except NoAnswer:
                raise
            except KctlError as error:
                replica.why, replica.is_cut_off = error.message, True
                break
        else:
            replica.why, replica.is_cut_off = (
                "its first batches were deleted each time that it was read",
                True,
            )
        if replica.is_cut_off or replica.is_damaged:
            yield f"{replica.partition}: {replica.why}"

    def _copy(self, place: str, segment: _FetchedSegment, done: Collected) -> None:
        read_at = self.run.now_ms()
        try:
            written = self.run.target.copy(place, segment, self._took)
        except BaseException:
            self.run.target.remove(place)
            raise
        shown = f"{self.shown}/{place.removeprefix(f'{self.place}/')}"
        _note(self.run, place, shown, segment.entry, written, segment.what_happened(), read_at, done)

    def _took(self, count: int) -> None:
        self.run.progress.advance(count)
        self.run.throttle.took(count)

    def _made(self, place: str, text: str, done: Collected) -> None:
        write_made(self.run, place, self.shown, [text.encode()], done)

    def _beside(self, replicas: Sequence[_Replica], done: Collected) -> Iterator[str]:
        """The epochs and the topic id of each replica; yields why there are no epochs."""
        keys = [(self.broker_id, replica.partition) for replica in replicas]
        starts = {key: replica.log_start_offset for key, replica in zip(keys, replicas, strict=True)}
        try:
            epochs = replica_epochs(self.wire, self.state, starts)
        except TooOld:
            epochs = {}
        except KctlError as error:
            epochs = {}
            yield f"epochs of broker {self.broker_id}: {error.message}"
        for key, replica in zip(keys, replicas, strict=True):
            folder = f"{self.place}/{replica.partition}"
            topic_id = self.state.topics[replica.partition.topic].topic_id
            if topic_id:
                metadata = format_partition_metadata(PartitionMetadata(0, topic_id))
                self._made(f"{folder}/{PARTITION_METADATA}", metadata, done)
            listed = epochs.get(key)
            if isinstance(listed, KctlError):
                yield f"epochs of {replica.partition}: {listed.message}"
            elif listed is not None:
                entries = (EpochEntry(*entry) for entry in listed if entry.start_offset <= replica.offset)
                self._made(f"{folder}/{LEADER_EPOCHS}", format_checkpoint(entries), done)

    def _checkpoints(self, replicas: Sequence[_Replica], done: Collected) -> None:
        """What is known of the high watermarks and log starts of the replicas."""
        watermarks = [OffsetEntry(*replica.partition, replica.offset) for replica in replicas]
        starts = [
            OffsetEntry(*replica.partition, replica.log_start_offset)
            for replica in replicas
            if replica.log_start_offset
        ]
        for name, entries in ((WATERMARKS, watermarks), (LOG_STARTS, starts)):
            self._made(f"{self.place}/{name}", format_checkpoint(entries), done)


def bounds(
    wire: Wire, state: ClusterState, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """The high watermark of each partition by its leader; those whose leader does not tell it are left out."""
    leaders = [(leader, tp) for tp in partitions if (leader := state.leader(tp)) is not None and leader >= 0]
    watermarks = list_offsets(wire, leaders, LATEST, replica_id=CONSUMER)
    return {tp: offset for (_, tp), offset in watermarks.items() if isinstance(offset, int)}
