"""The start of each broker in the evidence, forecast: its log directories together, and what the start would destroy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from formats.log_dir.file_names import (
    BOOTSTRAP_CHECKPOINT,
    LEADER_EPOCHS,
    FolderKind,
    PartitionFolder,
    parse_partition_folder,
)
from formats.values import Struct, field, replace
from kctl.cluster.feature_levels import LEVELS, METADATA_VERSION
from kctl.copies.moments import Znodes, clusters_of
from kctl.errors import BadValue, reason_of
from kctl.evidence.copies import CUT_OFF
from kctl.evidence.model import FoundEvidence, LogDir
from kctl.identities.statements import logged_ids
from kctl.log_dir_start.bootstrap import level_failure, levels_in, release_of, snapshot_failure
from kctl.log_dir_start.brokers import brokers_in
from kctl.log_dir_start.configured import (
    METADATA_FOLDER,
    Surroundings,
    lacks_voters,
    metadata_elsewhere,
    surroundings,
    unformatted,
    voters_failure,
)
from kctl.log_dir_start.directory import DirectoryStart, start_directory
from kctl.log_dir_start.failures import LoadFails
from kctl.log_dir_start.losses import destroyed_by
from kctl.log_dir_start.process import (
    check_identity,
    controller_failure,
    high_watermark_failure,
    metadata_log_start,
)
from kctl.log_dir_start.room import Room, room_of
from kctl.log_dir_start.rules import StartRules, start_rules
from kctl.log_dir_start.steps import PlacedStep, StartStep, StepKind
from kctl.log_dir_start.strays import stray_step
from kctl.replication.rules import parse_version

NEWEST = "3.9"


class BrokerStart(Struct):
    """The forecast of one broker's start. `starts` is None where it is not known."""

    broker_id: int | None
    moment: str | None
    kafka_version: str
    log_dirs: list[LogDir]
    starts: bool | None = True
    failure: LoadFails | None = None
    offline: dict[str, LoadFails] = field(default_factory=dict)  # by log directory
    steps: list[PlacedStep] = field(default_factory=list)
    bytes_read: int = 0
    rooms: list[Room] = field(default_factory=list)
    partitions: int = 0
    live_partitions: int = 0
    unknown: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    are_strays_known: bool = True
    """Whether metadata of the cluster tell which folders the start renames or deletes."""
    not_copied: list[tuple[str, str]] = field(default_factory=list)
    """Files and partition folders that a copy has not, or not whole, and why."""
    cut_off: set[Path] = field(default_factory=set)
    """Partition folders of which not all was copied."""
    is_fetched: bool = False
    """Whether a broker gave its batches, and nothing else of its log directories is there."""
    lacks_settings: bool = False
    """Whether `server.properties` would decide what is unknown."""

    @property
    def who(self) -> str:
        """The broker in words."""
        return "the broker" if self.broker_id is None else f"broker {self.broker_id}"

    def needs_settings(self, why: str) -> None:
        """Note what `server.properties` would decide."""
        self.starts, self.lacks_settings = None, True
        self.unknown.append(f"{why}: `server.properties` decides it, and is not in the evidence")


FETCHED = "its batches were fetched: nothing else that it has on disk is in the evidence"


def starts(
    evidence: FoundEvidence, others: Sequence[FoundEvidence] = (), kafka_version: str | None = None
) -> Iterator[BrokerStart]:
    """The start of every broker in the evidence. `others` holds copies of other brokers, which do not start."""
    metadata = clusters_of(evidence, lambda error: None)
    for broker_id, moment, log_dirs, doubt in brokers_in(evidence):
        version = kafka_version or _logged_version(evidence, broker_id, moment)
        version = version or recognised_version([log_dir.path for log_dir in log_dirs])
        start = BrokerStart(broker_id, moment, version, log_dirs)
        _note_not_copied(start, evidence)
        if any(log_dir.is_fetched for log_dir in log_dirs):
            start.starts, start.is_fetched = None, True
            start.unknown.append(FETCHED)
            yield start
            continue
        try:
            rules = start_rules(version)
        except BadValue as error:
            start.starts = None
            start.unknown.append(f"{error}, and the broker's log names this version")
            yield start
            continue
        _forecast(start, rules, metadata.get(moment), surroundings(evidence, log_dirs))
        if doubt is not None and start.starts is not False:
            start.needs_settings(doubt)
        start.steps = [
            destroyed_by(placed, start.broker_id, start.moment, evidence, others, metadata.get(moment))
            for placed in start.steps
        ]
        yield start


def _note_not_copied(start: BrokerStart, evidence: FoundEvidence) -> None:
    """Note what the manifests of copies say that the log directories of the broker had beside what is there."""
    roots = {log_dir.path: log_dir.root for log_dir in start.log_dirs}
    cut_off = [replica for replica in evidence.cut_off if replica.log_dir.path in roots]
    start.cut_off = {replica.folder for replica in cut_off}
    missing: dict[Path, str] = {
        path: why for path, why in evidence.unread if path.parent in roots or path.parent in start.cut_off
    }
    for folder in sorted(start.cut_off - {path.parent for path in missing}):
        missing.setdefault(folder, CUT_OFF)
    for path, why in missing.items():
        root = next(roots[above] for above in path.parents if above in roots)
        name = evidence.place_of(path, root).file or str(path)
        start.not_copied.append((name, why))
        start.unread.append(f"{name} was not copied ({why})")


def _logged_version(evidence: FoundEvidence, broker_id: int | None, moment: str | None) -> str | None:
    """The version that the broker's own log names at its last start: a log of the moment, else one beside the moments."""
    own = [
        log
        for log in evidence.broker_logs
        if log.kind in ("server", "stdout") and log.broker_id == broker_id and log.moment in (moment, None)
    ]
    for logs in ([log for log in own if log.moment == moment], own):
        starts: list[tuple[datetime, str]] = []
        for ids in map(logged_ids, logs):
            if ids.version_at and ids.version:
                starts.append((ids.version_at, ids.version))
            if ids.refused_at and ids.refused_level:  # it ended before it printed its version
                starts.append((ids.refused_at, _newest_without(ids.refused_level)))
        if starts:
            return max(starts)[1]
    return None


def _newest_without(level: int) -> str:
    """The newest version, at most `NEWEST`, before the one that brought a metadata version."""
    releases = {known.release.partition("-")[0] for known in LEVELS[METADATA_VERSION]}
    since = parse_version(release_of(level) or NEWEST)
    return max(
        (v for v in releases if parse_version(v) < since and parse_version(v) <= parse_version(NEWEST)),
        key=parse_version,
        default=NEWEST,
    )


def recognised_version(paths: Sequence[Path]) -> str:
    """The version whose rules hold where none is named: the newest with rules of its own that may have written the files.

    No file of a later one is there; and not older than the metadata version of a controller asks for.
    """
    levels = [level for path in paths for level in levels_in(path / BOOTSTRAP_CHECKPOINT)]
    newer = [
        version
        for level in levels
        if (version := release_of(level)) and parse_version(version) > parse_version(NEWEST)
    ]
    if newer:
        return max(newer, key=parse_version)
    names: set[str] = set()
    for path in paths:
        for folder in _partition_folders(path):
            try:
                names.update(os.listdir(path / folder))
            except OSError:
                continue
    if LEADER_EPOCHS in names or not any(name.endswith(".log") for name in names):
        return NEWEST
    return "0.10.2" if any(name.endswith(".timeindex") for name in names) else "0.10.0"


def _partition_folders(path: Path) -> list[str]:
    try:
        return [name for name in os.listdir(path) if parse_partition_folder(name)]
    except OSError:
        return []


def _forecast(start: BrokerStart, rules: StartRules, metadata: Znodes | None, around: Surroundings) -> None:
    paths = [log_dir.path for log_dir in start.log_dirs]
    empty = unformatted(around, paths)
    identity = check_identity([*paths, *empty], rules, around)
    lacking = around.settings.lacking_dirs if around.settings else []
    if len(empty) < len(lacking):
        start.unknown.append(f"the evidence does not hold all of `log.dirs`: {', '.join(lacking)}")
    for path, failure in identity.offline.items():
        _take_offline(start, path, failure)
    if identity.failure is not None:
        _fail(start, identity.failure)
        return
    if identity.was_zookeeper and around.settings is None:
        start.needs_settings(
            f"{start.who} was of ZooKeeper mode, which Kafka {rules.kafka_version} does not have: with the settings of that mode"
            " it does not start, with `process.roles` it renames the partition folders to -stray"
        )
    if identity.is_kraft and not rules.has_metadata_version:
        start.unknown.append(
            f"nodes of KRaft before 3.3 are not forecast, and Kafka {rules.kafka_version} is given"
        )
    if identity.is_kraft and not _start_metadata_log(start, paths, rules, around):
        return
    directories = [path for path in paths if path not in identity.offline]
    loaded = [directory for path in directories if (directory := _load(start, path, rules)) is not None]
    _check_twice(start, loaded)
    has_log = any((path / METADATA_FOLDER).is_dir() for path in paths)
    if "controller" in (around.roles or ()) and not has_log:
        metadata = Znodes(start.moment, "", is_zookeeper=False)  # it begins an empty metadata log
    start.are_strays_known = (
        not identity.is_kraft or metadata is not None or not any(map(_partition_folders, paths))
    )
    if has_log and not start.are_strays_known:
        start.unknown.append(f"{METADATA_FOLDER} cannot be read whole, and it tells which folders are stray")
    of_path = {log_dir.path: log_dir for log_dir in start.log_dirs}
    for directory in loaded:
        _take_directory(start, directory, rules)
        room = room_of(of_path[directory.path], directory, around, rules)
        start.rooms.append(room)
        if room.free is not None and room.free < room.recovery:
            start.unknown.append(
                f"the file system of {directory.path} has less room than the recovery of its logs needs"
            )
        if identity.is_kraft:
            _find_strays(start, directory, rules, metadata)
    if start.offline and len(start.offline) == len(paths):
        words = f"Shutdown broker because all log dirs in {', '.join(map(str, paths))} have failed"
        _fail(start, LoadFails("halt", words, ""))
    if start.starts and (start.unknown or start.unread):
        start.starts = None


def _fail(start: BrokerStart, failure: LoadFails) -> None:
    start.starts = False
    start.failure = start.failure or failure


def _take_offline(start: BrokerStart, path: Path, failure: LoadFails) -> None:
    if str(path) in start.offline:
        return
    start.offline[str(path)] = failure
    message = f"the log directory goes offline: {failure.words}"
    step = StartStep(StepKind.OFFLINE, message, file=failure.file or None, source="K:log/LogManager.scala")
    start.steps.append(PlacedStep(str(path), None, None, step))


def _start_metadata_log(
    start: BrokerStart, paths: Sequence[Path], rules: StartRules, around: Surroundings
) -> bool:
    """The steps of a KRaft node before it loads other logs; whether it comes further."""
    if elsewhere := metadata_elsewhere(around, paths):
        _fail(start, elsewhere)
        return False
    for path in paths:
        if path / METADATA_FOLDER in start.cut_off:
            continue
        has_log = (path / METADATA_FOLDER).is_dir()
        if not has_log and (len(paths) > 1 or not around.roles):
            continue  # whether it is to hold the metadata log nobody knows
        failure = controller_failure(path, rules)
        if failure is None and has_log:
            loaded = metadata_log_start(path, rules)
            failure = loaded.failure or snapshot_failure(path / METADATA_FOLDER)
            start.bytes_read += loaded.bytes_read
            named = parse_partition_folder(METADATA_FOLDER)
            start.steps += [PlacedStep(str(path), METADATA_FOLDER, named, step) for step in loaded.steps]
            if loaded.unknown:
                start.unknown.append(f"{METADATA_FOLDER}: {loaded.unknown}")
            unknown_level = level_failure(path / METADATA_FOLDER, rules)
            if "controller" in (around.roles or {"controller"}):
                failure = failure or unknown_level
            elif unknown_level is not None:
                start.unknown.append(
                    f"the metadata log is of newer software ({unknown_level.words}): a broker without the controller role goes on to"
                    " the first record that it cannot read, and the controllers may refuse it"
                )
        failure = failure or voters_failure(around, start.log_dirs, rules)
        if failure is not None:
            _fail(start, failure)
            return False
    if lacks_voters(around, start.log_dirs, rules):
        start.unknown.append(
            "neither `controller.quorum.voters` nor the metadata log names voters: the node comes up only where a controller of"
            " `controller.quorum.bootstrap.servers` knows them"
        )
    return True


def _load(start: BrokerStart, path: Path, rules: StartRules) -> DirectoryStart | None:
    try:
        return start_directory(
            path, rules, {folder.name for folder in start.cut_off if folder.parent == path}
        )
    except OSError as error:
        start.unread.append(f"{path}: {reason_of(error)}")
        return None


def _check_twice(start: BrokerStart, directories: Sequence[DirectoryStart]) -> None:
    """Of a live partition in two directories Kafka says which, and ends."""
    seen: dict[str, Path] = {}
    for directory in directories:
        for name in directory.partitions:
            named = parse_partition_folder(name)
            if named is None or named.kind is not FolderKind.LIVE:
                continue
            if name in seen:
                words = f"Duplicate log directories for {name} are found in both {directory.path / name} and {seen[name]}"
                _fail(start, LoadFails("java.lang.IllegalStateException", words, name))
            seen[name] = directory.path / name


def _take_directory(start: BrokerStart, directory: DirectoryStart, rules: StartRules) -> None:
    path = directory.path
    start.unknown += directory.unknown
    for name, loaded in directory.partitions.items():
        named = parse_partition_folder(name)
        start.partitions += 1
        start.live_partitions += named is not None and named.kind is FolderKind.LIVE
        start.bytes_read += loaded.bytes_read
        start.steps += [PlacedStep(str(path), name, named, step) for step in loaded.steps]
        if loaded.log_end is not None and loaded.failure is None:
            start.steps.append(
                PlacedStep(str(path), name, named, _loaded_step(named, loaded.log_start, loaded.log_end))
            )
    if directory.offline is not None:
        _take_offline(start, path, directory.offline)
    if directory.failure is not None:
        _fail(start, directory.failure)
    elif directory.partitions and (failure := high_watermark_failure(path, rules)):
        if rules.io_error_takes_directory:
            _take_offline(start, path, failure)
        else:
            _fail(start, failure)


def _find_strays(
    start: BrokerStart, directory: DirectoryStart, rules: StartRules, metadata: Znodes | None
) -> None:
    for name, loaded in directory.partitions.items():
        named = parse_partition_folder(name)
        if named is None or loaded.failure is not None:
            continue
        try:
            step = stray_step(directory.path / name, named, start.broker_id, metadata, rules)
        except LoadFails as failure:
            _fail(start, failure)
            continue
        if step is None:
            continue
        if step.step is StepKind.DELETE and loaded.log_start is not None:
            sizes = sum(size for file, size in loaded.files.items() if file.endswith(".log"))
            records = (loaded.log_end or 0) - loaded.log_start
            step = replace(
                step,
                from_offset=loaded.log_start,
                to_offset=loaded.log_end,
                records_cut=records,
                bytes_cut=sizes,
            )
        start.steps.append(PlacedStep(str(directory.path), name, named, step))


def _loaded_step(named: PartitionFolder | None, log_start: int | None, log_end: int) -> StartStep:
    words = {
        FolderKind.DELETE: ("deletes the folder a minute later: its topic was deleted, or the replica moved away", StepKind.DELETE),
        FolderKind.FUTURE: ("goes on copying the replica into this directory, if the broker still leads or follows it", StepKind.CONTINUE_FUTURE),
        FolderKind.STRAY: ("keeps the folder aside: the metadata do not place the replica here", StepKind.LOAD),
    }  # fmt: skip
    kind = named.kind if named else FolderKind.LIVE
    message, step = words.get(kind, (f"loads the log: offsets [{log_start}, {log_end})", StepKind.LOAD))
    return StartStep(step, message, from_offset=log_start, to_offset=log_end, source="K:log/LogManager.scala")
