"""Evidence as values: which files and folders, of which broker, from which moment.

Only names and the small identity files of log directories are read. `moment` is None if the evidence holds one
moment only; `broker_id` is None if it is unknown.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError
from formats.log_dir.file_names import PARTITION_METADATA, FolderKind
from formats.log_dir.state_files import parse_partition_metadata
from formats.values import Struct, replace
from kctl.errors import KctlError
from kctl.files import read_lenient
from kctl.findings import Finding, Place
from kctl.findings.evidence import UNREADABLE
from kctl.model import TopicPartition

Arriving = Callable[[], Iterator[Path]]


class BrokerLogKind(StrEnum):
    """Which of a broker's text logs a file is."""

    STATE_CHANGE = "state-change"
    CONTROLLER = "controller"
    SERVER = "server"
    LOG_CLEANER = "log-cleaner"
    STDOUT = "stdout"  # known by what it holds: captured output, which repeats the other logs of its broker


class Root(Struct, frozen=True):
    """A path of the command line: as it was given, and where it is."""

    given_path: str
    path: Path
    is_folder: bool


class LogDir(Struct, frozen=True):
    """One entry of a broker's `log.dirs`.

    `is_marked` is False if it holds partition folders alone, so that checkpoints were never copied.
    `is_fetched`: the batches were fetched from a broker, and the other files were made from its answers.
    `is_whole` is False if the command line named only a partition folder in it.
    """

    path: Path
    root: Root
    broker_id: int | None = None
    moment: str | None = None
    cluster_id: str | None = None
    directory_id: str | None = None
    is_kraft: bool = False
    is_marked: bool = True
    is_whole: bool = True
    is_fetched: bool = False
    is_clean: bool = False
    files: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Replica:
    """One partition folder of one broker at one moment.

    `arriving` is set if the log is copied from a running cluster while it is read: it gives the segments by base
    offset, each of them in `folder` until the next one is requested. It can be called again.
    """

    topic: str
    partition: int
    kind: FolderKind
    folder: Path
    log_dir: LogDir
    arriving: Arriving | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def broker_id(self) -> int | None:
        """The broker whose copy this is."""
        return self.log_dir.broker_id

    @property
    def moment(self) -> str | None:
        """The moment that the copy is from."""
        return self.log_dir.moment

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that this is a replica of."""
        return TopicPartition(self.topic, self.partition)

    @cached_property
    def topic_id(self) -> str | None:
        """The id in `partition.metadata`; None before 2.8 and where the file cannot be read."""
        try:
            text = read_lenient(self.folder / PARTITION_METADATA)
            return parse_partition_metadata(text).topic_id
        except (OSError, FormatError):
            return None


class BrokerLog(Struct, frozen=True):
    """A text log that a broker wrote; rotated and compressed parts are files of their own."""

    path: Path
    root: Root
    kind: BrokerLogKind
    broker_id: int | None = None
    moment: str | None = None


class Tier(Struct, frozen=True):
    """The root folder of a tier as LocalTieredStorage lays it out."""

    path: Path
    root: Root
    moment: str | None = None


class ZnodeExport(Struct, frozen=True):
    """A file with every znode of a cluster, one JSON object a line."""

    path: Path
    root: Root
    moment: str | None = None


class ToldCluster(Struct, frozen=True):
    """A file with what brokers told of their cluster, one JSON object a line: rows of its topics and partitions."""

    path: Path
    root: Root
    moment: str | None = None


class LackingDir(NamedTuple):
    """A directory that the `log.dirs` of a broker lists, and of which the evidence has no copy."""

    broker_id: int | None
    moment: str | None
    path: str


class Unopened(NamedTuple):
    """Where more evidence may lie, why it was not examined, and how to get it."""

    path: str
    why: str = "could not be opened"
    get: str = "give kctl a copy that it can read"


class LogLeft(NamedTuple):
    """A log of several brokers, or of no known one, which is not read beside others."""

    path: Path
    root: Root
    brokers: frozenset[int]
    """Those that its start names."""


class FoundEvidence(Struct, frozen=True, dict=True):
    """Everything found below the paths given. `failures` are about paths that were named and cannot be opened."""

    roots: tuple[Root, ...]
    log_dirs: tuple[LogDir, ...]
    replicas: tuple[Replica, ...]
    broker_logs: tuple[BrokerLog, ...]
    tiers: tuple[Tier, ...]
    znode_exports: tuple[ZnodeExport, ...]
    # Files that were named on the command line and are neither broker logs nor znode exports.
    files: tuple[tuple[Path, Root], ...]
    # Folders with segments whose names are no topic-partition, such as a copy called `copied`.
    loose_folders: tuple[tuple[Path, LogDir], ...]
    findings: tuple[Finding, ...]
    failures: tuple[KctlError, ...]
    told: tuple[ToldCluster, ...] = ()
    # Files that were named, have none of Kafka's names and hold no batch: broker logs perhaps.
    unnamed_files: tuple[tuple[Path, Root], ...] = ()
    logs_left: tuple[LogLeft, ...] = ()
    given_moments: tuple[str, ...] = ()
    # Partition folders that `kctl collect` copied in part: they are no replicas; and sources that it did not reach.
    cut_off: tuple[Replica, ...] = ()
    unreached: tuple[str, ...] = ()
    # Files and folders below that might not be read as a copy was made, with the reason.
    unread: tuple[tuple[Path, str], ...] = ()
    begun_later: tuple[tuple[Path, int], ...] = ()
    """Partition folders of copies, and the offset before which records were not asked for (`collect --since`)."""
    hashed: tuple[Path, ...] = ()
    """Manifests of copies with hashes in the place of contents of records."""
    clock_offsets: tuple[tuple[int, int], ...] = ()
    """By broker how far its clock was ahead of that of the machine that copied its files, in milliseconds."""
    order_of: Callable[[FoundEvidence], tuple[str, ...]] = lambda evidence: ()
    lacking_of: Callable[[FoundEvidence], tuple[LackingDir, ...]] = lambda evidence: ()

    @cached_property
    def moments(self) -> tuple[str, ...]:
        """Names of the moments, oldest first; empty where there is only one. Reads znode exports or batches."""
        return self.order_of(self)

    def is_beside(self, moment: str | None, other: str | None) -> bool:
        """Whether files of `moment` count for `other`: it is the same one, or they are of none and `other` is the last."""
        return moment == other or (moment is None and other == (self.moments or (None,))[-1])

    @property
    def unopened(self) -> tuple[str, ...]:
        """Paths that could not be opened, below which more evidence may lie."""
        named = [failure.message.split(": ", 1)[0] for failure in self.failures]
        below = [
            f.place.file or "" for f in self.findings if f.code == UNREADABLE.code and f.place.topic is None
        ]
        return tuple(dict.fromkeys([*named, *below, *self.unreached]))

    @cached_property
    def lacking_dirs(self) -> tuple[LackingDir, ...]:
        """Log directories of brokers that are not in the evidence. Reads settings."""
        return self.lacking_of(self)

    def unopened_for(self, partition: TopicPartition) -> tuple[Unopened, ...]:
        """The same, with the folders of a partition that were copied in part, and directories in which a copy may lie."""
        folders = (str(cut.folder) for cut in self.cut_off if cut.topic_partition == partition)
        known = map(Unopened, (*self.unopened, *folders))
        if not self.lacking_dirs:
            return tuple(known)
        holders = {(r.broker_id, r.moment) for r in self.replicas if r.topic_partition == partition}
        lacking = (
            Unopened(
                f"{path} of broker {broker_id}",
                "is not in the evidence",
                f"kctl collect --to more ssh://BROKER{broker_id}{path}",
            )
            for broker_id, moment, path in self.lacking_dirs
            if (broker_id, moment) not in holders
        )
        return (*known, *lacking)

    def was_cut_off(self, partition: TopicPartition, broker_id: int | None) -> bool:
        """Whether the copy of a partition that a broker has was cut off."""
        return any(r.broker_id == broker_id and r.topic_partition == partition for r in self.cut_off)

    def replica_brokers(self, *moments: str | None) -> frozenset[int]:
        """The brokers that hold replicas of these moments, of all without any; a controller's metadata log is none."""
        pairs = self._replica_brokers
        return frozenset(broker_id for moment, broker_id in pairs if not moments or moment in moments)

    @cached_property
    def _replica_brokers(self) -> frozenset[tuple[str | None, int]]:
        return frozenset(
            (replica.moment, replica.broker_id)
            for replica in self.replicas
            if replica.broker_id is not None and replica.topic != "__cluster_metadata"
        )

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The brokers whose log directories or logs these are, ascending."""
        ids = {log_dir.broker_id for log_dir in self.log_dirs} | {log.broker_id for log in self.broker_logs}
        return tuple(sorted(i for i in ids if i is not None))

    def place_of(self, path: Path, root: Root) -> Place:
        """Where a file is, as rows say it: relative to the folder given, which is named where several were."""
        # Two partitions of one log directory may be given.
        if root.is_folder and not path.is_relative_to(root.path):
            below = (
                candidate
                for candidate in self.roots
                if candidate.is_folder and path.is_relative_to(candidate.path)
            )
            root = next(below, root)
        return Place(
            file=encodable(relative(path, root)),
            evidence=encodable(root.given_path) if len(self.roots) > 1 else None,
        )

    def with_arriving(self, arriving: Mapping[Path, Arriving]) -> FoundEvidence:
        """This evidence with `arriving` set for replicas in these folders."""
        if not arriving:
            return self
        return replace(
            self,
            replicas=tuple(
                dataclasses.replace(r, arriving=arriving.get(r.folder, r.arriving)) for r in self.replicas
            ),
        )

    def replicas_of(self, broker_id: int, moment: str | None) -> Iterator[Replica]:
        """The replicas of one broker at one moment."""
        return (r for r in self.replicas if r.broker_id == broker_id and r.moment == moment)


def relative(path: Path, root: Root) -> str:
    """The path below the folder given; the path as given where a file was named."""
    return os.path.relpath(path, root.path) if root.is_folder else root.given_path


def encodable(text: str) -> str:
    r"""A name as text that can be encoded: bytes that are no UTF-8 as \xNN."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
