"""Key and payload of a record of an internal topic as the decoders of Kafka 3.9's dump tool print them.

Each decoder takes a record's key, value and offset and gives the texts behind ` key: ` and ` payload: `, None for
none. Bytes that cannot be read give the sentence that Kafka prints, as far as it does not come from the JVM.

Source: core/src/main/scala/kafka/tools/DumpLogSegments.scala and
core/src/main/scala/kafka/coordinator/transaction/TransactionLog.scala @ 3.9.0-rc3 (KAFKA-16470, KAFKA-16228)
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from formats.errors import FormatError
from formats.messages.cluster_metadata import BY_KEY, RECORDS, read_metadata_header, read_metadata_record
from formats.messages.consumer_offsets import (
    ASSIGNMENT,
    BY_KEY_VERSION,
    SUBSCRIPTION,
    UnknownRecordType,
    Versioned,
    read_group_record,
    read_member_part,
    version_of,
)
from formats.messages.json_text import JsonNode, json_text, message_node
from formats.messages.reading import read_message
from formats.messages.schema import Message, Struct, Versions
from formats.messages.transaction_state import (
    TransactionStatus,
    UnknownTransactionRecord,
    read_transaction_record,
)
from formats.secrets import redact_values

Texts = tuple[str | None, str | None]
Decoder = Callable[[bytes | None, bytes | None, int], Texts]

# The member fields that hold messages of their own when the group's protocol type is `consumer`.
MEMBER_PARTS = {"subscription": SUBSCRIPTION, "assignment": ASSIGNMENT}
NEWEST_KEY_VERSION = 8
"""Types from 9 on (share groups) are unknown to the dump tool of 3.9."""
NEWEST_VALUE_VERSIONS = {"OffsetCommitValue": 4, "GroupMetadataValue": 4}
"""Of 3.9; that of other values is 0. Any other version is read with the nearest of these layouts, as it was tried."""
KNOWN_TAGS = frozenset({"classic_member_metadata"})
"""Tagged fields that 3.9 has; it passes over the others."""


def _as_of_3_9(struct: Struct) -> Struct:
    fields = (
        field._replace(type=_as_of_3_9(field.type)) if isinstance(field.type, Struct) else field
        for field in struct
        if field.tag is None or field.name in KNOWN_TAGS
    )
    return Struct(struct.name, fields)


# Layouts of values by the type in the key.
VALUES: dict[int, Message] = {
    kind: value._replace(
        versions=Versions(0, NEWEST_VALUE_VERSIONS.get(value.name, 0)), fields=_as_of_3_9(value.fields)
    )
    for kind, (_, value) in BY_KEY_VERSION.items()
    if kind <= NEWEST_KEY_VERSION
}


def offsets_texts(key: bytes | None, value: bytes | None, offset: int) -> Texts:
    """A record of `__consumer_offsets`."""
    if key is None:
        return (
            f"Failed to decode message at offset {offset} using offset topic decoder (message had a missing key)",
            None,
        )
    try:
        name = read_group_record(key, None).key
        if name.version > NEWEST_KEY_VERSION:
            raise UnknownRecordType(f"record type {name.version} is unknown", name.version)
        payload = "<DELETE>" if value is None else json_text(_group_value(VALUES[name.version], value))
    except UnknownRecordType as error:
        return f"Unknown record type {error.position} at offset {offset}, skipping.", None
    except FormatError as error:
        return f"Error at offset {offset}, skipping. {error.what}", None
    return json_text({"type": str(name.version), "data": _node(name)}), payload


def _node(message: Versioned) -> dict[str, JsonNode]:
    return message_node(message.message, message.version, message.values)


def _group_value(message: Message, value: bytes) -> JsonNode:
    version = version_of(value, "value")
    layout = min(max(version, message.versions.first), message.versions.last)
    read = Versioned(message, layout, read_message(message, layout, value, 2)[0])
    return {"version": str(version), "data": _group_data(read)}


def _group_data(value: Versioned) -> JsonNode:
    node = _node(value)
    members = node.get("members")
    if node.get("protocolType") == "consumer" and isinstance(members, list):
        for member in members:
            assert isinstance(member, dict)
            for name, message in MEMBER_PARTS.items():
                raw = member.get(name)
                with suppress(FormatError):  # Kafka keeps the bytes that it cannot read
                    member[name] = _node(read_member_part(message, raw)) if isinstance(raw, bytes) else raw
    return node


def group_record_text(key: bytes, value: bytes | None) -> str:
    """A record of `__consumer_offsets` of any version that is known, as JSON like that of Kafka's tool.

    Key and value are in one object; the value of a tombstone is null. Raises FormatError.
    """
    record = read_group_record(key, value)
    read = record.value
    node: JsonNode = {
        "key": {"type": str(record.key.version), "data": _node(record.key)},
        "value": read and {"version": str(read.version), "data": _group_data(read)},
    }
    return json_text(node)


def transaction_texts(key: bytes | None, value: bytes | None, offset: int) -> Texts:
    """A record of `__transaction_state`. Kafka's tool dies on bytes that are not one; here that is said."""
    try:
        record = read_transaction_record(key or b"", value)
    except UnknownTransactionRecord as error:
        return f"unknown::version={error.position}", None
    except FormatError as error:
        return f"Error at offset {offset}, skipping. {error.what}", None
    name = f"transaction_metadata::transactionalId={record.transactional_id}"
    if record.value is None:
        return name, "<DELETE>"
    values = record.value
    status = values["transaction_status"]
    is_known = status in TransactionStatus.__members__.values()
    partitions = (
        [] if status == TransactionStatus.Empty else _partitions(values["transaction_partitions"] or ())
    )
    return name, (
        f"producerId:{values['producer_id']},producerEpoch:{values['producer_epoch']},"
        f"state={TransactionStatus(status).name if is_known else f'Unknown({status})'},"
        f"partitions=[{','.join(f'{topic}-{partition}' for topic, partition in partitions)}],"
        f"txnLastUpdateTimestamp={values['transaction_last_update_timestamp_ms']},"
        f"txnTimeoutMs={values['transaction_timeout_ms']}"
    )


def _partitions(topics: Iterable[dict[str, Any]]) -> list[tuple[str, int]]:
    return scala_set_order(
        (topic["topic"], partition) for topic in topics for partition in topic["partition_ids"]
    )


def scala_set_order(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Partitions in the order of a `scala.collection.mutable.HashSet` (2.13) of TopicPartition.

    The set has a power of two of buckets, at least 16 and more than the size / 0.75; within one the order is
    that of the mixed hash.
    """
    distinct = list(dict.fromkeys(partitions))
    buckets = 16
    while len(distinct) > buckets * 0.75:
        buckets *= 2

    def place(topic_partition: tuple[str, int]) -> tuple[int, int]:
        mixed = _mixed_hash(*topic_partition)
        return mixed & (buckets - 1), mixed - (1 << 32) if mixed >= 1 << 31 else mixed

    return sorted(distinct, key=place)


def _mixed_hash(topic: str, partition: int) -> int:
    text = 0
    for unit in _utf16(topic):
        text = (31 * text + unit) & 0xFFFFFFFF
    hashed = (31 * (31 + partition) + text) & 0xFFFFFFFF
    return hashed ^ (hashed >> 16)


def _utf16(text: str) -> Iterator[int]:
    raw = text.encode("utf-16-be", "surrogatepass")
    return (int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2))


def _metadata_error(value: bytes, error: FormatError) -> str:
    """What Kafka's tool says of a value: of wrong fields only that there are some."""
    try:
        key, _, _ = read_metadata_header(value)
    except FormatError:
        return error.what
    if key not in BY_KEY:
        return f"org.apache.kafka.common.errors.UnsupportedVersionException: {error.what}"
    return error.what if error.what.startswith("Found ") else f"Failed to deserialize record with type {key}"


def metadata_texts(key: bytes | None, value: bytes | None, offset: int, show_secrets: bool = False) -> Texts:
    """A record of `__cluster_metadata`, without its secrets unless they are asked for; there are no keys."""
    try:
        record = read_metadata_record(value or b"")
    except FormatError as error:
        return None, f"Error at {offset}, skipping. {_metadata_error(value or b'', error)}"
    values = record.values if show_secrets else redact_values(record.values)
    data = message_node(RECORDS[record.type], record.version, values)
    return None, json_text({"type": record.type, "version": record.version, "data": data})
