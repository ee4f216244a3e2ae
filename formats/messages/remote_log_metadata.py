"""Records of `__remote_log_metadata`, the topic that says what lies in tiered storage.

A value is a frame version (1), a type, a version (0), each an unsigned varint, and a flexible message. Custom
metadata came in 3.6 as a positional field of version 0: records of 3.0 to 3.5 have one byte less and are read
with a second table. The wrong table always fails, for its length, so trying the new one first is safe. Tagged
fields that have no name here are left out: 4.x may say so that a segment has no transaction index.

Source: storage/src/main/resources/message/*.json and storage/.../serialization/RemoteLogMetadataSerde.java
@ 3.5.2, 3.9.0-rc3; server-common/.../serialization/AbstractApiMessageSerde.java @ 3.9.0-rc3
"""

import enum
from typing import Any, NamedTuple

from formats.binary.layout import Bytes
from formats.binary.varint import read_unsigned, write_unsigned
from formats.errors import FormatError
from formats.messages.reading import read_message
from formats.messages.schema import Struct, Values, parse
from formats.messages.writing import write_message

FRAME_VERSION = 1


class ApiKey(enum.IntEnum):
    """The type of a record."""

    SEGMENT_METADATA = 0
    SEGMENT_METADATA_UPDATE = 1
    PARTITION_DELETE = 2
    SEGMENT_METADATA_SNAPSHOT = 3


class RecordLayout(enum.StrEnum):
    """Which brokers write it."""

    WITH_CUSTOM_METADATA = "3.6+"
    BEFORE_CUSTOM_METADATA = "3.0-3.5"


class SegmentState(enum.IntEnum):
    """State of a remote segment (storage/api/.../RemoteLogSegmentState.java @ 3.9.0-rc3)."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class PartitionDeleteState(enum.IntEnum):
    """State of a remote partition's deletion (storage/api/.../RemotePartitionDeleteState.java @ 3.9.0-rc3)."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


class TopicIdPartition(NamedTuple):
    """A partition of a topic that is known by its id."""

    topic_id: str
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic_id}:{self.topic}-{self.partition}"


class SegmentMetadata(NamedTuple):
    """Type 0: a copy to tiered storage. Its state is COPY_SEGMENT_STARTED in every record Kafka writes."""

    topic_id_partition: TopicIdPartition
    remote_log_segment_id: str
    start_offset: int
    end_offset: int  # the last offset, not the next one
    broker_id: int
    max_timestamp: int
    event_timestamp: int
    # (epoch, first offset of it in the segment), ascending.
    segment_leader_epochs: tuple[tuple[int, int], ...]
    size_in_bytes: int
    custom_metadata: bytes | None
    state: SegmentState
    layout: RecordLayout = RecordLayout.WITH_CUSTOM_METADATA


class SegmentMetadataUpdate(NamedTuple):
    """Type 1: a segment reached a state. Custom metadata is replaced, by null too."""

    topic_id_partition: TopicIdPartition
    remote_log_segment_id: str
    broker_id: int
    event_timestamp: int
    custom_metadata: bytes | None
    state: SegmentState
    layout: RecordLayout = RecordLayout.WITH_CUSTOM_METADATA


class PartitionDelete(NamedTuple):
    """Type 2: a partition's remote log is being deleted. No shipped broker writes it."""

    topic_id_partition: TopicIdPartition
    broker_id: int
    event_timestamp: int
    state: PartitionDeleteState
    layout: RecordLayout = RecordLayout.WITH_CUSTOM_METADATA


class SegmentMetadataSnapshot(NamedTuple):
    """Type 3: an entry of a `remote_log_snapshot` file (3.1 and later); never on the topic."""

    remote_log_segment_id: str
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp: int
    event_timestamp: int
    segment_leader_epochs: tuple[tuple[int, int], ...]
    size_in_bytes: int
    custom_metadata: bytes | None
    state: SegmentState
    layout: RecordLayout = RecordLayout.WITH_CUSTOM_METADATA


RemoteLogMetadata = SegmentMetadata | SegmentMetadataUpdate | PartitionDelete | SegmentMetadataSnapshot

# --- the tables ---------------------------------------------------------------------------------------

_MESSAGES = parse("""
TopicIdPartition
  topic string, topic_id uuid, partition int32
RemoteLogSegmentId
  topic_id_partition TopicIdPartition, id uuid
SegmentLeaderEpoch
  leader_epoch int32, offset int64

RemoteLogSegmentMetadataRecord 0 flexible 0+ key 0
  remote_log_segment_id RemoteLogSegmentId
  start_offset int64, end_offset int64, broker_id int32, max_timestamp int64, event_timestamp int64
  segment_leader_epochs []SegmentLeaderEpoch, size_in_bytes int32, custom_metadata ?bytes = null, state int8

RemoteLogSegmentMetadataUpdateRecord 0 flexible 0+ key 1
  remote_log_segment_id RemoteLogSegmentId
  broker_id int32, event_timestamp int64, custom_metadata ?bytes = null, state int8

RemotePartitionDeleteMetadataRecord 0 flexible 0+ key 2
  topic_id_partition TopicIdPartition, broker_id int32, event_timestamp int64, state int8

RemoteLogSegmentMetadataSnapshotRecord 0 flexible 0+ key 3
  remote_log_segment_id uuid
  start_offset int64, end_offset int64, broker_id int32, max_timestamp int64, event_timestamp int64
  segment_leader_epochs []SegmentLeaderEpoch, size_in_bytes int32, custom_metadata ?bytes = null, state int8
""")
MESSAGES = {
    RecordLayout.WITH_CUSTOM_METADATA: {ApiKey(message.key): message for message in _MESSAGES.values()},
    RecordLayout.BEFORE_CUSTOM_METADATA: {
        ApiKey(message.key): message._replace(
            fields=Struct(message.name, (f for f in message.fields if f.name != "custom_metadata"))
        )
        for message in _MESSAGES.values()
    },
}
TYPES: dict[ApiKey, Any] = dict(
    zip(
        ApiKey,
        (SegmentMetadata, SegmentMetadataUpdate, PartitionDelete, SegmentMetadataSnapshot),
        strict=True,
    )
)
API_KEYS: dict[type, ApiKey] = {record_type: key for key, record_type in TYPES.items()}

# --- reading and writing ------------------------------------------------------------------------------


def read_remote_log_metadata(value: Bytes) -> RemoteLogMetadata:
    """The record in a value; `FormatError` for an unknown frame, type, version or state, or a wrong length."""
    frame, position = read_unsigned(value, 0)
    if frame != FRAME_VERSION:
        raise FormatError(f"frame version is {frame}, not {FRAME_VERSION}", 0)
    key, position = read_unsigned(value, position)
    if key not in set(ApiKey):
        raise FormatError(f"unknown record type {key}", 1)
    version, position = read_unsigned(value, position)
    if version != 0:
        raise FormatError(f"{ApiKey(key).name} has no version {version}", position - 1)
    try:
        return _read_as(RecordLayout.WITH_CUSTOM_METADATA, ApiKey(key), value, position)
    except FormatError as error:
        try:
            if key != ApiKey.PARTITION_DELETE:
                return _read_as(RecordLayout.BEFORE_CUSTOM_METADATA, ApiKey(key), value, position)
        except FormatError:
            pass
        raise error from None


def _read_as(layout: RecordLayout, key: ApiKey, value: Bytes, position: int) -> RemoteLogMetadata:
    fields, end = read_message(MESSAGES[layout][key], 0, value, position)
    if end != len(value):
        raise FormatError(f"{len(value) - end} bytes of garbage after the record", end)
    return _typed(key, fields, layout)


def _typed(key: ApiKey, fields: Values, layout: RecordLayout) -> RemoteLogMetadata:
    states = PartitionDeleteState if key == ApiKey.PARTITION_DELETE else SegmentState
    if fields["state"] not in set(states):
        raise FormatError(f"unknown state {fields['state']}", 0)
    fields |= {"state": states(fields["state"]), "layout": layout}
    if key != ApiKey.PARTITION_DELETE:
        fields.setdefault("custom_metadata", None)
    if key in (ApiKey.SEGMENT_METADATA, ApiKey.SEGMENT_METADATA_UPDATE):
        segment = fields["remote_log_segment_id"]
        fields |= {
            "topic_id_partition": segment["topic_id_partition"],
            "remote_log_segment_id": segment["id"],
        }
    if "topic_id_partition" in fields:
        where = fields["topic_id_partition"]
        fields["topic_id_partition"] = TopicIdPartition(where["topic_id"], where["topic"], where["partition"])
    if "segment_leader_epochs" in fields:
        _check_copy(fields)
        epochs = {epoch["leader_epoch"]: epoch["offset"] for epoch in fields["segment_leader_epochs"]}
        fields["segment_leader_epochs"] = tuple(sorted(epochs.items()))
    record: RemoteLogMetadata = TYPES[key](**{name: fields[name] for name in TYPES[key]._fields})
    return record


def _check_copy(fields: Values) -> None:
    """What RemoteLogSegmentMetadata's constructor asks for."""
    if fields["start_offset"] < 0 or fields["end_offset"] < fields["start_offset"]:
        raise FormatError(f"offsets {fields['start_offset']} to {fields['end_offset']} are not a range", 0)
    if not fields["segment_leader_epochs"]:
        raise FormatError("the segment has no leader epoch", 0)


def write_remote_log_metadata(record: RemoteLogMetadata) -> bytes:
    """The value of a record, in the record's own layout."""
    fields: Values = record._asdict()
    if isinstance(record, PartitionDelete):
        fields["topic_id_partition"] = record.topic_id_partition._asdict()
    elif not isinstance(record, SegmentMetadataSnapshot):
        where = record.topic_id_partition._asdict()
        fields["remote_log_segment_id"] = {"topic_id_partition": where, "id": record.remote_log_segment_id}
    if isinstance(record, SegmentMetadata | SegmentMetadataSnapshot):
        fields["segment_leader_epochs"] = [
            {"leader_epoch": e, "offset": o} for e, o in record.segment_leader_epochs
        ]
    key = API_KEYS[type(record)]
    head = write_unsigned(FRAME_VERSION) + write_unsigned(key) + write_unsigned(0)
    return head + write_message(MESSAGES[record.layout][key], 0, fields)
