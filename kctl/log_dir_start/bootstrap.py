"""Reading `bootstrap.checkpoint` and the newest metadata snapshot as a KRaft node does when it starts.

The former is read without checksums, and every record. Of the latter each batch is checked; one that is cut short ends it
quietly.

Source: metadata/src/main/java/org/apache/kafka/metadata/{bootstrap/BootstrapDirectory,bootstrap/BootstrapMetadata,
util/BatchFileReader}.java @ 3.3.0 to 4.3.0, raft/src/main/java/org/apache/kafka/raft/internals/RecordsIterator.java,
clients/src/main/java/org/apache/kafka/common/record/ByteBufferLogInputStream.java @ 3.9.1
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from formats.errors import FormatError
from formats.log.records import LogEntry, iterate_records, walk
from formats.log_dir.file_names import BOOTSTRAP_CHECKPOINT
from formats.messages.cluster_metadata import read_metadata_record
from kctl.cluster.feature_levels import LEVELS, METADATA_VERSION
from kctl.errors import KctlError
from kctl.internal_topics.cluster_image import read_image, snapshots
from kctl.log_dir_start.batches import LoadedBatches
from kctl.log_dir_start.configured import RUNTIME
from kctl.log_dir_start.failures import LoadFails
from kctl.log_dir_start.rules import StartRules
from kctl.replication.rules import parse_version
from kctl.scan.source import Source, opened_source


def bootstrap_failure(file: Path, rules: StartRules, *, is_new: bool) -> LoadFails | None:
    """Why the node ends when it reads the file; None where it reads it, or there is none.

    `is_new`: the metadata log is empty, so that the node writes what the file holds to it.
    """
    if not rules.has_metadata_version:
        return None
    levels: list[int] = []
    try:
        with opened_source(file) as source:
            for level in _levels(source, file):
                if (is_new or rules.resolves_bootstrap_level) and not is_known(level, rules):
                    words = f"No MetadataVersion with feature level {level}"
                    return LoadFails("java.lang.IllegalArgumentException", words, BOOTSTRAP_CHECKPOINT)
                levels.append(level)
    except LoadFails as failure:
        return failure
    except OSError:
        return None
    if levels:
        return None
    words = (
        f"No FeatureLevelRecord for {METADATA_VERSION} was found in the bootstrap metadata from the binary bootstrap metadata"
        f" file: {file}"
    )
    return LoadFails(RUNTIME, words, BOOTSTRAP_CHECKPOINT)


def snapshot_failure(folder: Path) -> LoadFails | None:
    """Why the node ends when it loads the newest snapshot in its metadata log's folder; None where it loads it."""
    live = [path for _, path in snapshots(folder) if path.suffix == ".checkpoint"]
    if not live:
        return None
    path = live[-1]
    file = f"{folder.name}/{path.name}"
    try:
        with opened_source(path) as source:
            batches = LoadedBatches(source, 0, source.size, check_crc=True)
            count = sum(len(headers) for headers in batches)
    except OSError:
        return None
    if batches.corrupt is not None:
        words = batches.corrupt.replace("Found record size", "Record size").replace(
            "smaller than minimum", "is less than the minimum"
        )
        return LoadFails("org.apache.kafka.common.errors.CorruptRecordException", words, file)
    if not count:
        return LoadFails("java.util.NoSuchElementException", "No value present", file)
    return None


def is_empty(folder: Path) -> bool:
    """Whether a metadata log sets no metadata version, or is not there; one that cannot be read is not empty."""
    try:
        return not read_image(folder)[0].features
    except FileNotFoundError:
        return True
    except (KctlError, OSError):
        return False


def level_failure(folder: Path, rules: StartRules) -> LoadFails | None:
    """Why a controller ends when it loads its metadata log: a metadata version that it does not know; None else.

    Its loader of metadata fails in these words. The controller proper reads the record in another thread, and fails with
    a `RuntimeException` ("this controller only supports versions"): the log has one of them or both.
    """
    if not rules.has_metadata_version:
        return None
    try:
        level = read_image(folder)[0].features.get(METADATA_VERSION)
    except (KctlError, OSError):
        return None
    if level is None or is_known(level, rules):
        return None
    words = f"No MetadataVersion with feature level {level}"
    return LoadFails("java.lang.IllegalArgumentException", words, folder.name)


def levels_in(file: Path) -> list[int]:
    """The metadata versions that the file sets, as far as it can be read."""
    levels: list[int] = []
    with suppress(LoadFails, OSError), opened_source(file) as source:
        levels.extend(_levels(source, file))
    return levels


def release_of(level: int) -> str | None:
    """The first release that knows a metadata version, such as `3.9`; None of one that kctl does not know either."""
    names = (known.release for known in LEVELS[METADATA_VERSION] if known.level == level)
    return next((name.partition("-")[0] for name in names), None)


def is_known(level: int, rules: StartRules) -> bool:
    """Whether the version's software knows a metadata version."""
    release = release_of(level)
    return release is not None and parse_version(release)[:2] <= parse_version(rules.kafka_version)[:2]


def _levels(source: Source, file: Path) -> Iterator[int]:
    batches = LoadedBatches(source, 0, source.size, check_crc=False)
    for headers in batches:
        for position, end in zip(headers.position.tolist(), headers.next_position.tolist(), strict=True):
            yield from _levels_of_batch(source, position, end)
    if batches.corrupt is not None:
        raise LoadFails(
            "org.apache.kafka.common.errors.CorruptRecordException",
            f"{batches.corrupt} in file {file}.",
            BOOTSTRAP_CHECKPOINT,
        )


def _levels_of_batch(source: Source, position: int, end: int) -> Iterator[int]:
    entry = next(iter(walk(source, position=position, end=end, check_crc=False)), None)
    if not isinstance(entry, LogEntry) or entry.batch is None:
        raise LoadFails(
            "org.apache.kafka.common.errors.CorruptRecordException", "Record is corrupt", BOOTSTRAP_CHECKPOINT
        )
    try:
        for record in iterate_records(entry):
            if entry.batch.is_control:
                continue
            metadata = read_metadata_record(record.value or b"")
            if metadata.type == "FEATURE_LEVEL_RECORD" and metadata.values["name"] == METADATA_VERSION:
                yield metadata.values["feature_level"]
    except FormatError as error:
        raise LoadFails(
            "org.apache.kafka.common.InvalidRecordException", str(error), BOOTSTRAP_CHECKPOINT
        ) from error
