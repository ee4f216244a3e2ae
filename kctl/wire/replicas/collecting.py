"""Replicas as files of a copy that `kctl collect` makes: the batches that each broker gives, byte for byte.

A broker gives a client no batch above its high watermark, and no other file of a partition folder; what its answers
tell of them is written as checkpoints. All replicas of a partition are read up to one offset, the high watermark of the
leader as the copy of the partition began, so that copies of brokers under load end alike.

Source: KIP-392 (followers answer Fetch, 2.4); core/src/main/scala/kafka/server/ReplicaManager.scala @ 2.4.1, 4.3.0
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from formats.log_dir.checkpoints import EpochEntry, OffsetEntry, format_checkpoint
from formats.log_dir.file_names import LEADER_EPOCHS, PARTITION_METADATA
from formats.log_dir.state_files import PartitionMetadata, format_partition_metadata
from formats.values import Struct, field, replace
from kctl.cluster.state import ClusterState
from kctl.collect.collection import Collected, Collection
from kctl.collect.headers_only import AS, HashedLog, digests_of, nothing, source_of
from kctl.collect.transport import FILE, Content, Entry, ReadFailed
from kctl.collect.writing import Written
from kctl.errors import KctlError
from kctl.evidence.manifest import DroppedLine, FileLine, PlannedLine, WholeLine
from kctl.model import TopicPartition
from kctl.wire.adapter import NoAnswer, TooOld, Wire
from kctl.wire.reading import read_partition_states
from kctl.wire.replicas.copying import MOST, whole_batches
from kctl.wire.replicas.epochs import Replica, replica_epochs
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
ATTEMPTS = 5  # of a partition that retention overtakes while it is read
AT_ONCE = 50  # partitions whose bounds are asked for together: retention goes on meanwhile
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
        # In front of the first batch of a compacted log others lay once: the segment begins where theirs did.
        base_offset = replica.offset
        if first:
            base_offset = min(base_offset, int.from_bytes(first[:8], "big", signed=True))
        self.entry = entry_now(f"{max(base_offset, 0):020d}.log")

    @property
    def partition(self) -> TopicPartition:
        """Whose batches they are."""
        return self._replica.partition

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
    begin: int
    offset: int
    """The next one to be read."""
    until: int | None
    """None: as far as the broker gives its log."""
    since_offset: int | None = None
    """Where the records of the time asked begin, if others lie before."""
    log_start_offset: int = 0
    log_end_offset: int | None = None
    why: str | None = None
    """Why it was not read up to the bound."""
    is_cut_off: bool = False
    """Whether there is more of it that would have been read."""
    is_damaged: bool = False
    is_deleted: bool = False
    """Whether retention deleted batches that were to come next."""
    places: list[tuple[str, int]] = field(default_factory=list)
    """The files that were written, with their sizes."""

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
        self.begin_at(
            start if isinstance(start, int) else self.offset,
            log_start if isinstance(log_start, int) else self.offset,
            self.since_offset,
        )

    def begin_at(self, start: int, log_start: int, since_offset: int | None) -> None:
        """Read from where the log begins, or from `since_offset`: then the log of the copy begins there."""
        self.since_offset = since_offset if since_offset is not None and since_offset > start else None
        self.begin = self.offset = start if self.since_offset is None else self.since_offset
        self.log_start_offset = max(log_start, self.since_offset or 0)

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
    done: Collected, source: Written | None = None,
) -> None:  # fmt: skip
    plain, keyed = digests_of(source, run.content_hash)
    run.manifest.add(
        FileLine(
            place, shown, written.size, written.sha256, entry.mode, entry.uid, entry.gid,
            entry.mtime_ns // 1_000_000, entry.mtime_ns, read_at, note,
            source and source.size, plain, AS if source else None, keyed,
        )
    )  # fmt: skip
    done.files += 1
    done.bytes += written.size


class BrokerPart(Struct):
    """What is copied of one broker: how its source is named, how the copy went, and the replicas that are whole."""

    broker_id: int
    shown: str
    done: Collected
    copied: list[_Replica] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Its folder in the copy."""
        return f"broker-{self.broker_id}/data"


class ReplicaCopies(Struct):
    """The copy of replicas: `run` is where it goes, `parts` the brokers by id."""

    run: Collection
    wire: Wire
    state: ClusterState
    parts: Mapping[int, BrokerPart]
    since_ms: int | None = None
    """The time before which records are left out."""

    def copy(self, partitions: Sequence[TopicPartition]) -> None:
        """Copy the replicas of partitions; what could not be copied is noted with each broker."""
        fetcher = Fetcher(self.wire, {name: topic.topic_id for name, topic in self.state.topics.items()})
        for tp in partitions:
            for part in self._holders(tp):
                self.run.manifest.add(PlannedLine(f"{part.place}/{tp}", fetched=True))
        self.run.manifest.flush()
        for at in range(0, len(partitions), AT_ONCE):
            for tp in self._chunk(fetcher, partitions[at : at + AT_ONCE]):
                for attempt in range(ATTEMPTS):
                    if not self._chunk(fetcher, [tp], is_last=attempt == ATTEMPTS - 1):
                        break
        for part in self.parts.values():
            if part.copied:
                self._checkpoints(part)

    def _holders(self, tp: TopicPartition) -> list[BrokerPart]:
        """The brokers that hold a partition and answer."""
        held = (self.parts.get(id) for id in self.state.replicas(tp) or ())
        return [part for part in held if part is not None and not part.done.is_lost]

    def _chunk(
        self, fetcher: Fetcher, partitions: Sequence[TopicPartition], *, is_last: bool = False
    ) -> list[TopicPartition]:
        """Copy some partitions; those whose first batches were deleted meanwhile come back, and are left out."""
        self._look_again(partitions)
        until = bounds(self.wire, self.state, partitions)
        since = self._since(partitions, until)
        for tp in partitions:
            if tp not in until and (self.state.leader(tp) or -1) >= 0:
                for part in self._holders(tp):
                    self._lacks(
                        part,
                        f"{tp}: its leader does not tell how far it is committed, so its copies may end apart",
                    )
        by_partition: dict[TopicPartition, list[_Replica]] = {tp: [] for tp in partitions}
        for part in self.parts.values():
            held = [tp for tp in partitions if part in self._holders(tp)]
            for replica in self._opened(fetcher, part, held, until, since):
                by_partition[replica.partition].append(replica)
        overtaken, whole = list[TopicPartition](), list[_Replica]()
        for tp, replicas in by_partition.items():
            for replica in replicas:
                self._segments(replica)
            behind = _overtaken(replicas)
            if behind and not is_last:
                overtaken.append(tp)
                self._drop(replicas)
                continue
            for replica in behind:
                replica.is_deleted = True
            for replica in replicas:
                part = self.parts[replica.broker_id]
                if replica.is_deleted:
                    replica.why = "its first batches were deleted each time that it was read"
                if replica.why and (replica.is_cut_off or replica.is_damaged or replica.is_deleted):
                    self._lacks(part, f"{tp}: {replica.why}")
                if not (replica.is_cut_off or replica.is_deleted):
                    whole.append(replica)
        for part in self.parts.values():
            self._finish(part, [replica for replica in whole if replica.broker_id == part.broker_id])
        return overtaken

    def _since(
        self, partitions: Sequence[TopicPartition], until: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        """Where the records of the time asked begin, by the leader: at the bound where there are none."""
        if self.since_ms is None:
            return {}
        keys = [
            (leader, tp) for tp in partitions if (leader := self.state.leader(tp)) is not None and leader >= 0
        ]
        offsets = list_offsets(self.wire, keys, self.since_ms, replica_id=CONSUMER)
        told = {tp: offset for (_, tp), offset in offsets.items() if isinstance(offset, int)}
        return {tp: until.get(tp, 0) if offset < 0 else offset for tp, offset in told.items()}

    def _look_again(self, partitions: Sequence[TopicPartition]) -> None:
        """Take note of leaders that were elected since, and of their epochs; what brokers do not tell stays as it was."""
        with suppress(KctlError):
            now = read_partition_states(self.wire, {tp.topic for tp in partitions})
            self.state = replace(self.state, partition_states={**self.state.partition_states, **now})

    def _opened(
        self, fetcher: Fetcher, part: BrokerPart, partitions: Sequence[TopicPartition],
        until: Mapping[TopicPartition, int], since: Mapping[TopicPartition, int],
    ) -> Iterator[_Replica]:  # fmt: skip
        """The replicas of a broker at their beginnings."""
        keys = [(part.broker_id, tp) for tp in partitions]
        begins, ends = local_starts(self.wire, keys), list_offsets(self.wire, keys, LATEST)
        starts = list_offsets(self.wire, keys, EARLIEST)
        for key in keys:
            begin, start, end, tp = begins[key], starts[key], ends[key], key[1]
            silent = next((answer for answer in (begin, start, end) if isinstance(answer, NoAnswer)), None)
            if silent is not None:
                self._lose(part, silent)
                return
            if isinstance(begin, KctlError):
                self._lacks(part, f"{tp}: {begin.message}")
                continue
            replica = _Replica(self.wire, fetcher, part.broker_id, tp, begin, begin, until.get(tp))
            replica.begin_at(begin, start if isinstance(start, int) else begin, since.get(tp))
            replica.log_end_offset = end if isinstance(end, int) else None
            yield replica

    def _segments(self, replica: _Replica) -> None:
        """Copy the segments of a replica; why they end early is noted there."""
        part = self.parts[replica.broker_id]
        if part.done.is_lost:
            replica.is_cut_off = True
            return
        try:
            for _ in range(ATTEMPTS):
                replica.is_deleted = not self._is_read(part, replica)
                if not replica.is_deleted:
                    break
                self._drop([replica])
                replica.start_again()
        except NoAnswer as error:
            replica.is_cut_off = True
            self._lose(part, error)
        except KctlError as error:
            replica.why, replica.is_cut_off = error.message, True
        except ReadFailed as error:
            replica.why, replica.is_cut_off = str(error), True

    def _is_read(self, part: BrokerPart, replica: _Replica) -> bool:
        """Copy a replica from its beginning; whether no batch of it was deleted before it came."""
        try:
            data = replica.fetch()
            while data or not replica.places:
                segment = _FetchedSegment(replica, data)
                place = f"{part.place}/{replica.partition}/{segment.entry.name}"
                replica.places.append((place, self._copy(part, place, segment)))
                data = replica.fetch()
        except _Deleted:
            return False
        return True

    def _copy(self, part: BrokerPart, place: str, segment: _FetchedSegment) -> int:
        read_at = self.run.now_ms()
        content: Content = segment
        if self.run.content_hash is not None:
            topic = segment.partition.topic
            content = HashedLog(segment, self._took, topic, self.run.content_hash)
        try:
            written = self.run.target.copy(place, content, nothing if content is not segment else self._took)
        except BaseException:
            self.run.target.remove(place)
            raise
        shown = f"{part.shown}/{place.removeprefix(f'{part.place}/')}"
        note, source = segment.what_happened(), source_of(content)
        _note(self.run, place, shown, segment.entry, written, note, read_at, part.done, source)
        return written.size

    def _took(self, count: int) -> None:
        self.run.progress.advance(count)
        self.run.throttle.took(count)

    def _drop(self, replicas: Sequence[_Replica]) -> None:
        """Take away what was copied of replicas that are read once more."""
        for replica in replicas:
            done = self.parts[replica.broker_id].done
            for place, size in replica.places:
                self.run.target.remove(place)
                self.run.manifest.add(DroppedLine(place))
                done.files, done.bytes = done.files - 1, done.bytes - size
            replica.places.clear()

    def _lacks(self, part: BrokerPart, why: str) -> None:
        self.run.lacks(part.done, part.place, part.shown, "a replica", why)

    def _lose(self, part: BrokerPart, error: KctlError) -> None:
        """Ask a broker no more: it does not answer."""
        part.done.incomplete, part.done.is_lost = error.message, True

    def _finish(self, part: BrokerPart, replicas: Sequence[_Replica]) -> None:
        """The epochs and the topic id of each replica; then it is whole."""
        keys = [(part.broker_id, replica.partition) for replica in replicas]
        starts = {key: replica.log_start_offset for key, replica in zip(keys, replicas, strict=True)}
        epochs: Mapping[Replica, list[EpochEntry] | KctlError] = {}
        if not part.done.is_lost:
            self._look_again([replica.partition for replica in replicas])  # no batch is of a later epoch
            with suppress(TooOld):
                epochs = replica_epochs(self.wire, self.state, starts)
        for key, replica in zip(keys, replicas, strict=True):
            folder = f"{part.place}/{replica.partition}"
            topic_id = self.state.topics[replica.partition.topic].topic_id
            if topic_id:
                metadata = format_partition_metadata(PartitionMetadata(0, topic_id))
                self._made(part, f"{folder}/{PARTITION_METADATA}", metadata)
            listed = epochs.get(key)
            if isinstance(listed, KctlError):
                self._lacks(part, f"epochs of {replica.partition}: {listed.message}")
            elif listed is not None:
                entries = (entry for entry in listed if entry.start_offset <= replica.offset)
                self._made(part, f"{folder}/{LEADER_EPOCHS}", format_checkpoint(entries))
            self.run.manifest.add(WholeLine(folder, replica.since_offset))
        self.run.manifest.flush()
        part.copied += replicas

    def _made(self, part: BrokerPart, place: str, text: str) -> None:
        write_made(self.run, place, part.shown, [text.encode()], part.done)

    def _checkpoints(self, part: BrokerPart) -> None:
        """What is known of the high watermarks and log starts of the replicas."""
        watermarks = [OffsetEntry(*replica.partition, replica.offset) for replica in part.copied]
        starts = [
            OffsetEntry(*replica.partition, replica.log_start_offset)
            for replica in part.copied
            if replica.log_start_offset
        ]
        for name, entries in ((WATERMARKS, watermarks), (LOG_STARTS, starts)):
            self._made(part, f"{part.place}/{name}", format_checkpoint(entries))


def _overtaken(replicas: Sequence[_Replica]) -> list[_Replica]:
    """The replicas of which retention deleted so much, as they were read, that they lack what others end with."""
    first = min((replica.begin for replica in replicas), default=0)
    return [
        replica
        for replica in replicas
        if replica.is_deleted or (replica.until is not None and first < replica.until <= replica.begin)
    ]


def bounds(
    wire: Wire, state: ClusterState, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """The high watermark of each partition by its leader; those whose leader does not tell it are left out."""
    leaders = [(leader, tp) for tp in partitions if (leader := state.leader(tp)) is not None and leader >= 0]
    watermarks = list_offsets(wire, leaders, LATEST, replica_id=CONSUMER)
    return {tp: offset for (_, tp), offset in watermarks.items() if isinstance(offset, int)}
