"""Copies of replicas: whose they are, and what the checkpoints of their log directory say about them.

A checkpoint entry is as old as its file's last writing: a high watermark up to five seconds, a recovery point
and a log start up to a minute. Of several entries for one partition Kafka keeps the last.

Source: core/src/main/scala/kafka/server/ReplicaManager.scala, core/src/main/scala/kafka/log/LogManager.scala @ 2.8.2
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from formats.checkpoints import parse_leader_epochs, parse_offset_checkpoint
from formats.errors import FormatError
from formats.log_dir_files import LEADER_EPOCHS, FolderKind
from kctl.evidence.model import Evidence, Replica
from kctl.findings import Place
from kctl.model import TopicPartition
from kctl.replication.epochs import Entries

CHECKPOINTS = {
    "high_watermark": "replication-offset-checkpoint",
    "recovery_point": "recovery-point-offset-checkpoint",
    "log_start": "log-start-offset-checkpoint",
    "cleaner": "cleaner-offset-checkpoint",
}
Offsets = dict[tuple[str, int], int]


@dataclass
class Checkpoints:
    """The offset checkpoints of log directories, each read once; one that cannot be read counts as empty."""

    _read: dict[Path, Offsets] = field(default_factory=dict)

    def marks_of(self, replica: Replica) -> dict[str, int]:
        """The entries of a replica's partition; what has none is left out."""
        found = {}
        for what, name in CHECKPOINTS.items():
            path = replica.log_dir.path / name
            if path not in self._read:
                self._read[path] = _read_offsets(path)
            offset = self._read[path].get((replica.topic, replica.partition))
            if offset is not None:
                found[what] = offset
        return found


def _read_offsets(path: Path) -> Offsets:
    try:
        entries = parse_offset_checkpoint(path.read_text("utf-8", "replace"))
    except (OSError, FormatError):
        return {}
    return {(entry.topic, entry.partition): entry.offset for entry in entries}


@dataclass(frozen=True)
class Copy:
    """One replica of one broker at one moment."""

    replica: Replica
    broker_id: int
    place: Place
    marks: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    """What the checkpoints of its log directory say about it, by the keys of CHECKPOINTS."""

    @property
    def partition(self) -> TopicPartition:
        """Which partition it is a replica of."""
        return self.replica.topic_partition

    @property
    def moment(self) -> str | None:
        """The moment it was taken at; None where there is one only."""
        return self.replica.moment

    @property
    def folder(self) -> Path:
        """Where its segments are."""
        return self.replica.folder

    @property
    def who(self) -> str:
        """The copy in words."""
        at = f" at moment {self.moment!r}" if self.moment else ""
        return f"broker {self.broker_id}{at}"

    def checkpoint(self, what: str) -> int | None:
        """What a checkpoint of its log directory says about it."""
        return self.marks.get(what)

    @cached_property
    def recorded_epochs(self) -> Entries | None:
        """The entries of `leader-epoch-checkpoint` as they stand; None without a file that can be read."""
        try:
            text = (self.folder / LEADER_EPOCHS).read_text("utf-8", "replace")
            return tuple((entry.epoch, entry.start_offset) for entry in parse_leader_epochs(text))
        except (OSError, FormatError):
            return None


Moment = str | None
ByMoment = dict[Moment, dict[int, Copy]]


def copies_of(evidence: Evidence, topics: Iterable[str] = ()) -> dict[TopicPartition, ByMoment]:
    """The live copies of each partition by moment and broker; those whose broker nobody knows are left out."""
    wanted = frozenset(topics)
    checkpoints = Checkpoints()
    found: dict[TopicPartition, ByMoment] = {}
    for replica in evidence.replicas:
        if replica.kind is not FolderKind.LIVE or replica.broker_id is None:
            continue
        if wanted and replica.topic not in wanted:
            continue
        place = evidence.place_of(replica.folder, replica.log_dir.root)
        place = Place(
            broker_id=replica.broker_id,
            topic=replica.topic,
            partition=replica.partition,
            file=place.file,
            evidence=place.evidence,
            moment=replica.moment,
        )
        copy = Copy(replica, replica.broker_id, place, checkpoints.marks_of(replica))
        by_broker = found.setdefault(copy.partition, {}).setdefault(copy.moment, {})
        by_broker.setdefault(copy.broker_id, copy)
    return dict(sorted(found.items()))
