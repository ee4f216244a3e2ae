"""What a broker's settings, and the cluster that they lead to, say against its log directories when it starts.

Source: core/src/main/scala/kafka/server/{KafkaServer,KafkaRaftServer,BrokerMetadataCheckpoint}.scala @ 2.0.0 to 3.9.1,
metadata/src/main/java/org/apache/kafka/metadata/properties/MetaPropertiesEnsemble.java @ 3.7.0 to 4.3.0,
core/src/main/scala/kafka/server/KafkaConfig.scala (validateValues) @ 3.0.0 to 4.3.0,
raft/src/main/java/org/apache/kafka/raft/QuorumState.java @ 2.8.0 to 3.7.0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from formats.log_dir.file_names import META_PROPERTIES, QUORUM_STATE
from formats.log_dir.meta_properties import MetaProperties
from kctl.evidence.model import FoundEvidence, LogDir
from kctl.evidence.settings import Settings, settings_in
from kctl.identities.statements import cluster_id_of, quorum_voters, voters_in
from kctl.internal_topics.cluster_image import CLUSTER_METADATA
from kctl.log_dir_start.failures import LoadFails
from kctl.log_dir_start.rules import StartRules

METADATA_FOLDER = f"{CLUSTER_METADATA}-0"
SERVER_PROPERTIES = "server.properties"
RUNTIME = "java.lang.RuntimeException"
CONFIG = "org.apache.kafka.common.config.ConfigException"
VOTERS = "controller.quorum.voters"
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"
VERSION_0 = "support version 0 (which is implicit when the `version` field is missing)."
IN_META = "If you moved your data, make sure your configured {key} matches."


class Surroundings(NamedTuple):
    """What is known of a broker beside its log directories: its settings, and the cluster id in ZooKeeper."""

    settings: Settings | None = None
    cluster_id: str | None = None

    @property
    def roles(self) -> frozenset[str] | None:
        """The `process.roles`, empty with ZooKeeper; None without settings."""
        if self.settings is None:
            return None
        listed = self.settings.values.get("process.roles", "").split(",")
        return frozenset(role.strip() for role in listed if role.strip())

    @property
    def is_migrating(self) -> bool:
        """Whether the broker takes part in a migration from ZooKeeper (KIP-866)."""
        values = self.settings.values if self.settings else {}
        return values.get("zookeeper.metadata.migration.enable", "").strip() == "true"


def surroundings(evidence: FoundEvidence, log_dirs: Sequence[LogDir]) -> Surroundings:
    """The settings and the cluster of a broker's log directories, as far as they are in the evidence."""
    paths = {log_dir.path for log_dir in log_dirs}
    of_broker = (s for s in settings_in(evidence) if paths & {log_dir.path for log_dir in s.log_dirs})
    moments = (
        log_dirs[0].moment,
        None,
    )  # a cluster keeps its id: an export beside the moments tells it as well
    exports = (cluster_id_of(export) for export in evidence.znode_exports if export.moment in moments)
    return Surroundings(next(of_broker, None), next((id for id in exports if id), None))


def settings_failures(around: Surroundings, rules: StartRules) -> Iterator[LoadFails]:
    """Why the process ends over its settings alone: no mode, or voters that do not fit the node."""
    requirement = "java.lang.IllegalArgumentException"
    if rules.needs_roles and around.roles == frozenset():
        words = 'Missing required configuration "process.roles" which has no default value.'
        yield LoadFails(CONFIG, words, SERVER_PROPERTIES)
    if around.settings is None or not around.roles:
        return
    values, voters, own = around.settings.values, around.settings.voters, around.settings.node_id
    if not values.get(VOTERS, "").strip():
        if not rules.has_bootstrap_servers:
            words = f"If using process.roles, {VOTERS} must contain a parseable set of voters."
            yield LoadFails(CONFIG, words, SERVER_PROPERTIES)
        elif not values.get(BOOTSTRAP_SERVERS, "").strip():
            words = (
                f"If using process.roles, either {BOOTSTRAP_SERVERS} must contain the set of bootstrap controllers or {VOTERS} must"
                " contain a parseable set of controllers."
            )
            yield LoadFails(CONFIG, words, SERVER_PROPERTIES)
    if not voters or own is None:
        return
    among = f"in the set of voters controller.quorum.voters=Set({', '.join(map(str, sorted(voters)))})"
    if "controller" in around.roles and int(own[1]) not in voters:
        words = f"requirement failed: If process.roles contains the 'controller' role, the node id {own[1]} must be included {among}"
        yield LoadFails(requirement, words, SERVER_PROPERTIES)
    elif "controller" not in around.roles and int(own[1]) in voters:
        words = (
            f"requirement failed: If process.roles contains just the 'broker' role, the node id {own[1]} must not be included"
            f" {among}"
        )
        yield LoadFails(requirement, words, SERVER_PROPERTIES)


def configured_failures(
    around: Surroundings, properties: Mapping[Path, MetaProperties], is_kraft: bool, rules: StartRules
) -> Iterator[LoadFails]:
    """Why the process ends, in the order of Kafka's checks: the version of `meta.properties`, cluster id, broker id."""
    is_zookeeper = not is_kraft and not around.is_migrating
    expected = around.settings.node_id if around.settings else None
    for path, meta in properties.items():
        file = path / META_PROPERTIES
        if is_zookeeper and meta.version != 0 and rules.has_ensemble:
            words = f"Found unexpected version in {file}. ZK-based brokers that are not migrating only {VERSION_0}"
            yield LoadFails(RUNTIME, words, META_PROPERTIES)
        if not is_kraft and around.cluster_id and meta.cluster_id not in (None, around.cluster_id):
            yield from _other_cluster(around.cluster_id, meta.cluster_id, file, rules)
        if expected and meta.broker_id is not None and meta.broker_id != int(expected[1]):
            yield _other_id(int(expected[1]), meta.broker_id, file, is_kraft, rules)


def version_failure(stored: Mapping[str, str], rules: StartRules) -> LoadFails | None:
    """What a broker with ZooKeeper of up to 3.6 has against the version of a `meta.properties`; None where it takes it."""
    version = stored.get("version")
    lacking = next((key for key in ("version", "broker.id") if key not in stored), None)
    if not rules.has_topic_ids and lacking and version in (None, "0"):
        words = f"requirement failed: Missing required property '{lacking}'"
        return LoadFails("java.lang.IllegalArgumentException", words, META_PROPERTIES)
    if version in (None, "0"):
        return None
    if not rules.has_topic_ids:
        words = f"Unrecognized version of the server meta.properties file: {version}"
        return LoadFails("java.io.IOException", words, META_PROPERTIES, is_io=True)
    shown = ", ".join(f"{key}={value}" for key, value in sorted(stored.items()))
    words = f"Found unexpected version in loaded `meta.properties`: {{{shown}}}. Zk-based brokers only {VERSION_0}"
    return LoadFails(RUNTIME, words, META_PROPERTIES)


def _other_cluster(of_znode: str, stored: str | None, file: Path, rules: StartRules) -> Iterator[LoadFails]:
    if rules.has_ensemble:
        words = f"Invalid cluster.id in: {file}. Expected {of_znode}, but read {stored}"
        yield LoadFails(RUNTIME, words, META_PROPERTIES)
    elif rules.checks_cluster_id:
        words = (
            f"The Cluster ID {of_znode} doesn't match stored clusterId Some({stored}) in meta.properties. The broker is"
            " trying to join the wrong cluster. Configured zookeeper.connect may be wrong."
        )
        yield LoadFails("kafka.common.InconsistentClusterIdException", words, META_PROPERTIES)


def _other_id(configured: int, stored: int, file: Path, is_kraft: bool, rules: StartRules) -> LoadFails:
    if rules.has_ensemble:
        words = f"Stored node id {stored} doesn't match previous node id {configured} in {file}."
        return LoadFails(RUNTIME, f"{words} {IN_META.format(key='node id')}", META_PROPERTIES)
    if is_kraft:
        words = (
            f"Configured node.id `{configured}` doesn't match stored node.id `{stored}' in meta.properties."
        )
        return LoadFails(
            "kafka.common.InconsistentNodeIdException", f"{words} {IN_META.format(key='controller.id')}", META_PROPERTIES
        )  # fmt: skip
    shown = f"Some({stored})" if rules.has_topic_ids else stored
    words = f"Configured broker.id {configured} doesn't match stored broker.id {shown} in meta.properties."
    return LoadFails(
        "kafka.common.InconsistentBrokerIdException", f"{words} {IN_META.format(key='broker.id')}", META_PROPERTIES
    )  # fmt: skip


def voters_failure(around: Surroundings, log_dirs: Sequence[LogDir], rules: StartRules) -> LoadFails | None:
    """Why a node ends whose voters are not those that its quorum state names; from 3.8 on it starts with its settings."""
    configured = around.settings.voters if around.settings else None
    if configured is None or not rules.compares_voters:
        return None
    for log_dir in log_dirs:
        stored = quorum_voters(log_dir)
        if stored is not None and stored[1] != configured:
            words = (
                f"Configured voter set: {sorted(configured)} is different from the voter set read from the state file:"
                f" {sorted(stored[1])}."
            )
            return LoadFails("java.lang.IllegalStateException", words, f"{METADATA_FOLDER}/{QUORUM_STATE}")
    return None


def lacks_voters(around: Surroundings, log_dirs: Sequence[LogDir], rules: StartRules) -> bool:
    """Whether a controller has bootstrap servers alone, and no metadata log of it names voters (KIP-853)."""
    if not rules.has_bootstrap_servers or around.settings is None or "controller" not in (around.roles or ()):
        return False
    folders = [log_dir.path / METADATA_FOLDER for log_dir in log_dirs]
    logged = (voters_in(folder).directories for folder in folders if folder.is_dir())
    return not around.settings.values.get(VOTERS, "").strip() and not any(logged)


def unformatted(around: Surroundings, paths: Sequence[Path]) -> list[Path]:
    """The folders beside the directories in the evidence that `log.dirs` lists, and that are no log directories."""
    lacking = around.settings.lacking_dirs if around.settings else []
    beside = [paths[0].parent / Path(name).name for name in lacking]
    return [path for path in beside if path.is_dir() and not path.is_symlink() and path not in paths]


def metadata_elsewhere(around: Surroundings, paths: Sequence[Path]) -> LoadFails | None:
    """Why a node ends that has a metadata log outside of the directory which is to hold it."""
    home = around.settings.metadata_dir if around.settings else ""
    names = {path.name for path in paths}
    if Path(home).name not in names:
        return None
    for path in paths:
        if path.name != Path(home).name and (path / METADATA_FOLDER).exists():
            words = (
                f"Found unexpected metadata location in data directory `{path / METADATA_FOLDER}` (the configured metadata"
                f" directory is {home})."
            )
            return LoadFails("org.apache.kafka.common.KafkaException", words, METADATA_FOLDER)
    return None
