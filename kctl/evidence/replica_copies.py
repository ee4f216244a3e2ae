"""Copies of replicas: their broker, and their entries in the checkpoints of the log directory.

A checkpoint entry is as old as the last write of its file: a high watermark up to five seconds, a recovery point
and a log start up to a minute. Of several entries for one partition Kafka keeps the last.

Source: core/src/main/scala/kafka/server/ReplicaManager.scala, core/src/main/scala/kafka/log/LogManager.scala @ 2.8.2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.log_dir.checkpoints import parse_leader_epochs, parse_offset_checkpoint
from formats.log_dir.file_names import LEADER_EPOCHS, FolderKind
from formats.values import replace
from kctl.errors import Refused, reason_of
from kctl.evidence.model import FoundEvidence, LogDir, Replica
from kctl.files import read_lenient
from kctl.findings import Place
from kctl.model import TopicPartition
from kctl.replication.epochs import Entries

if TYPE_CHECKING:
    from kctl.scan.noted import Noted, ScanNotes

CHECKPOINTS = {
    "high_watermark": "replication-offset-checkpoint",
    "recovery_point": "recovery-point-offset-checkpoint",
    "log_start": "log-start-offset-checkpoint",
    "cleaner": "cleaner-offset-checkpoint",
}
NOBODY = -1
"""The broker id of a copy whose broker is unknown."""


@dataclass(frozen=True)
class Copy:
    """One replica of one broker at one moment."""

    replica: Replica
    broker_id: int
    place: Place
    marks: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    """Its offsets in the checkpoints of its log directory, by the keys of CHECKPOINTS."""
    marks_problem: str | None = field(default=None, repr=False, compare=False)
    """Why the high watermarks of its log directory cannot be read; None where they can, or there is no such file."""
    noted: Noted = field(default_factory=dict, repr=False, compare=False)
    """Headers of its logs that were read before."""

    @property
    def partition(self) -> TopicPartition:
        return self.replica.topic_partition

    @property
    def moment(self) -> str | None:
        """The moment at which it was taken; None if the evidence has only one."""
        return self.replica.moment

    @property
    def folder(self) -> Path:
        return self.replica.folder

    @property
    def who(self) -> str:
        """The copy in words: `broker 1 at moment 'before'`."""
        at = f" at moment {self.moment!r}" if self.moment else ""
        folder = "" if self.replica.kind is FolderKind.LIVE else f", folder {self.folder.name}"
        return f"broker {self.broker_id}{at}{folder}"

    def checkpoint(self, what: str) -> int | None:
        """Its offset in a checkpoint of its log directory; None without an entry."""
        return self.marks.get(what)

    @property
    def was_never_cleaned(self) -> bool:
        """Whether its broker has a cleaner checkpoint without an entry for it."""
        return CHECKPOINTS["cleaner"] in self.replica.log_dir.files and "cleaner" not in self.marks

    @property
    def recorded_epochs(self) -> Entries | None:
        """The entries of `leader-epoch-checkpoint` as written; None without a file that a broker would accept."""
        return self._epochs[0]

    @property
    def epochs_problem(self) -> str | None:
        """Why `leader-epoch-checkpoint` cannot be read; None if it can be read or does not exist."""
        return self._epochs[1]

    @cached_property
    def _epochs(self) -> tuple[Entries | None, str | None]:
        try:
            text = read_lenient(self.folder / LEADER_EPOCHS, MOST_OF_EPOCHS)
            entries = tuple((entry.epoch, entry.start_offset) for entry in parse_leader_epochs(text))
        except FileNotFoundError:
            return None, None
        except (OSError, FormatError) as error:
            return None, f"{LEADER_EPOCHS} cannot be read: {reason_of(error)}"
        return (entries if all(min(entry) >= 0 for entry in entries) else None), None


MOST_OF_EPOCHS = 4 << 20
"""Bytes of a leader epoch checkpoint: about 300,000 entries, more than any partition has."""

Offsets = dict[tuple[str, int], int]
Moment = str | None
ByMoment = dict[Moment, dict[int, Copy]]


def place_of_replica(evidence: FoundEvidence, replica: Replica) -> Place:
    """Where a partition folder lies, and whose it is."""
    return replace(
        evidence.place_of(replica.folder, replica.log_dir.root),
        broker_id=replica.broker_id,
        topic=replica.topic,
        partition=replica.partition,
        moment=replica.moment,
    )


def live_copies(
    evidence: FoundEvidence, topics: Iterable[str] = (), notes: ScanNotes | None = None
) -> Iterator[Copy]:
    """Every live replica folder of these topics (all topics if none is given), in the order of the evidence.

    `notes` are of logs that were read before.
    """
    noted = notes.by_folder() if notes else {}
    selected, offsets_of = frozenset(topics), cache(_checkpoints_in)
    for replica in evidence.replicas:
        if replica.kind is not FolderKind.LIVE or (selected and replica.topic not in selected):
            continue
        place = place_of_replica(evidence, replica)
        offsets = offsets_of(replica.log_dir.path)
        key = replica.topic, replica.partition
        marks = {
            what: by_partition[key] for what, (by_partition, _) in offsets.items() if key in by_partition
        }
        problem = offsets["high_watermark"][1]
        broker_id = NOBODY if replica.broker_id is None else replica.broker_id
        yield Copy(replica, broker_id, place, marks, problem, noted.get(replica.folder, {}))


def partitions_in(log_dir: LogDir) -> set[TopicPartition]:
    """The partitions that the checkpoints of a log directory name."""
    names = (CHECKPOINTS[what] for what in ("high_watermark", "recovery_point"))
    return {TopicPartition(*named) for name in names for named in _read_checkpoint(log_dir.path / name)[0]}


def _checkpoints_in(log_dir: Path) -> dict[str, tuple[Offsets, str | None]]:
    """What `_read_checkpoint` says of each checkpoint of a log directory, by the keys of CHECKPOINTS."""
    return {what: _read_checkpoint(log_dir / name) for what, name in CHECKPOINTS.items()}


def _read_checkpoint(path: Path) -> tuple[Offsets, str | None]:
    """The offsets of a checkpoint by topic and partition, and why it cannot be read (then there are no offsets)."""
    try:
        entries = parse_offset_checkpoint(read_lenient(path))
    except FileNotFoundError:
        return {}, None
    except (OSError, FormatError) as error:
        return {}, f"{path.name} cannot be read: {reason_of(error)}"
    return {(entry.topic, entry.partition): entry.offset for entry in entries}, None


def every_copy(evidence: FoundEvidence, topics: Iterable[str] = ()) -> list[Copy]:
    """Every live replica folder, sorted by partition, moment and broker; also those of unknown brokers."""
    copies = list(live_copies(evidence, topics))
    order = {name: place for place, name in enumerate(evidence.moments)} if copies else {}
    return sorted(
        copies, key=lambda c: (c.partition, order.get(c.moment or "", -1), c.broker_id, str(c.folder))
    )


def copies_of(
    evidence: FoundEvidence, topics: Iterable[str] = (), notes: ScanNotes | None = None
) -> dict[TopicPartition, ByMoment]:
    """The live copies of each partition by moment and broker, without those of unknown brokers.

    Raises Refused where the same contents are other bytes in some of them.
    """
    if evidence.hashed:
        _refuse_other_keys(evidence)
    by_partition: dict[TopicPartition, ByMoment] = {}
    for copy in live_copies(evidence, topics, notes):
        if copy.broker_id != NOBODY:
            by_moment = by_partition.setdefault(copy.partition, {})
            by_moment.setdefault(copy.moment, {}).setdefault(copy.broker_id, copy)
    return dict(sorted(by_partition.items()))


def _refuse_other_keys(evidence: FoundEvidence) -> None:
    """Refuse copies whose contents were replaced by several keys, or in some of them alone: none would be equal."""
    from kctl.evidence.manifest import hash_key_id_of

    keys = {path.parent: hash_key_id_of(path) for path in evidence.hashed}
    without = [d.path for d in evidence.log_dirs if not any(map(d.path.is_relative_to, keys))]
    if len({*keys.values()}) + bool(without) > 1:
        other = without[0] if without else list(keys)[-1]
        raise Refused(
            f"contents of {next(iter(keys))} were replaced by a key (`kctl collect --headers`), those of {other} were not by the same",
            "examine them apart, or collect all of them by one --hash-key",
        )
