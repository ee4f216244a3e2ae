"""Which partition folders a KRaft node finds to be stray on its start, and what it does with them.

Source: core/src/main/scala/kafka/log/LogManager.scala (isStrayKraftReplica),
core/src/main/scala/kafka/server/metadata/BrokerMetadataPublisher.scala (findStrayPartitions) @ 3.0.0 to 3.9.0-rc3
"""

from __future__ import annotations

from pathlib import Path

from formats.errors import FormatError
from formats.log_dir.file_names import PARTITION_METADATA, FolderKind, PartitionFolder
from formats.log_dir.state_files import parse_partition_metadata
from kctl.copies.moments import Znodes
from kctl.files import read_lenient
from kctl.log_dir_start.failures import LoadFails
from kctl.log_dir_start.rules import StartRules
from kctl.log_dir_start.steps import StartStep, StepKind
from kctl.model import TopicPartition

SOURCE = "K:log/LogManager.scala"


def stray_step(
    folder: Path, named: PartitionFolder, broker_id: int | None, metadata: Znodes | None, rules: StartRules
) -> StartStep | None:
    """The step where the folder is a stray one; None where it belongs here, or nobody can tell.

    `LoadFails` where a node of this version does not start over a folder without topic id. `metadata` is what the metadata
    log says, None where the evidence has none.
    """
    if named.kind not in (FolderKind.LIVE, FolderKind.FUTURE):
        return None
    topic_id = _topic_id(folder)
    if topic_id is None:
        if not rules.strays_lack_topic_id:
            words = f"The log dir {folder} does not have a topic ID, which is not allowed when running in KRaft mode."
            raise LoadFails("java.lang.RuntimeException", words, folder.name)
        return _step(folder, rules, "it has no topic id")
    if metadata is None or metadata.is_zookeeper or not metadata.is_whole or broker_id is None:
        return None
    if topic_id not in metadata.topic_ids.values():
        return _step(folder, rules, f"the metadata log has no topic of id {topic_id}")
    replicas = metadata.replicas.get(TopicPartition(named.topic, named.partition))
    if replicas is not None and broker_id not in replicas:
        return _step(
            folder, rules, f"the metadata log places the replicas on {', '.join(map(str, replicas))}"
        )
    return None


def _topic_id(folder: Path) -> str | None:
    try:
        return parse_partition_metadata(read_lenient(folder / PARTITION_METADATA)).topic_id
    except (OSError, FormatError):
        return None


def _step(folder: Path, rules: StartRules, why: str) -> StartStep:
    if rules.renames_strays:
        return StartStep(StepKind.RENAME, f"renames {folder.name} to a -stray folder: {why}", source=SOURCE)
    return StartStep(StepKind.DELETE, f"deletes the folder {folder.name}: {why}", source=SOURCE)
