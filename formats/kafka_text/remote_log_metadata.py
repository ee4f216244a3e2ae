"""Remote log metadata as text: as Kafka's own formatter prints it, and as KIP-405 describes it.

What ships has no properties and prints everything; up to 3.5 it has no `customMetadata`. The text of the KIP was
never built; where it asks for a leader epoch the records have a broker id.

Source: storage/.../metadata/storage/serialization/RemoteLogMetadataSerde.java, toString of
storage/api/.../{RemoteLogSegmentMetadata,RemoteLogSegmentMetadataUpdate,RemotePartitionDeleteMetadata}.java
@ 3.5.2, 3.9.0-rc3
"""

from __future__ import annotations

import re
from string import Formatter
from typing import Any

from formats.errors import FormatError
from formats.messages.remote_log_metadata import (
    PartitionDelete,
    PartitionDeleteState,
    RecordLayout,
    RemoteLogMetadata,
    SegmentMetadata,
    SegmentMetadataSnapshot,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
)
from formats.values import Struct

TYPE_NAMES: dict[type, str] = {
    SegmentMetadata: "RemoteLogSegmentMetadata",
    SegmentMetadataUpdate: "RemoteLogSegmentMetadataUpdate",
    PartitionDelete: "RemotePartitionDeleteMetadata",
    SegmentMetadataSnapshot: "RemoteLogSegmentMetadataSnapshot",
}


# What `toString` of each event prints. Fields are named as here; `{epochs}` and `{custom}` are texts of their own.
_SEGMENT = "remoteLogSegmentId=RemoteLogSegmentId{{topicIdPartition={topic_id_partition}, id={remote_log_segment_id}}}"
EVENTS: dict[type, str] = {
    SegmentMetadata: (
        "RemoteLogSegmentMetadata{{" + _SEGMENT + ", startOffset={start_offset}, endOffset={end_offset},"
        " brokerId={broker_id}, maxTimestampMs={max_timestamp}, eventTimestampMs={event_timestamp},"
        " segmentLeaderEpochs={{{epochs}}}, segmentSizeInBytes={size_in_bytes}{custom}, state={state}}}"
    ),
    SegmentMetadataUpdate: (
        "RemoteLogSegmentMetadataUpdate{{" + _SEGMENT + "{custom}, state={state},"
        " eventTimestampMs={event_timestamp}, brokerId={broker_id}}}"
    ),
    PartitionDelete: (
        "RemotePartitionDeleteMetadata{{topicPartition={topic_id_partition}, state={state},"
        " eventTimestampMs={event_timestamp}, brokerId={broker_id}}}"
    ),
    SegmentMetadataSnapshot: (
        "RemoteLogSegmentMetadataSnapshot{{segmentId={remote_log_segment_id}, startOffset={start_offset},"
        " endOffset={end_offset}, maxTimestampMs={max_timestamp}, segmentLeaderEpochs={{{epochs}}},"
        " segmentSizeInBytes={size_in_bytes}{custom}, state={state}}}"
    ),
}
# `{custom}` of records of 3.6 and later, without custom metadata and with it; the layout before has no text for it.
NO_CUSTOM, CUSTOM = ", customMetadata=Optional.empty", ", customMetadata=Optional[CustomMetadata{%s bytes}]"
LINE = "partition: {}, offset: {}, value: "


def format_kafka_event(record: RemoteLogMetadata) -> str:
    """The text of an event's `toString`, with `customMetadata` where the record's layout has it."""
    fields: dict[str, Any] = {**record._asdict(), "state": record.state.name}
    if "segment_leader_epochs" in fields:
        epochs = fields["segment_leader_epochs"]
        fields["epochs"] = ", ".join(f"{epoch}={start}" for epoch, start in epochs)
    custom_metadata = fields.get("custom_metadata")
    fields["custom"] = (
        ""
        if record.layout is RecordLayout.BEFORE_CUSTOM_METADATA
        else NO_CUSTOM
        if custom_metadata is None
        else CUSTOM % len(custom_metadata)
    )
    return EVENTS[type(record)].format_map(fields)


def format_kafka_line(metadata_partition: int | None, offset: int | None, record: RemoteLogMetadata) -> str:
    """The line that Kafka's RemoteLogMetadataFormatter prints."""
    return LINE.format(metadata_partition, offset) + format_kafka_event(record)


# --- KIP-405's text -----------------------------------------------------------------------------------


class KipProperties(Struct, frozen=True):
    """The properties that KIP-405 gives its formatter."""

    print_partition: bool = True
    print_message_offset: bool = True
    print_version: bool = True
    print_all_event_value_fields: bool = False
    separator: str = ","


_KIP_NAMES: dict[type, str] = {**TYPE_NAMES, PartitionDelete: "DeletePartitionState"}
# Name in the KIP, name here, and whether only `print.all.event.value.fields` shows it.
_KIP_FIELDS = (
    ("start-offset", "start_offset", False),
    ("end-offset", "end_offset", False),
    ("broker-id", "broker_id", False),
    ("max-timestamp", "max_timestamp", True),
    ("segment-leader-epochs", "segment_leader_epochs", True),
    ("segment-size-in-bytes", "size_in_bytes", True),
    ("event-timestamp", "event_timestamp", True),
)


KIP_PROPERTIES = KipProperties()


def format_kip_line(
    metadata_partition: int | None,
    offset: int | None,
    record: RemoteLogMetadata,
    properties: KipProperties = KIP_PROPERTIES,
) -> str:
    """The line that KIP-405 describes."""
    parts = []
    if properties.print_partition:
        parts.append(f"partition:{metadata_partition}")
    if properties.print_message_offset:
        parts.append(f"message-offset:{offset}")
    parts.append(f"type:{_KIP_NAMES[type(record)]}")
    if properties.print_version:
        parts.append("version:0")
    parts.append(f"event-value:{_kip_value(record, properties.print_all_event_value_fields)}")
    return properties.separator.join(parts)


def _kip_value(record: RemoteLogMetadata, everything: bool) -> str:
    fields = record._asdict()
    if "segment_leader_epochs" in fields:
        epochs = ",".join(f"{epoch}:{start}" for epoch, start in fields["segment_leader_epochs"])
        fields["segment_leader_epochs"] = f"{{{epochs}}}"
    where, segment_id = fields.get("topic_id_partition"), fields.get("remote_log_segment_id")
    of = where and f"topicId:{where.topic_id},topicName:{where.topic},partition:{where.partition}}}"
    is_deletion = isinstance(record, PartitionDelete)
    pairs = [
        ("topic-id-partition", f"{{{of}") if is_deletion
        else ("remote-log-segment-id", f"{{id:{segment_id},{of}" if of else segment_id),
        *((kip, fields[name]) for kip, name, is_extra in _KIP_FIELDS if name in fields and (everything or not is_extra)),
        ("remote-partition-state" if is_deletion else "remote-log-segment-state", record.state.name),
    ]  # fmt: skip
    return "{" + ",".join(f"{name}:{value}" for name, value in pairs) + "}"


# --- reading Kafka's lines back -----------------------------------------------------------------------

_ID = "[A-Za-z0-9_-]{22}"
_PATTERNS = {
    "topic_id_partition": rf"(?P<topic_id>{_ID}):(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)",
    "remote_log_segment_id": f"(?P<remote_log_segment_id>{_ID})",
    "epochs": "(?P<epochs>[^}]*)",
    "custom": r"(?P<custom>, customMetadata=Optional(?:\.empty|\[CustomMetadata\{\d+ bytes\}\]))?",
    "state": r"(?P<state>\w+)",
}


def _pattern(template: str) -> re.Pattern[str]:
    """What matches the text that a template makes; a field without a pattern of its own is a number."""
    pieces = ((re.escape(text), name) for text, name, _, _ in Formatter().parse(template))
    return re.compile(
        "".join(text + (_PATTERNS.get(name, rf"(?P<{name}>-?\d+)") if name else "") for text, name in pieces)
    )


_EVENTS = [
    (record_type, _pattern(EVENTS[record_type]))
    for record_type in (SegmentMetadata, SegmentMetadataUpdate, PartitionDelete)
]
_LINE = re.compile(LINE.format(r"(?P<partition>-?\d+|None)", r"(?P<offset>-?\d+|None)") + "(?P<value>.*)")


def parse_kafka_line(line: str) -> tuple[int | None, int | None, RemoteLogMetadata]:
    """Partition, offset and record of a formatter's line. Custom metadata is printed as a length, and lost."""
    match = _LINE.fullmatch(line)
    if not match:
        raise FormatError("not a line of RemoteLogMetadataFormatter", 0)
    partition, offset = (
        None if match[name] == "None" else int(match[name]) for name in ("partition", "offset")
    )
    for record_type, pattern in _EVENTS:
        event = pattern.fullmatch(match["value"])
        if event:
            return partition, offset, _record(record_type, event)
    raise FormatError("not an event that RemoteLogMetadataFormatter prints", match.start("value"))


def _record(record_type: Any, event: re.Match[str]) -> RemoteLogMetadata:
    texts = event.groupdict()
    states = PartitionDeleteState if record_type is PartitionDelete else SegmentState
    if texts["state"] not in states.__members__:
        raise FormatError(f"unknown state {texts['state']}", event.start("state"))
    pairs = [pair.split("=") for pair in texts.get("epochs", "").split(", ") if "=" in pair]
    values: dict[str, Any] = {
        "topic_id_partition": TopicIdPartition(texts["topic_id"], texts["topic"], int(texts["partition"])),
        "remote_log_segment_id": texts.get("remote_log_segment_id"),
        "segment_leader_epochs": tuple((int(epoch), int(start)) for epoch, start in pairs),
        "custom_metadata": None,
        "state": states[texts["state"]],
        "layout": RecordLayout.BEFORE_CUSTOM_METADATA
        if texts.get("custom", "") is None
        else RecordLayout.WITH_CUSTOM_METADATA,
    }
    record: RemoteLogMetadata = record_type(
        **{n: values[n] if n in values else int(texts[n]) for n in record_type._fields}
    )
    return record
