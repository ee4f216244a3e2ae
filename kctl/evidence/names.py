"""What the name of a file or folder says about the evidence in it.

Log4j rotates to `state-change.log.2026-11-21-13` or `.1`, log4j 2 and logback also to
`state-change-2026-11-21.log`; archives are gzipped or zstd-compressed (`config/log4j.properties @ 3.9.0`).
"""

import re
from collections.abc import Collection, Container
from pathlib import Path

from formats.log.other_systems import AUTOMQ_OBJECT, REDPANDA_SEGMENT, Foreign
from kctl.evidence.model import BrokerLogKind
from kctl.model import REORDERING

# What no name of a copied file has.
UNSAFE = re.compile(rf"[\x00-\x1f\x7f-\x9f/\ud800-\udfff\u2028\u2029{REORDERING}]")
LONGEST_NAME = 255

# A log directory has at least one of these; 0.8 knows no meta.properties.
LOG_DIR_FILES = frozenset(
    {
        "meta.properties",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
        ".kafka_cleanshutdown",
        "bootstrap.checkpoint",
    }
)
PARTITION_FILES = frozenset({"leader-epoch-checkpoint", "partition.metadata", "quorum-state"})
# Folders of a log directory that hold no partition (`K:log/LogManager.scala @ 3.9.0`, loadLogs).
OWN_FOLDERS = frozenset({"remote-log-index-cache"})
TIER_FOLDER = "kafka-tiered-storage"

SEGMENT_FILE = re.compile(
    r"\d{20}\.(log|index|timeindex|txnindex|snapshot)(\.(deleted|cleaned|swap))?"
    r"|\d{20}-\d{10}(-\w+)?\.checkpoint(\.(part|deleted))?"
)
REMOTE_FILE = re.compile(r"\d{20}-[\w-]{22}\.\w+")
BROKER_LOG = re.compile(
    r"(?P<kind>state-change|controller|server|log-cleaner)(?:[._-][^/]*)?\.log(?:[._-][^/]*)?", re.ASCII
)
# Names of logs that may be a broker's: captured standard output, logs of containers. Dumps and reports are `.txt`.
MAYBE_BROKER_LOG = re.compile(r"[^/]+\.(?:log|out)(?:[._-][^/]*)?", re.ASCII)
# Names of files that may hold an export of a log, which their contents tell.
MAYBE_EXPORT = re.compile(
    r"[^/.][^/]*\.(?:txt|csv|tsv|json|jsonl|ndjson|gelf|export)(?:\.(?:gz|zst|xz))?|[^/.]+", re.ASCII
)
ZNODES = re.compile(r"(?:.*[._-])?znodes?(?:[._-].*)?\.jsonl(?:\.gz|\.zst)?", re.ASCII)
TOLD_CLUSTER = (
    "metadata",
    "cluster.jsonl",
)  # folder and file of what brokers told, as `kctl collect` writes it
BROKER_FOLDER = re.compile(r"(?:.*[._-])?(?:broker|kafka|node)[._-]?(\d{1,9})", re.ASCII | re.IGNORECASE)
BROKERS_FOLDER = re.compile(r"(?:.*[._-])?(?:brokers|nodes|kafka|hosts)", re.ASCII | re.IGNORECASE)

# Redpanda's segments (`src/v/storage/fs_utils.h`); AutoMQ's objects and its write-ahead log lie in folders of a hash and
# a cluster (`s3stream/.../ObjectUtils.java`).
REDPANDA_SEGMENT_FILE = re.compile(r"\d+-\d+-v\d\.log", re.ASCII)
AUTOMQ_FOLDER = re.compile(r"/(?:[0-9a-f]{8}|[0-9A-F]{32})/_kafka_[^/]+(?:/|$)", re.ASCII)


def foreign_of(folder: Path, name: str) -> Foreign | None:
    """Which file of a system other than Kafka has this name in this folder, or None."""
    if REDPANDA_SEGMENT_FILE.fullmatch(name):
        return REDPANDA_SEGMENT
    return AUTOMQ_OBJECT if AUTOMQ_FOLDER.search(str(folder)) else None


def broker_log_kind(name: str) -> BrokerLogKind | None:
    """Which broker log a file of this name is, or None."""
    match = BROKER_LOG.fullmatch(name)
    return BrokerLogKind(match["kind"]) if match else None


def broker_id_of(name: str, above: str) -> int | None:
    """The id in a folder name such as `broker-3`, or `3` in a folder `brokers`; None where there is none."""
    match = BROKER_FOLDER.fullmatch(name)
    if match:
        return int(match[1])
    if name.isascii() and name.isdigit() and len(name) < 10 and BROKERS_FOLDER.fullmatch(above):
        return int(name)
    return None


def is_read_beside_logs(
    path: Path, root: Path, brokers: Collection[int], log_folders: Container[Path]
) -> bool:
    """Whether a log of another name below a root is read although others there have the name of a log.

    It is if its place or its lines tell one broker: `brokers` are those that its lines name, `log_folders` hold logs.
    """
    return len(brokers) == 1 or (
        not brokers
        and (
            path.parent in log_folders
            or any(
                root in folder.parents and broker_id_of(folder.name, folder.parent.name) is not None
                for folder in path.parents
            )
        )
    )


def trouble_with_name(name: str) -> str | None:
    """Why a name is not taken into a copy; None for one that is."""
    if name in ("", ".", "..") or "/" in name:
        return "no name of a file"
    if UNSAFE.search(name):
        return "control characters, or bytes that are no UTF-8, in its name"
    if len(name.encode()) > LONGEST_NAME:
        return "its name is too long"
    return None
