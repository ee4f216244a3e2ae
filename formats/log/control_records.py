"""Control records: the keys and values of control batches.

LEADER_CHANGE had type 3 in the preview of KRaft (2.7 and 2.8); since 3.0 it is 2 and 3 is SNAPSHOT_HEADER.
Kafka reads the values of KRaft's control records as schema version 0 whatever their first field says.

Source: clients/src/main/java/org/apache/kafka/common/record/{ControlRecordType,EndTransactionMarker,ControlRecordUtils}.java,
clients/src/main/resources/common/message/{LeaderChangeMessage,SnapshotHeaderRecord,SnapshotFooterRecord,KRaftVersionRecord,VotersRecord}.json @ 3.9.0-rc3
"""

import enum
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import NamedTuple

from formats.binary.layout import int16, int32, read, write
from formats.binary.varint import after_tags, read_unsigned
from formats.errors import FormatError, Truncated

Fields = dict[str, "Value"]
Value = int | str | list[Fields] | Fields


class ControlType(enum.IntEnum):
    """Types since 3.0; any other number is kept and shown as UNKNOWN."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


NAMES = {int(type_): type_.name for type_ in ControlType}


class ControlKey(NamedTuple):
    """The key of a control record."""

    version: int16
    type: int16

    @property
    def name(self) -> str:
        """Kafka's name of the type, UNKNOWN where it has none."""
        return NAMES.get(self.type, "UNKNOWN")


class EndTransactionMarker(NamedTuple):
    """The value of ABORT and COMMIT."""

    version: int16
    coordinator_epoch: int32


def read_key(key: bytes | None) -> ControlKey:
    """The key; `FormatError` where it is short or its version negative."""
    if key is None or len(key) < 4:
        raise FormatError(f"control record's key has {len(key or b'')} bytes, 4 are needed", 0)
    control_key = read(ControlKey, key)
    if control_key.version < 0:
        raise FormatError(f"control record's version is {control_key.version}", 0)
    return control_key


def read_marker(value: bytes | None) -> EndTransactionMarker:
    """The value of an end marker."""
    if value is None or len(value) < 6:
        raise FormatError(f"end marker's value has {len(value or b'')} bytes, 6 are needed", 0)
    marker = read(EndTransactionMarker, value)
    if marker.version < 0:
        raise FormatError(f"end marker's version is {marker.version}", 0)
    return marker


def write_marker(type_: ControlType, coordinator_epoch: int) -> tuple[bytes, bytes]:
    """Key and value of an end marker."""
    return write(ControlKey(0, type_)), write(EndTransactionMarker(0, coordinator_epoch))


# --- KRaft's control values: flexible schemas of version 0 --------------------------------------------

Reader = Callable[[bytes, int], tuple[Value, int]]


def _fixed(width: int, signed: bool = True) -> Reader:
    def read_fixed(data: bytes, position: int) -> tuple[Value, int]:
        end = position + width
        if end > len(data):
            raise Truncated(f"{width} bytes are needed", position)
        return int.from_bytes(data[position:end], "big", signed=signed), end

    return read_fixed


def _uuid(data: bytes, position: int) -> tuple[Value, int]:
    end = position + 16
    if end > len(data):
        raise Truncated("16 bytes are needed", position)
    return urlsafe_b64encode(data[position:end]).decode().rstrip("="), end


def _string(data: bytes, position: int) -> tuple[Value, int]:
    size, start = read_unsigned(data, position)
    end = start + size - 1
    if size == 0 or end > len(data):
        raise FormatError(f"string of {size - 1} bytes", position)
    return data[start:end].decode("utf-8", "replace"), end


def _struct(*fields: tuple[str, Reader]) -> Reader:
    def read_struct(data: bytes, position: int) -> tuple[Value, int]:
        row: Fields = {}
        for name, reader in fields:
            row[name], position = reader(data, position)
        return row, after_tags(data, position)

    return read_struct


def _array(item: Reader) -> Reader:
    def read_array(data: bytes, position: int) -> tuple[Value, int]:
        count, position = read_unsigned(data, position)
        if count - 1 > len(data) - position:
            raise FormatError(f"array of {count - 1} items", position)
        rows: list[Fields] = []
        for _ in range(count - 1):
            row, position = item(data, position)
            assert isinstance(row, dict)
            rows.append(row)
        return rows, position

    return read_array


INT16, UINT16, INT32, INT64 = _fixed(2), _fixed(2, signed=False), _fixed(4), _fixed(8)
VOTER = _struct(("voterId", INT32))
ENDPOINT = _struct(("name", _string), ("host", _string), ("port", UINT16))
VERSIONS = _struct(("minSupportedVersion", INT16), ("maxSupportedVersion", INT16))

SCHEMAS: dict[int, Reader] = {
    ControlType.LEADER_CHANGE: _struct(
        ("version", INT16), ("leaderId", INT32), ("voters", _array(VOTER)), ("grantingVoters", _array(VOTER))
    ),
    ControlType.SNAPSHOT_HEADER: _struct(("version", INT16), ("lastContainedLogTimestamp", INT64)),
    ControlType.SNAPSHOT_FOOTER: _struct(("version", INT16)),
    ControlType.KRAFT_VERSION: _struct(("version", INT16), ("kRaftVersion", INT16)),
    ControlType.KRAFT_VOTERS: _struct(
        ("version", INT16),
        (
            "voters",
            _array(
                _struct(
                    ("voterId", INT32),
                    ("voterDirectoryId", _uuid),
                    ("endpoints", _array(ENDPOINT)),
                    ("kRaftVersionFeature", VERSIONS),
                )
            ),
        ),
    ),
}
PREVIEW_LEADER_CHANGE = _struct(
    ("leaderId", INT32), ("voters", _array(VOTER)), ("grantingVoters", _array(VOTER))
)


def read_value(type_: int, value: bytes | None) -> Fields:
    """The fields of a KRaft control value, named as Kafka's JSON names them."""
    if type_ not in SCHEMAS:
        raise FormatError(f"control type {type_} has no schema", 0)
    fields, _ = SCHEMAS[type_](value or b"", 0)
    assert isinstance(fields, dict)
    return fields


def read_preview_leader_change(value: bytes | None) -> Fields:
    """The fields of a leader change of 2.7 and 2.8, whose type is 3."""
    fields, _ = PREVIEW_LEADER_CHANGE(value or b"", 0)
    assert isinstance(fields, dict)
    return fields


def fields_of(key: bytes | None, value: bytes | None) -> Fields:
    """A control record for people: its type, and the fields of its value."""
    control_key = read_key(key)
    described: Fields = {"type": control_key.type, "name": control_key.name}
    if control_key.type in (ControlType.ABORT, ControlType.COMMIT):
        return {**described, "coordinator_epoch": read_marker(value).coordinator_epoch}
    if control_key.type not in SCHEMAS:
        return described
    # The preview's leader change has the voters' array where a snapshot header has a timestamp: the header
    # is exactly 11 bytes.
    if control_key.type == ControlType.SNAPSHOT_HEADER and len(value or b"") != 11:
        return {**described, "name": "LEADER_CHANGE", "value": read_preview_leader_change(value)}
    return {**described, "value": read_value(control_key.type, value)}
