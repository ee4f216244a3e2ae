"""Which rule of a start holds in which version of Kafka: one table, newest first.

Source: core/src/main/scala/kafka/log/{Log,LogLoader,LogManager,LogSegment}.scala @ 0.8.2.2 to 3.9.0-rc3; what loads a log
in 4.0 to 4.3 is storage/src/main/java/org/apache/kafka/storage/internals/log/LogLoader.java with the same rules.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, TypeVar

from kctl.cluster.versions import FIRST_UNKNOWN
from kctl.errors import BadValue
from kctl.replication.rules import parse_version

T = TypeVar("T")


class Swap(enum.StrEnum):
    """What becomes of `.swap` files."""

    RENAME = "rename"  # segments in their range are deleted first
    RECOVER = "recover"  # recovered, then put in the place of the segments in its range
    REPLACE = "replace"  # renamed at once, the index is deleted


class IndexCheck(enum.StrEnum):
    """What becomes of an offset or time index that is there and is corrupt."""

    NONE = "none"  # it is not looked at
    REBUILD = "rebuild"
    FATAL = "fatal"  # after recovery, the process ends


class StartRules(NamedTuple):
    """The rules of one version."""

    kafka_version: str
    swap: Swap
    index_check: IndexCheck
    cleaned_limits_swap: bool  # swap files from the first `.cleaned` offset on are deleted (KAFKA-6264)
    has_log_start: bool  # log-start-offset-checkpoint
    has_epochs: bool
    has_snapshots: bool
    end_below_start_deletes: bool  # a log that ends below the log start of the checkpoint is deleted
    end_below_start_clears_epochs: bool
    removes_stray_snapshots: bool
    io_error_takes_directory: bool  # else it ends the process
    storage_error_takes_directory: bool  # KafkaStorageException with an IOException in it
    knows_index_cache: bool  # remote-log-index-cache is no partition
    skips_metadata_log: bool
    has_time_index: bool
    has_topic_ids: bool
    allows_index_of_base: bool  # the last entry of an index may name the base offset
    splits_overflow: bool  # a batch that the index cannot hold makes Kafka split the segment (KAFKA-6264)
    indexes_last_offset: bool  # an index entry names the last offset of its batch (KAFKA-6530)
    recovers_epoch_0: bool  # recovery assigns epoch 0 to a cache that has none
    has_ensemble: bool  # MetaPropertiesEnsemble, KIP-858
    magic_2: bool  # whether it knows batches of magic 2
    takes_snapshot_at_end: bool  # of the state of producers, when a log is loaded; before, at every segment
    takes_snapshot_before_recovery: bool
    bad_number_is_io: bool  # a word for a number in a checkpoint is an IOException
    wraps_io: bool  # an IOException of a checkpoint becomes a KafkaStorageException
    notices_missing_index: bool  # 0.9 to 0.10.0, and 1.1 to 2.2, make the file before they look for it
    deleted_log_ends_at_0: bool  # the end of a log in a -delete folder is not read
    swap_index_deletes_indexes: bool  # an .index.swap takes the live indexes with it
    searches_base_offsets: bool  # where an offset is looked for, batches are compared by their base offsets
    strays_lack_topic_id: (
        bool  # a KRaft folder without topic id is a stray one; before, the node does not start
    )
    renames_strays: bool  # a KRaft node renames stray folders; before, it deletes them
    knows_future: bool
    knows_delete: bool
    knows_stray: bool
    kafka_exception: str  # the class
    checks_cluster_id: bool  # of meta.properties against that of ZooKeeper
    compares_voters: bool  # of quorum-state with those of the settings
    needs_roles: bool  # there is no mode with ZooKeeper
    has_bootstrap_servers: bool  # controller.quorum.bootstrap.servers instead of voters (KIP-853)
    has_metadata_version: bool  # in the metadata log and in bootstrap.checkpoint (KIP-778)
    resolves_bootstrap_level: (
        bool  # the metadata version of bootstrap.checkpoint, also where the metadata log has one
    )
    starts_epochs_at_checkpoint: bool  # epochs are cut at the checkpoint's log start, not at the log's
    small_size_ends_log: (
        bool  # a size below that of a message ends a log quietly, where no offset is looked for
    )
    bad_checkpoint_ends_process: bool  # recovery points that cannot be read; later versions begin at 0
    looks_for_hyphen: bool  # in a folder's name; before, the name is cut at the place -1
    checks_partition_number: bool  # in a folder's name; before, whatever follows the hyphen is read as one


# First version of each rule, newest first.
SWAPS = (((3, 0), Swap.RENAME), ((0, 9), Swap.RECOVER), ((0,), Swap.REPLACE))
INDEX_CHECKS = (((2, 3), IndexCheck.NONE), ((0, 9), IndexCheck.REBUILD), ((0,), IndexCheck.FATAL))
CLEANED_LIMITS_SWAP = (2, 0)
LOG_START = (0, 11)
EPOCHS = (0, 11)
SNAPSHOTS = (0, 11)
END_BELOW_START = (2, 2)
END_BELOW_START_CLEARS_EPOCHS = (2, 8)
STRAY_SNAPSHOTS = (2, 8)
IO_ERROR = (1, 0)
STORAGE_ERROR = (3, 2)
INDEX_CACHE = (3, 4)
METADATA_LOG = (3, 0)
TIME_INDEX = (0, 10, 1)
TOPIC_IDS = (2, 8)
SPLITS_OVERFLOW = (2, 0)
ALLOWS_INDEX_OF_BASE = (2, 0)
INDEXES_LAST_OFFSET = (2, 0)
RECOVERS_EPOCH_0 = (2, 6)
ENSEMBLE = (3, 7)
MAGIC_2 = (0, 11)
SNAPSHOT_AT_END = (2, 0)
SNAPSHOT_BEFORE_RECOVERY = ((1, 0), (2, 0))
NUMBERS_UNCHECKED = (3, 1)
WRAPS_IO = (1, 0)
MISSING_INDEX_UNNOTICED = (((0, 9), (0, 10, 1)), ((1, 1), (2, 3)))
DELETED_LOG_ENDS_AT_0 = (1, 0)
SWAP_INDEX_DELETES = (1, 1)
BASE_OFFSETS_SEARCHED = (4, 1)
STRAYS_LACK_TOPIC_ID = (3, 7, 1)
RENAMED_STRAYS = (3, 6, 1)
FUTURE = (1, 1)
DELETE = (0, 10, 2)
STRAY = (3, 6)
COMMON_KAFKA_EXCEPTION = (2, 0)
STARTS_EPOCHS_AT_CHECKPOINT = (3, 0)
CHECKS_CLUSTER_ID = (2, 4)
VOTERS_UNCOMPARED = (3, 8)
NEEDS_ROLES = (4, 0)
BOOTSTRAP_SERVERS = (3, 9)
METADATA_VERSIONS = (3, 3)
RESOLVES_NO_BOOTSTRAP_LEVEL = (4, 1)
SMALL_SIZE_IS_CORRUPT = (0, 10, 2)
CHECKPOINT_FALLS_BACK = (0, 9)
LOOKS_FOR_HYPHEN = (0, 9)
CHECKS_PARTITION_NUMBER = (0, 10, 2)


FIRST = (0, 8, 2)


def start_rules(kafka_version: str) -> StartRules:
    """The rules of a version such as `3.9` or `2.8.2`; `BadValue` where it is none, or one whose rules kctl does not know."""
    version = parse_version(kafka_version)
    if not FIRST <= version < FIRST_UNKNOWN:
        newest = f"{FIRST_UNKNOWN.major}.{FIRST_UNKNOWN.minor - 1}"
        raise BadValue(
            f"kctl knows no rules of Kafka {kafka_version}: it forecasts starts of 0.8.2 to {newest}",
            "name the version of Apache Kafka that is started: --kafka-version 2.8",
        )
    return StartRules(
        kafka_version,
        swap=_first(SWAPS, version),
        index_check=_first(INDEX_CHECKS, version),
        cleaned_limits_swap=version >= CLEANED_LIMITS_SWAP,
        has_log_start=version >= LOG_START,
        has_epochs=version >= EPOCHS,
        has_snapshots=version >= SNAPSHOTS,
        end_below_start_deletes=version >= END_BELOW_START,
        end_below_start_clears_epochs=version >= END_BELOW_START_CLEARS_EPOCHS,
        removes_stray_snapshots=version >= STRAY_SNAPSHOTS,
        io_error_takes_directory=version >= IO_ERROR,
        storage_error_takes_directory=version >= STORAGE_ERROR,
        knows_index_cache=version >= INDEX_CACHE,
        skips_metadata_log=version >= METADATA_LOG,
        has_time_index=version >= TIME_INDEX,
        has_topic_ids=version >= TOPIC_IDS,
        allows_index_of_base=version >= ALLOWS_INDEX_OF_BASE,
        splits_overflow=version >= SPLITS_OVERFLOW,
        indexes_last_offset=version >= INDEXES_LAST_OFFSET,
        recovers_epoch_0=version >= RECOVERS_EPOCH_0,
        has_ensemble=version >= ENSEMBLE,
        magic_2=version >= MAGIC_2,
        takes_snapshot_at_end=version >= SNAPSHOT_AT_END,
        takes_snapshot_before_recovery=SNAPSHOT_BEFORE_RECOVERY[0] <= version < SNAPSHOT_BEFORE_RECOVERY[1],
        bad_number_is_io=version < NUMBERS_UNCHECKED,
        wraps_io=version >= WRAPS_IO,
        notices_missing_index=not any(since <= version < before for since, before in MISSING_INDEX_UNNOTICED),
        deleted_log_ends_at_0=version >= DELETED_LOG_ENDS_AT_0,
        swap_index_deletes_indexes=version >= SWAP_INDEX_DELETES,
        searches_base_offsets=version >= BASE_OFFSETS_SEARCHED,
        strays_lack_topic_id=version >= STRAYS_LACK_TOPIC_ID,
        renames_strays=version >= RENAMED_STRAYS,
        knows_future=version >= FUTURE,
        knows_delete=version >= DELETE,
        knows_stray=version >= STRAY,
        kafka_exception="org.apache.kafka.common.KafkaException"
        if version >= COMMON_KAFKA_EXCEPTION
        else "kafka.common.KafkaException",
        checks_cluster_id=version >= CHECKS_CLUSTER_ID,
        needs_roles=version >= NEEDS_ROLES,
        has_bootstrap_servers=version >= BOOTSTRAP_SERVERS,
        has_metadata_version=version >= METADATA_VERSIONS,
        resolves_bootstrap_level=version < RESOLVES_NO_BOOTSTRAP_LEVEL,
        compares_voters=version < VOTERS_UNCOMPARED,
        starts_epochs_at_checkpoint=version >= STARTS_EPOCHS_AT_CHECKPOINT,
        small_size_ends_log=version < SMALL_SIZE_IS_CORRUPT,
        bad_checkpoint_ends_process=version < CHECKPOINT_FALLS_BACK,
        looks_for_hyphen=version >= LOOKS_FOR_HYPHEN,
        checks_partition_number=version >= CHECKS_PARTITION_NUMBER,
    )


def _first(rules: tuple[tuple[tuple[int, ...], T], ...], version: tuple[int, ...]) -> T:
    return next(rule for since, rule in rules if version >= since)
