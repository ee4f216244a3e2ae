"""Three small files of a log directory: `partition.metadata`, `quorum-state`, `.kafka_cleanshutdown`.

Source: storage/src/main/java/org/apache/kafka/storage/internals/checkpoint/{PartitionMetadataReadBuffer,CleanShutdownFileHandler}.java,
raft/src/main/java/org/apache/kafka/raft/FileQuorumStateStore.java @ 3.9.0-rc3
"""

import json
import re
from base64 import b64decode

from formats import bounded_json
from formats.errors import MalformedLine
from formats.values import Struct

LINE_END = re.compile(r"\r\n|\r|\n")
ZERO_ID = "A" * 22
LABELS = ("version", "topic_id")


class PartitionMetadata(Struct, frozen=True):
    """A partition folder's topic id, as Kafka writes it: base64 of 16 bytes."""

    version: int
    topic_id: str


def parse_partition_metadata(text: str) -> PartitionMetadata:
    """The topic id; `MalformedLine` where Kafka cannot read the file (an empty one is a NullPointerException)."""
    lines = LINE_END.split(text)
    version = _labelled(lines, 1)
    if not re.match(r"\+?\d{1,10}\Z", version):
        raise MalformedLine(f"version {version!r} is not a number", 1)
    topic_id = _labelled(lines, 2)
    if not is_uuid(topic_id):
        raise MalformedLine(f"topic id {topic_id!r} is not a UUID", 2)
    if topic_id.rstrip("=") == ZERO_ID:
        raise MalformedLine(f"topic id {topic_id!r} is the zero uuid", 2)
    return PartitionMetadata(int(version), topic_id.rstrip("="))


def strange_label(text: str) -> tuple[int, str] | None:
    """The first line of a readable file whose label is none that a broker writes, and this label.

    Kafka goes by the order of the lines and does not look at labels.
    """
    for number, (line, label) in enumerate(zip(LINE_END.split(text), LABELS, strict=False), 1):
        written = line.partition(":")[0]
        if written != label:
            return number, written
    return None


def _labelled(lines: list[str], number: int) -> str:
    if len(lines) < number or (len(lines) == number and not lines[-1]):
        raise MalformedLine("the file ends before this line", number)
    parts = re.split(r":\s+", lines[number - 1])
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    if len(parts) != 2:
        raise MalformedLine(f"malformed line {lines[number - 1][:80]!r}", number)
    return parts[1]


def is_uuid(text: str) -> bool:
    """Whether Kafka's Uuid.fromString takes the text."""
    try:
        raw = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return False
    return len(text) <= 24 and len(raw) == 16


def format_partition_metadata(metadata: PartitionMetadata) -> str:
    """The file as a broker writes it: no line end after the second line."""
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id}"


class QuorumState(Struct, frozen=True):
    """What a KRaft node remembers of elections; -1 stands for none, what a version has not is None."""

    data_version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    cluster_id: str | None = None
    applied_offset: int | None = None
    current_voters: tuple[int, ...] | None = None
    voted_directory_id: str | None = None


def parse_quorum_state(text: str) -> QuorumState:
    """The first line's JSON; `MalformedLine` where Kafka cannot read it."""
    line = LINE_END.split(text)[0]
    if not line:
        raise MalformedLine("the file is empty", 1)
    try:
        row = bounded_json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedLine("the line is not JSON", 1) from error
    if not isinstance(row, dict) or "data_version" not in row:
        raise MalformedLine("there is no data_version", 1)
    if row["data_version"] not in (0, 1):
        raise MalformedLine(f"unknown data_version {row['data_version']!r}", 1)
    voters = row.get("currentVoters")
    try:
        return QuorumState(
            data_version=row["data_version"],
            leader_id=_int(row, "leaderId"),
            leader_epoch=_int(row, "leaderEpoch"),
            voted_id=_int(row, "votedId"),
            cluster_id=row.get("clusterId"),
            applied_offset=row.get("appliedOffset"),
            current_voters=None if voters is None else tuple(_int(voter, "voterId") for voter in voters),
            voted_directory_id=row.get("votedDirectoryId"),
        )
    except (KeyError, TypeError) as error:
        raise MalformedLine(f"quorum state lacks {error}", 1) from error


def _int(row: dict[str, object], key: str) -> int:
    value = row[key]
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{key} as a number")
    return value


def format_quorum_state(state: QuorumState) -> str:
    """The line as a broker writes it."""
    row: dict[str, object] = {}
    if state.data_version == 0:
        row["clusterId"] = state.cluster_id or ""
    row |= {"leaderId": state.leader_id, "leaderEpoch": state.leader_epoch, "votedId": state.voted_id}
    if state.data_version == 0:
        voters = state.current_voters
        row["appliedOffset"] = state.applied_offset or 0
        row["currentVoters"] = None if voters is None else [{"voterId": voter} for voter in voters]
    else:
        row["votedDirectoryId"] = state.voted_directory_id or ZERO_ID
    return json.dumps({**row, "data_version": state.data_version}, separators=(",", ":"))


def parse_clean_shutdown(text: str) -> int | None:
    """The broker epoch in the marker (3.7 on); None where it has none: only its being there matters."""
    try:
        marker = bounded_json.loads(text)
        epoch = marker["brokerEpoch"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None


def format_clean_shutdown(broker_epoch: int) -> str:
    """The marker as 3.7 and later write it."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
