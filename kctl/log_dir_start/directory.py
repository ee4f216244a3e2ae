"""What a start does to one log directory: its checkpoints are read, then every partition folder is loaded.

Source: core/src/main/scala/kafka/log/LogManager.scala (loadLogs, loadLog) @ 0.8.2.2 to 3.9.0-rc3
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path

from formats.log_dir.checkpoints import MalformedCheckpoint, Refusal, parse_offset_checkpoint
from formats.log_dir.file_names import CLEAN_SHUTDOWN, REMOTE_INDEX_CACHE, FolderKind, parse_partition_folder
from formats.values import Struct, field
from kctl.files import read_text
from kctl.log_dir_start.failures import LoadFails
from kctl.log_dir_start.load import PartitionStart, PartitionTask, load_partition
from kctl.log_dir_start.rules import StartRules
from kctl.model import TopicPartition

RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
METADATA_TOPIC = "__cluster_metadata"


class DirectoryStart(Struct):
    """What the start of a log directory came to."""

    path: Path
    is_clean: bool = False
    partitions: dict[str, PartitionStart] = field(default_factory=dict)  # by the folder's name
    offline: LoadFails | None = None  # why the directory goes offline
    failure: LoadFails | None = None  # why the process ends
    unknown: list[str] = field(default_factory=list)


def start_directory(
    path: Path, rules: StartRules, not_copied: Container[str] = frozenset()
) -> DirectoryStart:
    """What a broker does to the directory, but for partition folders of which not all was copied.

    Raises `OSError` where it cannot be listed.
    """
    start = DirectoryStart(path)
    names = sorted(os.listdir(path))
    start.is_clean = CLEAN_SHUTDOWN in names
    recovery_points = _offsets(start, RECOVERY_POINT, rules)
    if start.failure is not None:
        return start
    log_starts = _offsets(start, LOG_START, rules) if rules.has_log_start else {}
    folders = [name for name in names if (path / name).is_dir()]
    for name in folders:
        named = parse_partition_folder(name)
        if name == REMOTE_INDEX_CACHE and rules.knows_index_cache:
            continue
        if named is None or not _is_known(named.kind, rules):
            start.failure = _refused_name(path / name, rules)
            return start
        if name in not_copied or (named.topic == METADATA_TOPIC and rules.skips_metadata_log):
            continue
        partition = TopicPartition(named.topic, named.partition)
        task = PartitionTask(
            path / name,
            rules,
            start.is_clean,
            recovery_points.get(partition, 0),
            log_starts.get(partition, 0),
            named.kind is FolderKind.DELETE,
        )
        loaded = load_partition(task)
        start.partitions[name] = loaded
        if loaded.unknown:
            start.unknown.append(f"{name}: {loaded.unknown}")
        if loaded.failure is not None:
            _note_failure(start, loaded.failure, rules)
    return start


def read_offsets(path: Path) -> Mapping[TopicPartition, int]:
    """The offsets of a checkpoint as far as it can be read."""
    with suppress(OSError, MalformedCheckpoint, UnicodeDecodeError):
        return {
            TopicPartition(topic, number): offset
            for topic, number, offset in parse_offset_checkpoint(read_text(path))
        }
    return {}


def _refused_name(folder: Path, rules: StartRules) -> LoadFails:
    """Why the process ends over a folder that is no partition's."""
    _, hyphen, number = folder.name.rpartition("-")
    if not hyphen and not rules.looks_for_hyphen:
        words = "String index out of range: -1"
        return LoadFails("java.lang.StringIndexOutOfBoundsException", words, folder.name)
    if hyphen and not rules.checks_partition_number:
        words = f'For input string: "{number}"'
        return LoadFails("java.lang.NumberFormatException", words, folder.name)
    words = (
        f"Found directory {folder}, '{folder.name}' is not in the form of topic-partition or"
        " topic-partition.uniqueId-delete (if marked for deletion)."
    )
    return LoadFails(rules.kafka_exception, words, folder.name)


def _is_known(kind: FolderKind, rules: StartRules) -> bool:
    """Whether the version has folders of this kind."""
    known = {
        FolderKind.FUTURE: rules.knows_future,
        FolderKind.DELETE: rules.knows_delete,
        FolderKind.STRAY: rules.knows_stray,
    }
    return known.get(kind, True)


def _note_failure(start: DirectoryStart, failure: LoadFails, rules: StartRules) -> None:
    takes_directory = (failure.is_io and rules.io_error_takes_directory) or (
        failure.is_storage and rules.storage_error_takes_directory
    )
    if takes_directory:
        start.offline = start.offline or failure
    else:
        start.failure = start.failure or failure


def _offsets(start: DirectoryStart, name: str, rules: StartRules) -> Mapping[TopicPartition, int]:
    """The offsets of a checkpoint; none where the broker cannot read it: it goes on with zeros.

    Reading a malformed one ends the process of 0.8.2, and takes the directory offline from 1.0 on, though its logs are loaded.
    """
    path = start.path / name
    try:
        entries = parse_offset_checkpoint(read_text(path))
    except FileNotFoundError:
        return {}
    except (OSError, MalformedCheckpoint, UnicodeDecodeError) as error:
        is_number = isinstance(error, MalformedCheckpoint) and error.refusal is Refusal.STARTUP_FAILS
        if rules.bad_checkpoint_ends_process:
            in_header = (
                isinstance(error, MalformedCheckpoint)
                and error.what.startswith("malformed")
                and error.position <= 2
            )
            exception = "java.lang.NumberFormatException" if is_number or in_header else "java.io.IOException"
            start.failure = LoadFails(exception, str(error), name)
            return {}
        is_number = is_number and not rules.bad_number_is_io
        if rules.io_error_takes_directory and not is_number:
            words = f"Error while reading checkpoint file {path}"
            _note_failure(start, LoadFails("java.io.IOException", words, name, is_io=True), rules)
        return {}
    return {TopicPartition(topic, partition): offset for topic, partition, offset in entries}
