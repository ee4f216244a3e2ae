"""Identities that the files of log directories and `server.properties` state, held against each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from formats.log_dir.file_names import META_PROPERTIES, PARTITION_METADATA, FolderKind
from formats.values import replace
from kctl.errors import KctlError
from kctl.evidence.model import FoundEvidence, LogDir, Root
from kctl.evidence.settings import Settings, settings_in
from kctl.findings import Finding, Place, Severity
from kctl.findings import identities as codes
from kctl.identities.statements import quorum_voters
from kctl.internal_topics.cluster_image import CLUSTER_METADATA, ClusterImage, read_image

MOST_NAMED = 3
# The metadata version 3.8-IV0: its brokers take a folder without a topic id for stray.
TAKES_FOR_STRAY = 20


def folder_findings(evidence: FoundEvidence) -> Iterator[Finding]:
    """A finding for each pair of places in log directories, and in the settings beside them, that differ."""
    yield from _directory_ids(evidence)
    yield from _without_topic_id(evidence)
    every = list(settings_in(evidence))
    yield from _two_settings(evidence, every)
    for settings in every:
        yield from _node_ids(evidence, settings)
        yield from _two_brokers(evidence, settings)
        yield from _modes(evidence, settings)
        yield from _voters(evidence, settings)
        yield from _log_dirs(evidence, settings)


def shown(evidence: FoundEvidence, path: Path, root: Root) -> str:
    """A path as sentences name it: below the folder given, which is named where several were."""
    place = evidence.place_of(path, root)
    return place.file or "" if place.evidence is None else f"{place.evidence}/{place.file}"


def place_in(evidence: FoundEvidence, path: Path, log_dir: LogDir) -> Place:
    """The place of a finding about a file of a broker."""
    place = evidence.place_of(path, log_dir.root)
    return replace(place, broker_id=log_dir.broker_id, moment=log_dir.moment)


def numbers(values: frozenset[int] | set[int]) -> str:
    """`1, 2, 3`."""
    return ", ".join(map(str, sorted(values)))


def meta(log_dir: LogDir) -> Path:
    """The path of a directory's `meta.properties`."""
    return log_dir.path / META_PROPERTIES


def _directory_ids(evidence: FoundEvidence) -> Iterator[Finding]:
    first: dict[tuple[str, str | None], LogDir] = {}
    for log_dir in evidence.log_dirs:
        if log_dir.directory_id is None:
            continue
        other = first.setdefault((log_dir.directory_id, log_dir.moment), log_dir)
        if other is not log_dir:
            yield codes.DIRECTORY_ID_TWICE.at(
                place_in(evidence, meta(log_dir), log_dir), value=log_dir.directory_id,
                source=shown(evidence, meta(other), other.root), other_source=shown(evidence, meta(log_dir), log_dir.root),
            )  # fmt: skip


def _without_topic_id(evidence: FoundEvidence) -> Iterator[Finding]:
    """Partition folders of a KRaft node without `partition.metadata`, with the id that other places give the topic."""
    missing = [
        replica
        for replica in evidence.replicas
        if replica.log_dir.is_kraft and replica.log_dir.is_whole and replica.arriving is None
        if replica.kind is FolderKind.LIVE and replica.topic != CLUSTER_METADATA
        if not (replica.folder / PARTITION_METADATA).exists()
    ]
    topics = {replica.topic for replica in missing}
    known = {(r.topic, r.moment): r.topic_id for r in evidence.replicas if r.topic in topics and r.topic_id}
    images = {
        log_dir.path: _image(log_dir) for log_dir in {r.log_dir.path: r.log_dir for r in missing}.values()
    }
    for replica in missing:
        image = images[replica.log_dir.path]
        of_metadata = (topic_id for topic_id, name in image.names.items() if name == replica.topic)
        topic_id = known.get((replica.topic, replica.moment)) or next(of_metadata, None)
        place = place_in(evidence, replica.folder, replica.log_dir)
        # A broker that is killed as it makes a log leaves an empty one, and its next start makes another.
        is_harmless = (
            _is_empty(replica.folder) and image.features.get("metadata.version", 0) >= TAKES_FOR_STRAY
        )
        yield codes.NO_TOPIC_ID.at(
            place.in_partition(replica.topic_partition), partition=replica.topic_partition,
            known=f"; the topic has the id {topic_id}" if topic_id else "",
            severity=Severity.INFO if is_harmless else None,
        )  # fmt: skip


def _image(log_dir: LogDir) -> ClusterImage:
    """What the metadata log in a directory says; nothing where there is none that can be read."""
    folder = log_dir.path / f"{CLUSTER_METADATA}-0"
    try:
        return read_image(folder)[0] if folder.is_dir() else ClusterImage()
    except KctlError:
        return ClusterImage()


def _is_empty(folder: Path) -> bool:
    try:
        return not any(path.stat().st_size for path in folder.glob("*.log"))
    except OSError:
        return False


def _node_ids(evidence: FoundEvidence, settings: Settings) -> Iterator[Finding]:
    configured = settings.node_id
    if configured is None:
        return
    key, value = configured
    for log_dir in settings.log_dirs:
        if meta(log_dir).exists() and log_dir.broker_id not in (None, int(value)):
            yield codes.NODE_ID_DIFFERS.at(
                place_in(evidence, meta(log_dir), log_dir), key=key, value=value, other=log_dir.broker_id,
                source=shown(evidence, settings.path, settings.root),
                other_source=shown(evidence, meta(log_dir), log_dir.root),
            )  # fmt: skip


def _two_brokers(evidence: FoundEvidence, settings: Settings) -> Iterator[Finding]:
    """Log directories of several brokers that one broker is to have."""
    ids = {log_dir.broker_id for log_dir in settings.log_dirs if log_dir.broker_id is not None}
    if len(ids) > 1:
        names = [shown(evidence, log_dir.path, log_dir.root) for log_dir in settings.log_dirs]
        yield codes.LOG_DIRS_OF_TWO_BROKERS.at(
            place_in(evidence, settings.path, settings.log_dirs[0]), values=numbers(ids), paths=", ".join(names),
            source=shown(evidence, settings.path, settings.root),
        )  # fmt: skip


def _two_settings(evidence: FoundEvidence, every: list[Settings]) -> Iterator[Finding]:
    """Two hosts with one broker id: their listeners differ."""
    first: dict[tuple[str, str | None], Settings] = {}
    for settings in every:
        configured, log_dir = settings.node_id, settings.log_dirs[0]
        if configured is None:
            continue
        other = first.setdefault((configured[1], log_dir.moment), settings)
        addresses = [
            ", ".join(s.values[key] for key in ("listeners", "advertised.listeners") if s.values.get(key))
            for s in (other, settings)
        ]
        is_one_cluster = other.log_dirs[0].cluster_id == log_dir.cluster_id
        if other is not settings and all(addresses) and addresses[0] != addresses[1] and is_one_cluster:
            yield codes.BROKER_ID_CONFIGURED_TWICE.at(
                place_in(evidence, settings.path, log_dir), value=configured[1], listeners=addresses[0],
                source=shown(evidence, other.path, other.root), other_listeners=addresses[1],
                other_source=shown(evidence, settings.path, settings.root),
            )  # fmt: skip


def _modes(evidence: FoundEvidence, settings: Settings) -> Iterator[Finding]:
    roles = settings.values.get("process.roles", "").strip()
    is_migrating = settings.values.get("zookeeper.metadata.migration.enable", "").strip() == "true"
    has_zookeeper = bool(settings.values.get("zookeeper.connect", "").strip())
    for log_dir in settings.log_dirs:
        if log_dir.broker_id is None or not meta(log_dir).exists():
            continue
        place = place_in(evidence, meta(log_dir), log_dir)
        if roles and not log_dir.is_kraft and not is_migrating:
            yield from _kraft_over_zookeeper(evidence, settings, log_dir, roles)
        elif has_zookeeper and not roles and log_dir.is_kraft and not is_migrating:
            yield codes.ZOOKEEPER_OVER_KRAFT_DIR.at(
                place, source=shown(evidence, settings.path, settings.root),
                other_source=shown(evidence, meta(log_dir), log_dir.root),
            )  # fmt: skip


def _kraft_over_zookeeper(
    evidence: FoundEvidence, settings: Settings, log_dir: LogDir, roles: str
) -> Iterator[Finding]:
    """The file keeps version 0 in a cluster that was migrated, too: the metadata log tells."""
    stray = [
        replica
        for replica in evidence.replicas
        if replica.log_dir is log_dir and replica.kind is FolderKind.STRAY
    ]
    copies = [other.path / f"{CLUSTER_METADATA}-0" for other in settings.log_dirs]
    try:
        images = [read_image(folder)[0] for folder in copies if folder.is_dir()]
    except KctlError:
        return
    if any(image.zk_migration_state for image in images):
        return
    place, path = place_in(evidence, meta(log_dir), log_dir), shown(evidence, meta(log_dir), log_dir.root)
    source = shown(evidence, settings.path, settings.root)
    if images and stray:
        names = ", ".join(str(replica.topic_partition) for replica in stray[:MOST_NAMED])
        more = f" and {len(stray) - MOST_NAMED} more" if len(stray) > MOST_NAMED else ""
        yield codes.STRAYED_BY_KRAFT.at(
            place, count=len(stray), names=names + more, source=source, other_source=path
        )
    elif not images:
        yield codes.ROLES_OF_ZOOKEEPER_DIR.at(place, value=roles, source=source, other_source=path)


def _voters(evidence: FoundEvidence, settings: Settings) -> Iterator[Finding]:
    configured = settings.voters
    for log_dir in settings.log_dirs:
        state = quorum_voters(log_dir)
        if configured and state and state[1] != configured:
            path, voters = state
            yield codes.VOTERS_DIFFER.at(
                place_in(evidence, path, log_dir), value=numbers(configured), other=numbers(voters),
                source=shown(evidence, settings.path, settings.root), other_source=shown(evidence, path, log_dir.root),
            )  # fmt: skip


def _log_dirs(evidence: FoundEvidence, settings: Settings) -> Iterator[Finding]:
    """Directories beside the settings that `log.dirs` does not list: known by their names where one of them is listed."""
    paths = settings.listed_dirs
    listed, names = {Path(path).name for path in paths}, {log_dir.path.name for log_dir in settings.log_dirs}
    lacking = [path for path in settings.lacking_dirs if not settings.is_there(path)]
    if lacking:
        count = len(paths) - len(settings.log_dirs) if lacking == paths else len(lacking)
        yield codes.LOG_DIR_NOT_THERE.at(
            place_in(evidence, settings.path, settings.log_dirs[0]), value=','.join(paths), count=count, all=len(paths),
            source=shown(evidence, settings.path, settings.root),
            names="" if lacking == paths else f": {', '.join(lacking)}",
        )  # fmt: skip
    if not listed & names:
        return
    for log_dir in settings.log_dirs:
        if log_dir.path.name not in listed | {Path(settings.metadata_dir).name}:
            yield codes.LOG_DIR_NOT_LISTED.at(
                place_in(evidence, log_dir.path, log_dir), value=','.join(paths),
                source=shown(evidence, settings.path, settings.root),
                other_source=shown(evidence, log_dir.path, log_dir.root),
            )  # fmt: skip
