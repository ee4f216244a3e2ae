"""What places of the evidence state about identities.

Sources: `meta.properties` of 2.0 to 4.3, `quorum-state`, znodes (`K:zk/ZkData.scala @ 3.9.0`),
records of the metadata log (`metadata/src/main/resources/common/metadata @ 3.9.0`) and its control records (KIP-853).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError
from formats.log.control_records import ControlType, Fields, read_key, read_value
from formats.log.records import LogEntry, iterate_records, walk
from formats.log_dir.state_files import parse_quorum_state
from formats.values import Struct
from formats.znodes.json_text import parse_object
from kctl.cluster.feature_levels import METADATA_VERSION
from kctl.errors import KctlError
from kctl.evidence.model import BrokerLog, FoundEvidence, LogDir, ZnodeExport
from kctl.evidence.znodes import read_znodes
from kctl.files import read_lenient
from kctl.internal_topics.cluster_image import (
    CLUSTER_METADATA,
    ClusterImage,
    LoggedRecord,
    read_image,
    snapshots,
)
from kctl.internal_topics.reading import LIMIT, entries
from kctl.scan.source import opened_source
from kctl.text_logs.opening import chunks_of

VOTERS = (ControlType.KRAFT_VOTERS, ControlType.LEADER_CHANGE)
CLUSTER_ID_LINE = re.compile(rb"Cluster ID = ([\w-]{1,64})")
REFUSED_CLUSTER = re.compile(
    rb"The Cluster ID ([\w-]{1,64}) doesn't match stored clusterId Some\(([\w-]{1,64})\)"
)
REFUSED_LEVEL = re.compile(rb"No MetadataVersion with feature level (\d{1,9})")
VERSION_LINE = re.compile(
    rb"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\n]{0,80}\bKafka version ?: ?(\d{1,3}\.\d{1,3}(?:\.\d{1,3}){0,2})",
    re.MULTILINE,
)
TIME = re.compile(rb"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)
# On Windows the same exception says that a file is in use.
DENIED = re.compile(rb"java\.nio\.file\.AccessDeniedException(?!: [A-Za-z]:\\)|\(Permission denied\)")
OVERLAP = 4096
FURTHEST_ZONE = timedelta(hours=14)
"""How far local time may be ahead of UTC."""


def cluster_id_of(export: ZnodeExport) -> str | None:
    """The id in znode /cluster/id of an export; None without one that can be read."""
    try:
        znode = read_znodes(export.path).get("/cluster/id")
        cluster_id = parse_object(znode.data).get("id") if znode else None
    except (KctlError, FormatError):
        return None
    return cluster_id if isinstance(cluster_id, str) else None


class MetadataLog(Struct, frozen=True):
    """What a copy of the metadata log holds: the cluster, and the voters with their directories (KIP-853)."""

    folder: Path
    log_dir: LogDir
    image: ClusterImage
    voters: LoggedVoters
    level_ms: int = -1
    """When `metadata.version` was set, in milliseconds; of a snapshot, its newest record."""


def metadata_logs(evidence: FoundEvidence) -> Iterator[MetadataLog]:
    """The copy of the metadata log of each moment that reaches furthest."""
    furthest: dict[str | None, MetadataLog] = {}
    for log_dir in evidence.log_dirs:
        folder = log_dir.path / f"{CLUSTER_METADATA}-0"
        if not folder.is_dir():
            continue
        times = [-1]

        def note(_: ClusterImage, logged: LoggedRecord, times: list[int] = times) -> None:
            is_level = logged.record.type == "FEATURE_LEVEL_RECORD"
            if is_level and logged.record.values["name"] == METADATA_VERSION:
                times.append(logged.time_ms)

        try:
            image, _ = read_image(folder, watch=note)
        except KctlError:
            continue
        other = furthest.get(log_dir.moment)
        if other is None or image.end_offset > other.image.end_offset:
            furthest[log_dir.moment] = MetadataLog(folder, log_dir, image, voters_in(folder), times[-1])
    yield from furthest.values()


class LoggedVoters(NamedTuple):
    """The voters by control records: with their directories (KIP-853), and as the last elected leader counted them."""

    directories: dict[int, str] | None = None
    elected: frozenset[int] | None = None


def voters_in(folder: Path) -> LoggedVoters:
    """The voters by the newest records about them in a metadata log or its newest snapshot; None without such records."""
    newest: dict[int, tuple[int, Fields]] = {}
    of_snapshot = ((end, entry) for end, path in snapshots(folder)[-1:] for entry in _entries_of(path))
    of_log = ((entry.base_offset + 1, entry) for entry in entries(folder, []))
    for offset, entry in chain(of_snapshot, of_log):
        if entry.batch is None or not entry.batch.is_control:
            continue
        try:
            for record in iterate_records(entry, limit=LIMIT):
                type_ = read_key(record.key).type
                if type_ in VOTERS and offset >= newest.get(type_, (-1,))[0]:
                    newest[type_] = offset, read_value(type_, record.value)
        except FormatError:
            continue
    voters, elected = ([] if type_ not in newest else newest[type_][1]["voters"] for type_ in VOTERS)
    assert isinstance(voters, list) and isinstance(elected, list)  # the layouts of both records say so
    return LoggedVoters(
        {int(str(voter["voterId"])): str(voter["voterDirectoryId"]) for voter in voters} or None,
        frozenset(int(str(voter["voterId"])) for voter in elected) or None,
    )


def _entries_of(path: Path) -> Iterator[LogEntry]:
    with suppress(OSError), opened_source(path) as source:
        yield from (item for item in walk(source) if isinstance(item, LogEntry))


def quorum_voters(log_dir: LogDir) -> tuple[Path, frozenset[int]] | None:
    """The voters in the `quorum-state` of a log directory; None without any: version 1 names none."""
    path = log_dir.path / f"{CLUSTER_METADATA}-0" / "quorum-state"
    try:
        voters = parse_quorum_state(read_lenient(path)).current_voters
    except (OSError, FormatError):
        return None
    return (path, frozenset(voters)) if voters else None


class LoggedIds(NamedTuple):
    """What the lines of a broker's log state, the last of each."""

    cluster_id: str | None
    refused_level: int | None
    version: str | None = None
    is_denied: bool = False
    """Whether a file could not be opened for its owner or mode."""
    version_at: datetime | None = None
    """When the version was printed, at the earliest: the zone is unknown."""
    refused_at: datetime | None = None
    """When it refused the metadata version, at the earliest."""


def logged_ids(log: BrokerLog) -> LoggedIds:
    """The identities in the lines of a broker's log, of the last start in it; as far as it can be read."""
    cluster_id, level, version, version_at, refused_at, before = None, None, None, None, None, b""
    is_denied = False
    try:
        for chunk in chunks_of(str(log.path), lambda reason: None, follow=False):
            text = before + chunk
            is_denied = is_denied or DENIED.search(text) is not None
            for match in CLUSTER_ID_LINE.finditer(text):
                cluster_id = match[1].decode()
            for match in REFUSED_CLUSTER.finditer(text):
                cluster_id = match[1].decode()
            for match in REFUSED_LEVEL.finditer(text):
                level, refused_at = int(match[1]), _time_before(text, match.start()) or refused_at
            for match in VERSION_LINE.finditer(text):
                version = match[2].decode()
                version_at = _earliest(match[1])
            before = text[-OVERLAP:]
    except (OSError, ValueError):
        pass
    return LoggedIds(cluster_id, level, version, is_denied, version_at, refused_at)


def _time_before(text: bytes, position: int) -> datetime | None:
    """The time of the last line with one before a position in a log."""
    times = TIME.findall(text, max(position - OVERLAP, 0), position)
    return _earliest(times[-1]) if times else None


def _earliest(local: bytes) -> datetime:
    return datetime.fromisoformat(local.decode()).replace(tzinfo=UTC) - FURTHEST_ZONE
