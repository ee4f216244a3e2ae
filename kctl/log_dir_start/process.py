"""Whether the process starts on these log directories: what a broker checks before and beside loading logs.

Source: core/src/main/scala/kafka/server/{KafkaServer,KafkaRaftServer,BrokerMetadataCheckpoint}.scala @ 0.8.2.2 to 3.9.0-rc3,
metadata/src/main/java/org/apache/kafka/metadata/properties/MetaPropertiesEnsemble.java,
raft/src/main/java/org/apache/kafka/raft/FileQuorumStateStore.java,
core/src/main/scala/kafka/raft/KafkaMetadataLog.scala (truncateToLatestSnapshot) @ 3.3.2 to 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError, MalformedLine
from formats.log_dir.checkpoints import MalformedCheckpoint, Refusal, parse_offset_checkpoint
from formats.log_dir.file_names import BOOTSTRAP_CHECKPOINT, META_PROPERTIES, QUORUM_STATE
from formats.log_dir.meta_properties import MetaProperties, parse_meta_properties, parse_properties
from formats.log_dir.state_files import parse_quorum_state
from kctl.files import read_text, read_whole
from kctl.internal_topics.cluster_image import snapshots
from kctl.log_dir_start.bootstrap import bootstrap_failure, is_empty
from kctl.log_dir_start.configured import (
    METADATA_FOLDER,
    RUNTIME,
    Surroundings,
    configured_failures,
    settings_failures,
    version_failure,
)
from kctl.log_dir_start.failures import LoadFails
from kctl.log_dir_start.load import PartitionStart, PartitionTask, load_partition
from kctl.log_dir_start.rules import StartRules
from kctl.log_dir_start.steps import StartStep, StepKind

ALONE = Surroundings()
SNAPSHOT = ".checkpoint"
RAFT_LOG = "K:raft/KafkaMetadataLog.scala"
HIGH_WATERMARK = "replication-offset-checkpoint"


class Identity(NamedTuple):
    """What the `meta.properties` of the directories say together."""

    properties: Mapping[Path, MetaProperties]
    is_kraft: bool
    was_zookeeper: bool = False  # the files are of a broker with ZooKeeper, and the version has no such mode
    failure: LoadFails | None = None  # why the process ends
    offline: Mapping[Path, LoadFails] = {}


def check_identity(paths: Sequence[Path], rules: StartRules, around: Surroundings = ALONE) -> Identity:
    """The check of `meta.properties` over all directories. Without settings in `around` the files tell the mode."""
    properties: dict[Path, MetaProperties] = {}
    offline: dict[Path, LoadFails] = {}
    missing: list[Path] = []
    stored: dict[Path, dict[str, str]] = {}
    for path in paths:
        file = path / META_PROPERTIES
        try:
            text = read_whole(file).decode("latin-1")
            stored[path] = parse_properties(text)
            properties[path] = parse_meta_properties(text)
        except FileNotFoundError:
            missing.append(path)
        except (OSError, MalformedLine) as error:
            words = f"Error while reading meta.properties file {file}: {error}"
            offline[path] = LoadFails("java.io.IOException", words, META_PROPERTIES, is_io=True)
    roles = around.roles
    is_zookeeper = around.settings is not None and "zookeeper.connect" in around.settings.values
    looks_kraft = _looks_kraft(paths, properties)
    is_kraft = bool(roles) or (not is_zookeeper and (looks_kraft or rules.needs_roles))
    refused: list[LoadFails] = []
    if not is_kraft and not rules.has_ensemble:
        for path, values in stored.items():
            if failure := version_failure(values, rules):
                properties.pop(path, None)
                offline.pop(path, None)
                if failure.is_io:
                    offline[path] = failure
                else:
                    refused.append(failure)
    failures = chain(
        settings_failures(around, rules),
        refused,
        () if rules.has_ensemble else _inconsistent(properties, rules),  # before 3.7 that comes first
        configured_failures(around, properties, is_kraft, rules),
        _identity_failures(properties, missing, offline, is_kraft, rules),
    )
    was_zookeeper = rules.needs_roles and not looks_kraft
    return Identity(properties, is_kraft, was_zookeeper, next(failures, None), offline)


def _looks_kraft(paths: Sequence[Path], properties: Mapping[Path, MetaProperties]) -> bool:
    has_log = any(
        (path / METADATA_FOLDER).is_dir() or (path / BOOTSTRAP_CHECKPOINT).exists() for path in paths
    )
    return has_log or any(meta.version == 1 for meta in properties.values())


def _inconsistent(properties: Mapping[Path, MetaProperties], rules: StartRules) -> Iterator[LoadFails]:
    """Directories of two brokers, or of two clusters."""
    for name, of in (("node id", "broker_id"), ("cluster.id", "cluster_id")):
        values = {
            path: getattr(meta, of) for path, meta in properties.items() if getattr(meta, of) is not None
        }
        if len(set(values.values())) > 1:
            (_, one), (path, other) = next(
                (a, b) for a in values.items() for b in values.items() if a[1] != b[1]
            )
            yield _differing(name, rules, path / META_PROPERTIES, one, other)


def _identity_failures(
    properties: Mapping[Path, MetaProperties],
    missing: Sequence[Path],
    offline: Mapping[Path, LoadFails],
    is_kraft: bool,
    rules: StartRules,
) -> Iterator[LoadFails]:
    if is_kraft and not properties and rules.has_ensemble:
        yield LoadFails(RUNTIME, "No readable meta.properties files found.", META_PROPERTIES)
    yield from _inconsistent(properties, rules)
    ids: dict[str, Path] = {}
    for path, meta in properties.items() if rules.has_ensemble else ():
        if meta.directory_id is not None and meta.directory_id in ids:
            words = (
                f"Duplicate directory ID Optional[{meta.directory_id}] found. It was the ID of {ids[meta.directory_id]}, but also"
                f" of {path}"
            )
            yield LoadFails(RUNTIME, words, META_PROPERTIES)
        elif meta.directory_id is not None:
            ids[meta.directory_id] = path
    if not is_kraft:
        return
    for path in missing:
        words = (
            f"No `meta.properties` found in {path} (have you run `kafka-storage.sh` to format the directory?)"
        )
        yield LoadFails(RUNTIME if rules.has_ensemble else rules.kafka_exception, words, META_PROPERTIES)
    for path, meta in properties.items():
        if meta.broker_id is None:
            words = (
                f"Error: node ID not found in {path}"
                if rules.has_ensemble
                else "Failed to find required property node.id."
            )
            yield LoadFails(RUNTIME, words, META_PROPERTIES)
        elif meta.cluster_id is None:
            words = (
                f"Error: cluster ID not found in {path}"
                if rules.has_ensemble
                else "Failed to find required property cluster.id."
            )
            yield LoadFails(RUNTIME, words, META_PROPERTIES)


def _differing(name: str, rules: StartRules, file: Path, one: object, other: object) -> LoadFails:
    if not rules.has_ensemble:
        words = (
            "BrokerMetadata is not consistent across log.dirs. This could happen if multiple brokers shared a log directory"
            f" (log.dirs) or partial data was manually copied from another broker: {name} {one} and {other}"
        )
        return LoadFails("kafka.common.InconsistentBrokerMetadataException", words, META_PROPERTIES)
    if name == "cluster.id":
        return LoadFails(
            RUNTIME, f"Invalid cluster.id in: {file}. Expected {one}, but read {other}", META_PROPERTIES
        )
    words = (
        f"Stored node id {other} doesn't match previous node id {one} in {file}. If you moved your data, make sure your"
        " configured node id matches."
    )
    return LoadFails(RUNTIME, words, META_PROPERTIES)


def metadata_log_start(path: Path, rules: StartRules) -> PartitionStart:
    """Loading the metadata log of a KRaft node: it is always recovered as a whole, and a newer snapshot takes its place."""
    folder = path / METADATA_FOLDER
    start = load_partition(PartitionTask(folder, rules))
    names = [snapshot.name for _, snapshot in snapshots(folder) if snapshot.suffix == SNAPSHOT]
    if not names or start.log_end is None or start.failure is not None or start.unknown is not None:
        return start
    offset, epoch = map(int, names[-1].removesuffix(SNAPSHOT).split("-"))
    latest_epoch = start.epochs[-1].epoch if start.epochs else 0
    if (epoch, offset) > (latest_epoch, start.log_end):
        message = f"empties the metadata log, which ends at {start.log_end}, and goes on from the snapshot at offset {offset}"
        size = sum(size for name, size in start.files.items() if name.endswith(".log"))
        start.steps.append(
            StartStep(
                StepKind.TRUNCATE,
                message,
                from_offset=start.log_start,
                to_offset=start.log_end,
                bytes_cut=size,
                source=RAFT_LOG,
            )
        )
        start.files = {f"{offset:020d}.log": 0}
        start.log_start = start.log_end = offset
    return start


def controller_failure(path: Path, rules: StartRules) -> LoadFails | None:
    """Why a node with the metadata log in this directory ends: its quorum state or its bootstrap file."""
    state = path / METADATA_FOLDER / QUORUM_STATE
    try:
        parse_quorum_state(read_text(state))
    except FileNotFoundError:
        pass
    except (OSError, FormatError, ValueError):
        words = f"Error while reading the Quorum status from the file {state}"
        return LoadFails("java.io.UncheckedIOException", words, f"{METADATA_FOLDER}/{QUORUM_STATE}")
    return bootstrap_failure(path / BOOTSTRAP_CHECKPOINT, rules, is_new=is_empty(path / METADATA_FOLDER))


def high_watermark_failure(path: Path, rules: StartRules) -> LoadFails | None:
    """Why the directory goes offline when its replicas become leader or follower: their high watermarks are read then."""
    file = path / HIGH_WATERMARK
    try:
        parse_offset_checkpoint(read_text(file))
        return None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        pass
    except MalformedCheckpoint as error:
        if error.refusal is Refusal.STARTUP_FAILS and not rules.bad_number_is_io:
            return None
    if not rules.io_error_takes_directory:
        return LoadFails("java.io.IOException", f"Malformed line in checkpoint file ({file})", HIGH_WATERMARK)
    words = f"Error while reading checkpoint file {file}"
    return LoadFails(
        "org.apache.kafka.common.errors.KafkaStorageException", words, HIGH_WATERMARK, is_storage=True
    )
