"""Names in a log directory: partition folders, segment files and what is appended to their names.

A partition's name is parsed at the *last* dash, after a `.<id>-delete`, `-future` or `-stray` is taken off.
For `-delete` and `-stray` Kafka cuts the topic's name so that the whole fits 255 characters.

Source: core/src/main/scala/kafka/log/LocalLog.scala,
storage/src/main/java/org/apache/kafka/storage/internals/log/LogFileUtils.java,
raft/src/main/java/org/apache/kafka/snapshot/Snapshots.java @ 3.9.0-rc3
"""

import enum
import re
from typing import NamedTuple

LONGEST_NAME = 255

OFFSET_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LEADER_EPOCHS = "leader-epoch-checkpoint"
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
QUORUM_STATE = "quorum-state"
REMOTE_LOG_SNAPSHOT = "remote_log_snapshot"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
REMOTE_INDEX_CACHE = "remote-log-index-cache"


class FolderKind(enum.StrEnum):
    """What a partition folder's name says it is."""

    LIVE = "live"
    FUTURE = "future"  # being moved between log directories (1.1)
    DELETE = "delete"  # waits for its deletion (0.10.2)
    STRAY = "stray"  # metadata says that it should not be here (3.6.1)


class PartitionFolder(NamedTuple):
    """A partition folder's name, taken apart."""

    topic: str  # may be cut short where kind is delete or stray
    partition: int
    kind: FolderKind = FolderKind.LIVE
    unique_id: str | None = None


MARKED = re.compile(r"(?P<rest>\S+-\S+)\.(?P<id>\S+)-(?P<kind>delete|future|stray)\Z")
PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>\d{1,10})\Z", re.DOTALL)


def parse_partition_folder(name: str) -> PartitionFolder | None:
    """The folder that a name stands for; None where Kafka would refuse to start over it."""
    kind, unique_id = FolderKind.LIVE, None
    marked = MARKED.match(name)
    if marked:
        name, unique_id, kind = marked["rest"], marked["id"], FolderKind(marked["kind"])
    partition = PARTITION.match(name)
    if not partition or not partition["partition"].isascii() or int(partition["partition"]) >= 1 << 31:
        return None
    return PartitionFolder(partition["topic"], int(partition["partition"]), kind, unique_id)


def format_partition_folder(folder: PartitionFolder) -> str:
    """The name that Kafka would give the folder."""
    plain = f"{folder.topic}-{folder.partition}"
    if folder.kind is FolderKind.LIVE:
        return plain
    ending = f"-{folder.partition}.{folder.unique_id}-{folder.kind}"
    if folder.kind is FolderKind.FUTURE:
        return folder.topic + ending
    return folder.topic[: LONGEST_NAME - len(ending)] + ending


class FileState(enum.StrEnum):
    """What was appended to a segment file's name."""

    LIVE = ""
    DELETED = ".deleted"  # waits for file.delete.delay.ms
    CLEANED = ".cleaned"  # the cleaner, or a split, was writing it
    SWAP = ".swap"  # complete, about to replace what it was made from
    PART = ".part"  # a KRaft snapshot being written
    TMP = ".tmp"


class SegmentFile(NamedTuple):
    """A file of a partition folder whose name starts with an offset."""

    base_offset: int  # a snapshot's end, exclusive, where the suffix is .snapshot or .checkpoint
    suffix: str
    state: FileState = FileState.LIVE
    epoch: int | None = None  # of a KRaft snapshot


SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
SEGMENT_FILE = re.compile(
    r"(?P<offset>\d{1,19}|\d{20})(?P<suffix>\.log|\.index|\.timeindex|\.txnindex|\.snapshot)"
    r"(?P<state>\.deleted|\.cleaned|\.swap|\.tmp)?\Z"
)
KRAFT_SNAPSHOT = re.compile(
    r"(?P<offset>\d{20})-(?P<epoch>\d{10})(?:-[^/]*)?\.checkpoint(?P<state>\.part|\.deleted)?\Z"
)
# Copies of a tier's indexes: the segment's id may itself hold dashes and underscores.
REMOTE_INDEX = re.compile(
    r"(?P<offset>\d+)_(?P<id>[\w-]+)(?P<suffix>\.index|\.timeindex|\.txnindex)(?P<state>\.deleted|\.tmp)?\Z"
)


def parse_segment_file(name: str) -> SegmentFile | None:
    """The segment file that a name stands for; None for any other file."""
    segment = SEGMENT_FILE.match(name)
    if segment and int(segment["offset"]) < 1 << 63:
        return SegmentFile(int(segment["offset"]), segment["suffix"], FileState(segment["state"] or ""))
    kraft = KRAFT_SNAPSHOT.match(name)
    if kraft and int(kraft["offset"]) < 1 << 63:
        state = FileState(kraft["state"] or "")
        return SegmentFile(int(kraft["offset"]), ".checkpoint", state, int(kraft["epoch"]))
    cached = REMOTE_INDEX.match(name)
    if cached and len(cached["offset"]) < 20:
        return SegmentFile(int(cached["offset"]), cached["suffix"], FileState(cached["state"] or ""))
    return None


def format_segment_file(base_offset: int, suffix: str, state: FileState = FileState.LIVE) -> str:
    """The name of a segment file."""
    return f"{base_offset:020d}{suffix}{state}"


def segment_file_name(name: str) -> str:
    """The name without what marks a file as deleted, cleaned or to be swapped in."""
    for state in FileState:
        if state and name.endswith(state):
            return name.removesuffix(state)
    return name
