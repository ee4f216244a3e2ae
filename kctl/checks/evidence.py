"""The folders and files of the evidence to check, and checks over several of them."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from formats.log_dir.file_names import REMOTE_INDEX_CACHE
from formats.values import Struct, field, replace
from kctl.checks.directory import (
    CLEANER,
    LOG_START,
    RECOVERY_POINT,
    Checkpoints,
    check_directory,
    read_checkpoints,
)
from kctl.checks.indexes import check_index_cache
from kctl.checks.replica import COMPACTED
from kctl.checks.report import CheckOptions, LogFacts, ReplicaTask, Report
from kctl.evidence.alive import Registered
from kctl.evidence.model import FoundEvidence, LogDir, Replica
from kctl.findings import Finding, Place
from kctl.findings import directories as codes
from kctl.model import TopicPartition


class DirectoryCheck(Struct):
    """A log directory under examination: its checkpoints are read first, its partitions are added one by one."""

    log_dir: LogDir
    checkpoints: Checkpoints
    has_time_indexes: bool = False
    has_run: Callable[[], bool | None] = lambda: None
    logs: dict[TopicPartition, LogFacts] = field(default_factory=dict)

    def finish(self) -> Report:
        """The report on the directory's own files, after its last partition."""
        if self.log_dir.is_whole:
            check_directory(self.checkpoints, self.logs, self.has_run, self.log_dir.is_clean)
        return self.checkpoints.report

    def index_cache(self, evidence: FoundEvidence, options: CheckOptions) -> Report:
        """The report on the broker's copies of remote indexes."""
        folder = self.log_dir.path / REMOTE_INDEX_CACHE
        if not self.log_dir.is_whole or not folder.is_dir():
            return Report()
        place = evidence.place_of(folder, self.log_dir.root)
        place = replace(place, broker_id=self.log_dir.broker_id, moment=self.log_dir.moment)
        return check_index_cache(folder, place, options)


def open_directory(
    log_dir: LogDir, evidence: FoundEvidence, options: CheckOptions, registered: Registered | None = None
) -> DirectoryCheck:
    """Read the checkpoints of a log directory.

    Of a directory of which one partition folder was given the checkpoints are read too, to know the
    partition's recovery point, but nothing is said about them.
    """
    inside = log_dir.path.is_relative_to(log_dir.root.path)
    place = evidence.place_of(log_dir.path, log_dir.root) if inside else Place()
    place = replace(place, broker_id=log_dir.broker_id, moment=log_dir.moment)
    folders = [replica.folder for replica in evidence.replicas if replica.log_dir is log_dir]
    has_time = any(map(_has_time_index, folders[:LOOKED_AT]))
    checkpoints = read_checkpoints(log_dir, place, options)
    if registered is None:
        return DirectoryCheck(log_dir, checkpoints, has_time)
    has_run = partial(registered.ran, log_dir.broker_id, log_dir.moment)
    return DirectoryCheck(log_dir, checkpoints, has_time, has_run)


def cleaned_topics(directories: Iterable[DirectoryCheck]) -> frozenset[str]:
    """The topics that a cleaner of any of the brokers has compacted."""
    entries = (directory.checkpoints.entries.get(CLEANER, {}) for directory in directories)
    return frozenset(partition.topic for offsets in entries for partition in offsets)


LOOKED_AT = 20  # partition folders that tell whether the broker writes time indexes


def _has_time_index(folder: Path) -> bool:
    try:
        return any(name.endswith(".timeindex") for name in os.listdir(folder))
    except OSError:
        return False


def task_of(
    replica: Replica, directory: DirectoryCheck, evidence: FoundEvidence, options: CheckOptions
) -> ReplicaTask:
    """The task of checking one partition folder."""
    log_dir, partition = replica.log_dir, replica.topic_partition
    checkpoints = directory.checkpoints
    is_compacted = replica.topic in options.compacted or replica.topic in COMPACTED
    is_compacted = is_compacted or checkpoints.get(CLEANER, partition) is not None
    place = replace(
        evidence.place_of(replica.folder, log_dir.root),
        broker_id=replica.broker_id,
        topic=replica.topic,
        partition=replica.partition,
        moment=replica.moment,
    )
    return ReplicaTask(
        folder=replica.folder,
        place=place,
        kind=replica.kind,
        is_clean=log_dir.is_clean,
        is_marked=log_dir.is_marked,
        is_fetched=log_dir.is_fetched,
        recovery_point=checkpoints.get(RECOVERY_POINT, partition) or 0,
        log_start_offset=checkpoints.get(LOG_START, partition) or 0,
        # A cleaner that ran has left an entry; without the file nobody knows.
        is_compacted=True if is_compacted else False if CLEANER in checkpoints.entries else None,
        has_time_indexes=directory.has_time_indexes,
    )


def loose_task(folder: Path, log_dir: LogDir, evidence: FoundEvidence) -> ReplicaTask:
    """The task of checking a folder with segments whose name is no topic-partition."""
    place = evidence.place_of(folder, log_dir.root)
    return ReplicaTask(
        folder=folder, place=replace(place, broker_id=log_dir.broker_id, moment=log_dir.moment)
    )


def topic_id_findings(topic_ids: Iterable[tuple[Place, str]]) -> Iterator[Finding]:
    """A finding for each folder whose topic id is not the one that most folders of the topic have."""
    by_topic: dict[tuple[str | None, str | None], list[tuple[Place, str]]] = defaultdict(list)
    for place, topic_id in topic_ids:
        by_topic[place.topic, place.moment].append((place, topic_id))
    for (topic, _), folders in by_topic.items():
        ids = Counter(topic_id for _, topic_id in folders)
        usual = ids.most_common(1)[0][0]
        for place, topic_id in folders:
            if topic_id != usual:
                yield codes.TOPIC_ID_DIFFERS.at(
                    place, severity=None, topic=topic or "", topic_id=topic_id, other=usual
                )
