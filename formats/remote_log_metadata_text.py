"""Remote log metadata as text: as Kafka's own formatter prints it, and as KIP-405 describes it.

What ships has no properties and prints everything; up to 3.5 it has no `customMetadata`. The text of the KIP was
never built; where it asks for a leader epoch the records have a broker id.

Source: storage/.../metadata/storage/serialization/RemoteLogMetadataSerde.java, toString of
storage/api/.../{RemoteLogSegmentMetadata,RemoteLogSegmentMetadataUpdate,RemotePartitionDeleteMetadata}.java
@ 3.5.2, 3.9.0-rc3
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from formats.errors import FormatError
from formats.remote_log_metadata import (
    Layout,
    PartitionDelete,
    PartitionDeleteState,
    RemoteLogMetadata,
    SegmentMetadata,
    SegmentMetadataSnapshot,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
)

TYPE_NAMES: dict[type, str] = {
    SegmentMetadata: "RemoteLogSegmentMetadata",
    SegmentMetadataUpdate: "RemoteLogSegmentMetadataUpdate",
    PartitionDelete: "RemotePartitionDeleteMetadata",
    SegmentMetadataSnapshot: "RemoteLogSegmentMetadataSnapshot",
}


def format_kafka_event(record: RemoteLogMetadata) -> str:
    """The text of an event's `toString`, with `customMetadata` where the record's layout has it."""
    if isinstance(record, PartitionDelete):
        return (
            f"RemotePartitionDeleteMetadata{{topicPartition={record.topic_id_partition}, state={record.state.name},"
            f" eventTimestampMs={record.event_timestamp}, brokerId={record.broker_id}}}"
        )
    custom = _custom(record)
    if isinstance(record, SegmentMetadataUpdate):
        return (
            f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(record)}{custom},"
            f" state={record.state.name}, eventTimestampMs={record.event_timestamp}, brokerId={record.broker_id}}}"
        )
    epochs = ", ".join(f"{epoch}={start}" for epoch, start in record.segment_leader_epochs)
    offsets = f"startOffset={record.start_offset}, endOffset={record.end_offset}"
    rest = (
        f"segmentLeaderEpochs={{{epochs}}}, segmentSizeInBytes={record.size_in_bytes}{custom},"
        f" state={record.state.name}}}"
    )
    if isinstance(record, SegmentMetadataSnapshot):
        return (
            f"RemoteLogSegmentMetadataSnapshot{{segmentId={record.remote_log_segment_id}, {offsets},"
            f" maxTimestampMs={record.max_timestamp}, {rest}"
        )
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(record)}, {offsets},"
        f" brokerId={record.broker_id}, maxTimestampMs={record.max_timestamp},"
        f" eventTimestampMs={record.event_timestamp}, {rest}"
    )


def _custom(record: SegmentMetadata | SegmentMetadataUpdate | SegmentMetadataSnapshot) -> str:
    if record.layout is Layout.BEFORE_CUSTOM_METADATA:
        return ""
    held = record.custom_metadata
    text = "Optional.empty" if held is None else f"Optional[CustomMetadata{{{len(held)} bytes}}]"
    return f", customMetadata={text}"


def _segment_id(record: SegmentMetadata | SegmentMetadataUpdate) -> str:
    return f"RemoteLogSegmentId{{topicIdPartition={record.topic_id_partition}, id={record.remote_log_segment_id}}}"


def format_kafka_line(metadata_partition: int | None, offset: int | None, record: RemoteLogMetadata) -> str:
    """The line that Kafka's RemoteLogMetadataFormatter prints."""
    return f"partition: {metadata_partition}, offset: {offset}, value: {format_kafka_event(record)}"


# --- KIP-405's text -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KipProperties:
    """The properties that KIP-405 gives its formatter."""

    print_partition: bool = True
    print_message_offset: bool = True
    print_version: bool = True
    print_all_event_value_fields: bool = False
    separator: str = ","


_KIP_NAMES: dict[type, str] = {**TYPE_NAMES, PartitionDelete: "DeletePartitionState"}


def format_kip_line(
    metadata_partition: int | None,
    offset: int | None,
    record: RemoteLogMetadata,
    properties: KipProperties = KipProperties(),
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
    fields: list[tuple[str, object]] = []
    if not isinstance(record, SegmentMetadataSnapshot):
        where = record.topic_id_partition
        of = f"topicId:{where.topic_id},topicName:{where.topic},partition:{where.partition}}}"
        if isinstance(record, PartitionDelete):
            fields.append(("topic-id-partition", "{" + of))
        else:
            fields.append(("remote-log-segment-id", f"{{id:{record.remote_log_segment_id}," + of))
    else:
        fields.append(("remote-log-segment-id", record.remote_log_segment_id))
    if isinstance(record, SegmentMetadata | SegmentMetadataSnapshot):
        fields += [("start-offset", record.start_offset), ("end-offset", record.end_offset)]
    fields.append(("broker-id", record.broker_id))
    if everything and isinstance(record, SegmentMetadata | SegmentMetadataSnapshot):
        epochs = ",".join(f"{epoch}:{start}" for epoch, start in record.segment_leader_epochs)
        fields += [
            ("max-timestamp", record.max_timestamp),
            ("segment-leader-epochs", f"{{{epochs}}}"),
            ("segment-size-in-bytes", record.size_in_bytes),
        ]
    if everything:
        fields.append(("event-timestamp", record.event_timestamp))
    state = "remote-partition-state" if isinstance(record, PartitionDelete) else "remote-log-segment-state"
    fields.append((state, record.state.name))
    return "{" + ",".join(f"{name}:{value}" for name, value in fields) + "}"


# --- reading Kafka's lines back -----------------------------------------------------------------------

_TIP = r"(?P<topic_id>[A-Za-z0-9_-]{22}):(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)"
_ID = rf"RemoteLogSegmentId\{{topicIdPartition={_TIP}, id=(?P<id>[A-Za-z0-9_-]{{22}})\}}"
_CUSTOM = r"(?P<custom>, customMetadata=Optional(?:\.empty|\[CustomMetadata\{\d+ bytes\}\]))?"
_N = r"-?\d+"
_EVENTS = (
    (
        SegmentMetadata,
        re.compile(
            rf"RemoteLogSegmentMetadata\{{remoteLogSegmentId={_ID}, startOffset=(?P<start>{_N}), endOffset=(?P<end>{_N}),"
            rf" brokerId=(?P<broker>{_N}), maxTimestampMs=(?P<max>{_N}), eventTimestampMs=(?P<event>{_N}),"
            rf" segmentLeaderEpochs=\{{(?P<epochs>[^}}]*)\}}, segmentSizeInBytes=(?P<size>{_N}){_CUSTOM},"
            r" state=(?P<state>\w+)\}"
        ),
    ),
    (
        SegmentMetadataUpdate,
        re.compile(
            rf"RemoteLogSegmentMetadataUpdate\{{remoteLogSegmentId={_ID}{_CUSTOM}, state=(?P<state>\w+),"
            rf" eventTimestampMs=(?P<event>{_N}), brokerId=(?P<broker>{_N})\}}"
        ),
    ),
    (
        PartitionDelete,
        re.compile(
            rf"RemotePartitionDeleteMetadata\{{topicPartition={_TIP}, state=(?P<state>\w+),"
            rf" eventTimestampMs=(?P<event>{_N}), brokerId=(?P<broker>{_N})\}}"
        ),
    ),
)
_LINE = re.compile(
    r"partition: (?P<partition>-?\d+|None), offset: (?P<offset>-?\d+|None), value: (?P<value>.*)"
)


def parse_kafka_line(line: str) -> tuple[int | None, int | None, RemoteLogMetadata]:
    """Partition, offset and record of a formatter's line. Custom metadata is printed as a length, and lost."""
    match = _LINE.fullmatch(line)
    if not match:
        raise FormatError("no line of RemoteLogMetadataFormatter", 0)
    for made, pattern in _EVENTS:
        event = pattern.fullmatch(match["value"])
        if event:
            record = _record(made, event)
            return _number(match["partition"]), _number(match["offset"]), record
    raise FormatError("no event that RemoteLogMetadataFormatter prints", match.start("value"))


def _number(text: str) -> int | None:
    return None if text == "None" else int(text)


def _record(made: type, event: re.Match[str]) -> RemoteLogMetadata:
    where = TopicIdPartition(event["topic_id"], event["topic"], int(event["partition"]))
    broker, time = int(event["broker"]), int(event["event"])
    try:
        if made is PartitionDelete:
            return PartitionDelete(where, broker, time, PartitionDeleteState[event["state"]])
        state = SegmentState[event["state"]]
    except KeyError:
        raise FormatError(f"unknown state {event['state']}", event.start("state")) from None
    layout = Layout.WITH_CUSTOM_METADATA if event["custom"] else Layout.BEFORE_CUSTOM_METADATA
    if made is SegmentMetadataUpdate:
        return SegmentMetadataUpdate(where, event["id"], broker, time, None, state, layout)
    pairs = [pair.split("=") for pair in event["epochs"].split(", ") if "=" in pair]
    epochs = tuple((int(epoch), int(start)) for epoch, start in pairs)
    start, end, size = int(event["start"]), int(event["end"]), int(event["size"])
    return SegmentMetadata(
        where, event["id"], start, end, broker, int(event["max"]), time, epochs, size, None, state, layout
    )
