"""Records of `__remote_log_metadata`, the topic that says what lies in tiered storage.

A value is a frame version (1), a type, a version (0), each an unsigned varint, and a flexible message. Custom
metadata came in 3.6 as a positional field of version 0: records of 3.0 to 3.5 have one byte less and are read
with a second table. The wrong table always fails, for its length, so trying the new one first is safe.

Source: storage/src/main/resources/message/*.json and storage/.../serialization/RemoteLogMetadataSerde.java
@ 3.5.2, 3.9.0-rc3; server-common/.../serialization/AbstractApiMessageSerde.java @ 3.9.0-rc3
"""

import enum
from typing import Any, NamedTuple

from formats.errors import FormatError
from formats.layout import Bytes
from formats.message_schema import (
    ALWAYS,
    UNKNOWN_TAGGED_FIELDS,
    Field,
    Message,
    Since,
    Struct,
    Values,
    read_message,
    write_message,
)
from formats.varint import read_unsigned, write_unsigned

FRAME_VERSION = 1


class ApiKey(enum.IntEnum):
    """The type of a record."""

    SEGMENT_METADATA = 0
    SEGMENT_METADATA_UPDATE = 1
    PARTITION_DELETE = 2
    SEGMENT_METADATA_SNAPSHOT = 3


class Layout(enum.StrEnum):
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
    segment_leader_epochs: tuple[
        tuple[int, int], ...
    ]  # (epoch, first offset of it in the segment), ascending
    size_in_bytes: int
    custom_metadata: bytes | None
    state: SegmentState
    layout: Layout = Layout.WITH_CUSTOM_METADATA
    extra: Any = None  # tagged fields that this reader does not know, by struct

    @property
    def api_key(self) -> ApiKey:
        return ApiKey.SEGMENT_METADATA


class SegmentMetadataUpdate(NamedTuple):
    """Type 1: a segment reached a state. Custom metadata is replaced, by null too."""

    topic_id_partition: TopicIdPartition
    remote_log_segment_id: str
    broker_id: int
    event_timestamp: int
    custom_metadata: bytes | None
    state: SegmentState
    layout: Layout = Layout.WITH_CUSTOM_METADATA
    extra: Any = None

    @property
    def api_key(self) -> ApiKey:
        return ApiKey.SEGMENT_METADATA_UPDATE


class PartitionDelete(NamedTuple):
    """Type 2: a partition's remote log is being deleted. No shipped broker writes it."""

    topic_id_partition: TopicIdPartition
    broker_id: int
    event_timestamp: int
    state: PartitionDeleteState
    layout: Layout = Layout.WITH_CUSTOM_METADATA
    extra: Any = None

    @property
    def api_key(self) -> ApiKey:
        return ApiKey.PARTITION_DELETE


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
    layout: Layout = Layout.WITH_CUSTOM_METADATA
    extra: Any = None

    @property
    def api_key(self) -> ApiKey:
        return ApiKey.SEGMENT_METADATA_SNAPSHOT


RemoteLogMetadata = SegmentMetadata | SegmentMetadataUpdate | PartitionDelete | SegmentMetadataSnapshot

# --- the tables ---------------------------------------------------------------------------------------

_TOPIC_ID_PARTITION = Struct(
    (Field("topic", "string"), Field("topic_id", "uuid"), Field("partition", "int32"))
)
_SEGMENT_ID = Struct((Field("topic_id_partition", _TOPIC_ID_PARTITION), Field("id", "uuid")))
_EPOCH = Struct((Field("leader_epoch", "int32"), Field("offset", "int64")))
_CUSTOM = Field("custom_metadata", "bytes", nullable=ALWAYS)
_STATE = Field("state", "int8")
_COPY = (
    Field("start_offset", "int64"),
    Field("end_offset", "int64"),
    Field("broker_id", "int32"),
    Field("max_timestamp", "int64"),
    Field("event_timestamp", "int64"),
    Field("segment_leader_epochs", _EPOCH, array=True),
    Field("size_in_bytes", "int32"),
)
_WHO = (Field("broker_id", "int32"), Field("event_timestamp", "int64"))
_OF_SEGMENT = (Field("remote_log_segment_id", _SEGMENT_ID),)
_FIELDS = {
    ApiKey.SEGMENT_METADATA: (*_OF_SEGMENT, *_COPY, _CUSTOM, _STATE),
    ApiKey.SEGMENT_METADATA_UPDATE: (*_OF_SEGMENT, *_WHO, _CUSTOM, _STATE),
    ApiKey.PARTITION_DELETE: (Field("topic_id_partition", _TOPIC_ID_PARTITION), *_WHO, _STATE),
    ApiKey.SEGMENT_METADATA_SNAPSHOT: (Field("remote_log_segment_id", "uuid"), *_COPY, _CUSTOM, _STATE),
}


def _messages(with_custom: bool) -> dict[ApiKey, Message]:
    return {
        key: Message(
            key.name,
            key,
            Since(0, 0),
            ALWAYS,
            Struct(tuple(f for f in fields if with_custom or f is not _CUSTOM)),
        )
        for key, fields in _FIELDS.items()
    }


MESSAGES = {Layout.WITH_CUSTOM_METADATA: _messages(True), Layout.BEFORE_CUSTOM_METADATA: _messages(False)}


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
    if key == ApiKey.PARTITION_DELETE:
        return _read_as(Layout.WITH_CUSTOM_METADATA, ApiKey(key), value, position)
    try:
        return _read_as(Layout.WITH_CUSTOM_METADATA, ApiKey(key), value, position)
    except FormatError as error:
        try:
            return _read_as(Layout.BEFORE_CUSTOM_METADATA, ApiKey(key), value, position)
        except FormatError:
            raise error from None


def _read_as(layout: Layout, key: ApiKey, value: Bytes, position: int) -> RemoteLogMetadata:
    fields, end = read_message(MESSAGES[layout][key], 0, value, position)
    if end != len(value):
        raise FormatError(f"{len(value) - end} bytes of garbage after the record", end)
    return _typed(key, fields, layout)


def _typed(key: ApiKey, fields: Values, layout: Layout) -> RemoteLogMetadata:
    extra = _extra(fields)
    fields.pop(UNKNOWN_TAGGED_FIELDS, None)
    states = PartitionDeleteState if key == ApiKey.PARTITION_DELETE else SegmentState
    if fields["state"] not in set(states):
        raise FormatError(f"unknown state {fields['state']}", 0)
    fields["state"] = states(fields["state"])
    if key == ApiKey.PARTITION_DELETE:
        fields["topic_id_partition"] = _partition(fields["topic_id_partition"])
        return PartitionDelete(**fields, layout=layout, extra=extra)
    fields.setdefault("custom_metadata", None)
    if key in (ApiKey.SEGMENT_METADATA, ApiKey.SEGMENT_METADATA_SNAPSHOT):
        _check_copy(fields)
        fields["segment_leader_epochs"] = tuple(
            sorted({e["leader_epoch"]: e["offset"] for e in fields["segment_leader_epochs"]}.items())
        )
    if key == ApiKey.SEGMENT_METADATA_SNAPSHOT:
        return SegmentMetadataSnapshot(**fields, layout=layout, extra=extra)
    segment = fields.pop("remote_log_segment_id")
    where = {
        "topic_id_partition": _partition(segment["topic_id_partition"]),
        "remote_log_segment_id": segment["id"],
    }
    made = SegmentMetadata if key == ApiKey.SEGMENT_METADATA else SegmentMetadataUpdate
    return made(**where, **fields, layout=layout, extra=extra)


def _check_copy(fields: Values) -> None:
    """What RemoteLogSegmentMetadata's constructor asks for."""
    if fields["start_offset"] < 0 or fields["end_offset"] < fields["start_offset"]:
        raise FormatError(f"offsets {fields['start_offset']} to {fields['end_offset']} are no range", 0)
    if not fields["segment_leader_epochs"]:
        raise FormatError("the segment has no leader epoch", 0)


def _partition(fields: Values) -> TopicIdPartition:
    return TopicIdPartition(fields["topic_id"], fields["topic"], fields["partition"])


def write_remote_log_metadata(record: RemoteLogMetadata) -> bytes:
    """The value of a record, in the record's own layout."""
    key = record.api_key
    fields: Values = record._asdict()
    extra = fields.pop("extra") or {}
    layout = fields.pop("layout")
    fields["state"] = int(record.state)
    if not isinstance(record, SegmentMetadataSnapshot):
        tip = record.topic_id_partition._asdict()
        fields["topic_id_partition"] = tip
        if not isinstance(record, PartitionDelete):
            fields["remote_log_segment_id"] = {
                "topic_id_partition": fields.pop("topic_id_partition"),
                "id": record.remote_log_segment_id,
            }
    if isinstance(record, SegmentMetadata | SegmentMetadataSnapshot):
        fields["segment_leader_epochs"] = [
            {"leader_epoch": e, "offset": o} for e, o in record.segment_leader_epochs
        ]
    _put_extra(fields, extra)
    head = write_unsigned(FRAME_VERSION) + write_unsigned(key) + write_unsigned(0)
    return head + write_message(MESSAGES[layout][key], 0, fields)


def _extra(fields: Values, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Unknown tagged fields by the path of their struct; empty where there are none."""
    found = {path: fields[UNKNOWN_TAGGED_FIELDS]} if UNKNOWN_TAGGED_FIELDS in fields else {}
    for name, value in fields.items():
        if isinstance(value, dict):
            found |= _extra(value, (*path, name))
        elif isinstance(value, list) and name != UNKNOWN_TAGGED_FIELDS:
            for index, one in enumerate(value):
                found |= _extra(one, (*path, name, index))
    return found


def _put_extra(fields: Values, extra: dict[tuple[Any, ...], Any]) -> None:
    for path, tagged in extra.items():
        # A changed number of epochs leaves no place for what stood in the old ones.
        struct: Any = fields
        if len(path) > 1 and path[0] == "segment_leader_epochs" and path[1] >= len(fields[path[0]]):
            continue
        for step in path:
            struct = struct[step]
        struct[UNKNOWN_TAGGED_FIELDS] = tagged
