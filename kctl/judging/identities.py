"""Identities of log directories held against what ZooKeeper, the metadata log and text logs state, and each other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError
from formats.log_dir.checkpoints import parse_leader_epochs
from formats.log_dir.file_names import BOOTSTRAP_CHECKPOINT, FolderKind
from kctl.cluster.feature_levels import LEVELS, METADATA_VERSION
from kctl.cluster.versions import parse_version
from kctl.copies.aside import held_batches
from kctl.copies.moments import Znodes
from kctl.evidence.broker_logs import own_broker_id
from kctl.evidence.model import BrokerLog, FoundEvidence, LogDir, Replica
from kctl.evidence.replica_copies import NOBODY, Copy
from kctl.evidence.settings import settings_in
from kctl.files import read_lenient
from kctl.findings import Finding, Place
from kctl.findings import identities as codes
from kctl.identities.of_folders import MOST_NAMED, meta, numbers, place_in, shown
from kctl.identities.owners import has_owners
from kctl.identities.statements import (
    LoggedIds,
    MetadataLog,
    cluster_id_of,
    logged_ids,
    metadata_logs,
    quorum_voters,
)
from kctl.internal_topics.cluster_image import CLUSTER_METADATA
from kctl.log_dir_start.bootstrap import levels_in
from kctl.model import TopicPartition

LEADER_EPOCHS = "leader-epoch-checkpoint"
WRITTEN = re.compile(r"^#\w{3} (\w{3}) (\d\d) (\d\d:\d\d:\d\d) \S+ (\d{4})\s*$", re.MULTILINE)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def cluster_findings(evidence: FoundEvidence, clusters: Mapping[str | None, Znodes]) -> Iterator[Finding]:
    """A finding for each identity of a log directory that the cluster's metadata, a text log or another disk contradicts.

    `clusters` has what znodes or the metadata log say at each moment.
    """
    logs = {log.log_dir.moment: log for log in metadata_logs(evidence)}
    yield from _cluster_ids(evidence)
    yield from _ids_of_logs(evidence)
    yield from _of_text_logs(evidence, logs)
    for moment, cluster in clusters.items():
        yield from _topic_ids(evidence, moment, cluster)
        yield from _under_other_brokers(evidence, moment, cluster)
    for log in logs.values():
        yield from _voters(evidence, log)
        yield from _configured_voters(evidence, log)
        yield from _registered_directories(evidence, log)
    yield from _two_hosts(evidence)
    yield from _stray_folders(evidence)


def _cluster_ids(evidence: FoundEvidence) -> Iterator[Finding]:
    for export in evidence.znode_exports:
        cluster_id = cluster_id_of(export)
        if cluster_id is None:
            continue
        for log_dir in evidence.log_dirs:
            if evidence.is_beside(export.moment, log_dir.moment) and log_dir.cluster_id not in (
                None,
                cluster_id,
            ):
                yield codes.CLUSTER_ID_DIFFERS.at(
                    place_in(evidence, meta(log_dir), log_dir), value=log_dir.cluster_id, other=cluster_id,
                    source=shown(evidence, meta(log_dir), log_dir.root),
                    other_source=f"znode /cluster/id of {shown(evidence, export.path, export.root)}",
                )  # fmt: skip


def _ids_of_logs(evidence: FoundEvidence) -> Iterator[Finding]:
    """Folders in which all logs are of one broker, and all log directories of another."""
    dirs_below: dict[Path, list[LogDir]] = defaultdict(list)
    for log_dir in evidence.log_dirs:
        if log_dir.broker_id is not None:
            for folder in log_dir.path.parents:
                dirs_below[folder].append(log_dir)
    logs_below: dict[Path, list[BrokerLog]] = defaultdict(list)
    for log in evidence.broker_logs:
        nearest = next((folder for folder in log.path.parents if folder in dirs_below), None)
        if nearest is not None:
            logs_below[nearest].append(log)
    for folder, logs in logs_below.items():
        ids, dirs = {log.broker_id for log in logs}, dirs_below[folder]
        stored = {log_dir.broker_id for log_dir in dirs}
        if len(ids) == len(stored) == 1 and ids != stored and {own_broker_id(log) for log in logs[:1]} == ids:
            yield codes.BROKER_ID_OF_LOGS_DIFFERS.at(
                evidence.place_of(logs[0].path, logs[0].root), value=logs[0].broker_id, other=dirs[0].broker_id,
                source=shown(evidence, logs[0].path, logs[0].root), other_source=shown(evidence, dirs[0].path, dirs[0].root),
            )  # fmt: skip


def _of_text_logs(evidence: FoundEvidence, logs: Mapping[str | None, MetadataLog]) -> Iterator[Finding]:
    for log in evidence.broker_logs:
        if log.kind not in ("server", "stdout"):
            continue
        ids, source = logged_ids(log), shown(evidence, log.path, log.root)
        place = evidence.place_of(log.path, log.root)
        for log_dir in evidence.log_dirs:
            is_own = log_dir.broker_id is not None and log_dir.broker_id == log.broker_id
            if not is_own or not evidence.is_beside(log.moment, log_dir.moment):
                continue
            if ids.cluster_id and log_dir.cluster_id not in (None, ids.cluster_id):
                yield codes.CLUSTER_ID_DIFFERS.at(
                    place, value=ids.cluster_id, other=log_dir.cluster_id, source=source,
                    other_source=shown(evidence, meta(log_dir), log_dir.root),
                )  # fmt: skip
        of_moment = (logs[moment] for moment in logs if evidence.is_beside(log.moment, moment))
        yield from _newer_metadata(evidence, log, ids, next(of_moment, None))
        if ids.is_denied and not any(has_owners(log_dir) for log_dir in evidence.log_dirs):
            yield codes.OWNERS_NOT_COPIED.at(place, source=source)


def _newer_metadata(
    evidence: FoundEvidence, log: BrokerLog, ids: LoggedIds, metadata: MetadataLog | None
) -> Iterator[Finding]:
    """A metadata version that the software of a log does not know: it refused it, or was started after it was set."""
    level, proof = ids.refused_level, "it refused the version"
    if level is None and ids.version and ids.version_at and metadata:
        is_later = ids.version_at.timestamp() * 1000 > metadata.level_ms >= 0
        level = metadata.image.features.get(METADATA_VERSION) if is_later else None
        proof = f"it was started as Kafka {ids.version} after the version was set"
    known = next((known for known in LEVELS[METADATA_VERSION] if known.level == level), None)
    since = known.release.partition("-")[0] if known else ""
    if known and (
        ids.refused_level is not None or (ids.version and parse_version(ids.version) < parse_version(since))
    ):
        yield codes.NEWER_METADATA.at(
            evidence.place_of(log.path, log.root), value=known.level, name=known.release, since=since, proof=proof,
            source=shown(evidence, log.path, log.root),
            other_source=_place_of_level(evidence, log, known.level, metadata),
        )  # fmt: skip


def _place_of_level(evidence: FoundEvidence, log: BrokerLog, level: int, metadata: MetadataLog | None) -> str:
    """Where a metadata version is written, in words."""
    for log_dir in evidence.log_dirs:
        path = log_dir.path / BOOTSTRAP_CHECKPOINT
        if evidence.is_beside(log.moment, log_dir.moment) and level in levels_in(path):
            return f"written in {shown(evidence, path, log_dir.root)}"
    if metadata and metadata.image.features.get(METADATA_VERSION) == level:
        return f"written in {shown(evidence, metadata.folder, metadata.log_dir.root)}"
    return "in no file of the evidence"


def _topic_ids(evidence: FoundEvidence, moment: str | None, cluster: Znodes) -> Iterator[Finding]:
    folders: dict[tuple[str, str], list[Replica]] = defaultdict(list)
    for replica in evidence.replicas:
        known = cluster.topic_ids.get(replica.topic)
        is_live = replica.moment == moment and replica.kind is FolderKind.LIVE
        if is_live and known and replica.topic_id not in (None, known):
            folders[replica.topic, replica.topic_id or ""].append(replica)
    for (topic, topic_id), replicas in folders.items():
        first = replicas[0]
        type_ = (
            codes.TOPIC_ID_OF_ZNODE_DIFFERS
            if cluster.is_zookeeper
            else codes.TOPIC_ID_OF_METADATA_LOG_DIFFERS
        )
        path = first.folder / "partition.metadata"
        znode = f"znode /brokers/topics/{topic} of {cluster.file}" if cluster.is_zookeeper else cluster.file
        place = place_in(evidence, path, first.log_dir)
        yield type_.at(
            place.in_partition(first.topic_partition), topic=topic, value=cluster.topic_ids[topic], other=topic_id,
            source=znode, other_source=shown(evidence, path, first.log_dir.root), count=len(replicas),
        )  # fmt: skip


def _under_other_brokers(evidence: FoundEvidence, moment: str | None, cluster: Znodes) -> Iterator[Finding]:
    live = [
        r
        for r in evidence.replicas
        if r.moment == moment and r.kind is FolderKind.LIVE and r.broker_id is not None
    ]
    live = [replica for replica in live if replica.topic_partition in cluster.replicas]
    brokers = {replica.broker_id for replica in live}
    if any(replica.broker_id in cluster.replicas[replica.topic_partition] for replica in live) or not live:
        return
    assigned = {broker for replica in live for broker in cluster.replicas[replica.topic_partition]}
    if assigned & set(evidence.broker_ids):
        return
    differ = [
        r
        for r in live
        if cluster.topic_ids.get(r.topic) not in (None, r.topic_id or cluster.topic_ids.get(r.topic))
    ]
    partitions = sorted({replica.topic_partition for replica in live})
    ids = "differ" if differ else "agree" if any(replica.topic_id for replica in live) else "are unknown"
    yield codes.SAME_UNDER_OTHER_BROKERS.at(
        place_in(evidence, live[0].log_dir.path, live[0].log_dir), count=len(partitions),
        assigned=_listed(sorted(assigned)), holders=_listed(sorted(b for b in brokers if b is not None)),
        names=_listed(partitions[:MOST_NAMED]), ids=ids,
    )  # fmt: skip


def _voters(evidence: FoundEvidence, log: MetadataLog) -> Iterator[Finding]:
    """Voters whose directory is not the one that the node has now."""
    for voter, directory in (log.voters.directories or {}).items():
        own = [
            log_dir
            for log_dir in evidence.log_dirs
            if (log_dir.broker_id, log_dir.moment) == (voter, log.log_dir.moment) and log_dir.directory_id
        ]
        controllers = [log_dir for log_dir in own if (log_dir.path / f"{CLUSTER_METADATA}-0").is_dir()]
        if controllers and all(log_dir.directory_id != directory for log_dir in own):
            now = controllers[0]
            yield codes.VOTER_DIRECTORY_GONE.at(
                place_in(evidence, meta(now), now), voter=voter, value=directory, other=now.directory_id,
                source=shown(evidence, log.folder, log.log_dir.root), other_source=shown(evidence, meta(now), now.root),
            )  # fmt: skip


def _configured_voters(evidence: FoundEvidence, log: MetadataLog) -> Iterator[Finding]:
    """Settings of controllers whose voters are not those of the metadata log."""
    directories, elected = log.voters
    logged = frozenset(directories) if directories else elected
    for settings in settings_in(evidence):
        log_dir = settings.log_dirs[0]
        is_controller = "controller" in settings.values.get("process.roles", "")
        if not is_controller or log_dir.moment != log.log_dir.moment or not settings.voters or not logged:
            continue
        if settings.voters != logged and not any(map(quorum_voters, settings.log_dirs)):
            type_ = codes.VOTERS_OF_LOG_DIFFER if directories else codes.VOTERS_DIFFER
            yield type_.at(
                place_in(evidence, settings.path, log_dir), value=numbers(settings.voters), other=numbers(logged),
                source=shown(evidence, settings.path, settings.root),
                other_source=shown(evidence, log.folder, log.log_dir.root),
            )  # fmt: skip


def _registered_directories(evidence: FoundEvidence, log: MetadataLog) -> Iterator[Finding]:
    for log_dir in evidence.log_dirs:
        broker = log.image.brokers.get(-1 if log_dir.broker_id is None else log_dir.broker_id)
        if log_dir.moment != log.log_dir.moment or log_dir.directory_id is None or broker is None:
            continue
        has_partitions = any(r.log_dir is log_dir and r.topic != CLUSTER_METADATA for r in evidence.replicas)
        if has_partitions and broker.log_dirs and log_dir.directory_id not in broker.log_dirs:
            yield codes.DIRECTORY_ID_UNKNOWN.at(
                place_in(evidence, meta(log_dir), log_dir), value=log_dir.directory_id, broker=log_dir.broker_id,
                source=shown(evidence, meta(log_dir), log_dir.root), other=", ".join(broker.log_dirs),
                other_source=shown(evidence, log.folder, log.log_dir.root),
            )  # fmt: skip


class TwoHosts(NamedTuple):
    """Two log directories of one broker id that no order of moments explains, the partitions of both, and why."""

    broker_id: int
    first: LogDir
    second: LogDir
    common: list[TopicPartition]
    reason: str


def _two_hosts(evidence: FoundEvidence) -> Iterator[Finding]:
    for pair in two_hosts(evidence):
        common, first, second = pair.common, pair.first, pair.second
        more = f" and {len(common) - MOST_NAMED} more" if len(common) > MOST_NAMED else ""
        yield codes.TWO_HOSTS_ONE_BROKER.at(
            place_in(evidence, meta(second), second), broker=pair.broker_id, reason=pair.reason,
            source=shown(evidence, first.path, first.root), other_source=shown(evidence, second.path, second.root),
            common=_listed(common[:MOST_NAMED]) + more,
        )  # fmt: skip


def two_hosts(evidence: FoundEvidence) -> Iterator[TwoHosts]:
    """Directories of one broker id that kctl told apart as moments, and that no order of moments explains."""
    by_broker: dict[int, list[LogDir]] = defaultdict(list)
    for log_dir in evidence.log_dirs:
        is_given = log_dir.moment in evidence.given_moments or "moments" in log_dir.path.parts
        if log_dir.broker_id is not None and log_dir.is_marked and log_dir.is_whole and not is_given:
            by_broker[log_dir.broker_id].append(log_dir)
    for broker_id, log_dirs in by_broker.items():
        for first, second in combinations(log_dirs, 2):
            common = sorted(_live(evidence, first).keys() & _live(evidence, second).keys())
            reason = _no_order(evidence, first, second) if common else None
            if reason and first.cluster_id == second.cluster_id:
                yield TwoHosts(broker_id, first, second, common, reason)


def _live(evidence: FoundEvidence, log_dir: LogDir) -> dict[TopicPartition, Replica]:
    return {
        r.topic_partition: r for r in evidence.replicas if r.log_dir is log_dir and r.kind is FolderKind.LIVE
    }


def _no_order(evidence: FoundEvidence, first: LogDir, second: LogDir) -> str | None:
    """Why neither directory is a later state of the other; None where one may be: leader epochs only rise."""
    if first.moment == second.moment:
        return None  # two directories of one broker: a partition in both is a finding of `discover`
    of_first, of_second = _live(evidence, first), _live(evidence, second)
    ahead: dict[str, tuple[TopicPartition, int, int]] = {}
    for partition in sorted(of_first.keys() & of_second.keys()):
        epochs = _last_epoch(of_first[partition]), _last_epoch(of_second[partition])
        if epochs[0] is not None and epochs[1] is not None and epochs[0] != epochs[1]:
            name = "first" if epochs[0] > epochs[1] else "second"
            ahead.setdefault(name, (partition, max(epochs[0], epochs[1]), min(epochs[0], epochs[1])))
    if len(ahead) == 2:
        return f"{ahead['first'][0]} has the later leader epoch in the one, {ahead['second'][0]} in the other"
    written = _written(first), _written(second)
    if not ahead or written[0] is None or written[1] is None or written[0] == written[1]:
        return None
    newer = first if written[0] > written[1] else second
    [(name, (partition, later, earlier))] = ahead.items()
    if (name == "first") == (newer is first):
        return None
    return (
        f"`meta.properties` of {shown(evidence, newer.path, newer.root)} was written later, and its {partition} ends "
        f"with leader epoch {earlier}, the other's with {later}"
    )


def _written(log_dir: LogDir) -> tuple[int, int, int, str] | None:
    """When `meta.properties` was written, by the line that Java writes."""
    try:
        match = WRITTEN.search(read_lenient(meta(log_dir)))
    except OSError:
        return None
    if match is None or match[1] not in MONTHS:
        return None
    return int(match[4]), MONTHS.index(match[1]), int(match[2]), match[3]


def _last_epoch(replica: Replica) -> int | None:
    try:
        entries = parse_leader_epochs(read_lenient(replica.folder / LEADER_EPOCHS))
    except (OSError, FormatError):
        return None
    return entries[-1].epoch if entries else None


def _stray_folders(evidence: FoundEvidence) -> Iterator[Finding]:
    """Folders aside that hold records which the partition of that name on the same broker lacks."""
    live = {
        (replica.broker_id, replica.moment, replica.topic_partition): replica
        for replica in evidence.replicas
        if replica.kind is FolderKind.LIVE
    }
    for stray in evidence.replicas:
        now = live.get((stray.broker_id, stray.moment, stray.topic_partition))
        if stray.kind is not FolderKind.STRAY or now is None:
            continue
        aside, present = (
            held_batches(Copy(replica, NOBODY if replica.broker_id is None else replica.broker_id, Place()))
            for replica in (stray, now)
        )
        if left := aside.lacking_in(present):
            yield codes.STRAY_HOLDS_EARLIER.at(
                place_in(evidence, stray.folder, stray.log_dir).in_partition(stray.topic_partition),
                name=stray.folder.name, end=aside.end, value=stray.topic_id or "unknown", records=left,
                partition=stray.topic_partition, live_end=present.end, other=now.topic_id or "unknown",
            )  # fmt: skip


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))
