"""Records of `__consumer_offsets`: offset commits, and the state of groups of every protocol.

A key starts with an int16 that is both its type and its version, a value with the int16 of its version; a null
value is a tombstone. 0.8.2 writes key version 0 and 0.9 and later version 1, with the same layout.

Source: core/src/main/scala/kafka/server/OffsetManager.scala @ 0.8.2.2;
group-coordinator/src/main/java/org/apache/kafka/coordinator/group/CoordinatorRecordSerde.java @ 3.9.0-rc3
"""

from typing import NamedTuple

from formats.errors import FormatError
from formats.group_schemas import classic, consumer, share, streams
from formats.layout import Bytes
from formats.message_schema import Message, Values, read_message, take, write_message

# Key and value of each type of record.
TYPES = (*classic.TYPES, *consumer.TYPES, *share.TYPES, *streams.TYPES)
BY_KEY_VERSION: dict[int, tuple[Message, Message]] = {
    version: pair
    for pair in TYPES
    for version in range(pair[0].versions.first, (pair[0].versions.last or 0) + 1)
}


class UnknownRecordType(FormatError):
    """A key of a type that this version of Kafka does not know; `position` is that type."""


class Versioned(NamedTuple):
    """A message with the version that it was written in."""

    message: Message
    version: int
    values: Values


class GroupRecord(NamedTuple):
    """A record of the topic; no value is a tombstone."""

    key: Versioned
    value: Versioned | None


def _version(data: Bytes, name: str) -> int:
    if len(data) < 2:
        raise FormatError(f"Could not read version from {name}'s buffer.", 0)
    return int.from_bytes(data[:2], "big", signed=True)


def read_group_record(key: Bytes, value: Bytes | None) -> GroupRecord:
    """The record; `UnknownRecordType` for a type from the future, `FormatError` for bytes that are not one."""
    kind = _version(key, "key")
    if kind not in BY_KEY_VERSION:
        raise UnknownRecordType(f"record type {kind} is unknown", kind)
    key_message, value_message = BY_KEY_VERSION[kind]
    read_key = Versioned(key_message, kind, read_message(key_message, kind, key, 2)[0])
    if value is None:
        return GroupRecord(read_key, None)
    version = _version(value, "value")
    return GroupRecord(
        read_key, Versioned(value_message, version, read_message(value_message, version, value, 2)[0])
    )


def write_versioned(message: Message, version: int, values: Values) -> bytes:
    """A key or a value: its version and its message."""
    return version.to_bytes(2, "big", signed=True) + write_message(message, version, values)


def read_member_part(message: Message, data: Bytes) -> Versioned:
    """A subscription or an assignment; newer versions are read with the newest known layout, as Kafka does."""
    raw, position = take(data, 0, 2)
    version = int.from_bytes(raw, "big", signed=True)
    return Versioned(message, version, read_message(message, version, data, position)[0])
