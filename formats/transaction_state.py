"""Records of `__transaction_state`: what the coordinator knows of each transactional id.

Source: transaction-coordinator/src/main/resources/common/message/TransactionLog{Key,Value}.json @ 3.9.0-rc3 and 4.3.0;
core/src/main/scala/kafka/coordinator/transaction/TransactionMetadata.scala @ 3.9.0-rc3
"""

import enum
from typing import NamedTuple

from formats.errors import FormatError
from formats.layout import Bytes
from formats.message_schema import ALWAYS, NEVER, Field, Message, Since, Struct, Values, read_message, take

KEY = Message("TRANSACTION_LOG_KEY", 0, Since(0, 0), NEVER, Struct((Field("transactional_id", "string"),)))
VALUE = Message(
    "TRANSACTION_LOG_VALUE",
    0,
    Since(0, 1),
    Since(1),
    Struct(
        (
            Field("producer_id", "int64"),
            Field("previous_producer_id", "int64", versions=Since(1), tag=0, default=-1),
            Field("next_producer_id", "int64", versions=Since(1), tag=1, default=-1),
            Field("producer_epoch", "int16"),
            Field("next_producer_epoch", "int16", versions=Since(1), tag=3, default=-1),
            Field("transaction_timeout_ms", "int32"),
            Field("transaction_status", "int8"),
            Field(
                "transaction_partitions",
                Struct(
                    (
                        Field("topic", "string"),
                        Field("partition_ids", "int32", array=True),
                    )
                ),
                nullable=ALWAYS,
                array=True,
            ),
            Field("transaction_last_update_timestamp_ms", "int64"),
            Field("transaction_start_timestamp_ms", "int64"),
            Field("client_transaction_version", "int16", versions=Since(1), tag=2),
        )
    ),
)


class TransactionStatus(enum.IntEnum):
    """State of a transaction, with the names that Kafka prints."""

    Empty = 0
    Ongoing = 1
    PrepareCommit = 2
    PrepareAbort = 3
    CompleteCommit = 4
    CompleteAbort = 5
    Dead = 6
    PrepareEpochFence = 7


class UnknownRecordType(FormatError):
    """A key of a version from the future; `position` is that version."""


class TransactionRecord(NamedTuple):
    """A record of the topic; no value is a tombstone."""

    transactional_id: str
    version: int | None
    value: Values | None


def read_transaction_record(key: Bytes, value: Bytes | None) -> TransactionRecord:
    """The record; `UnknownRecordType` for a key from the future, `FormatError` for bytes that are not one."""
    raw, position = take(key, 0, 2)
    kind = int.from_bytes(raw, "big", signed=True)
    if kind not in KEY.versions:
        raise UnknownRecordType(f"key version {kind} is unknown", kind)
    transactional_id = read_message(KEY, kind, key, position)[0]["transactional_id"]
    if value is None:
        return TransactionRecord(transactional_id, None, None)
    raw, position = take(value, 0, 2)
    version = int.from_bytes(raw, "big", signed=True)
    if version not in VALUE.versions:
        raise FormatError(f"Unknown version {version} from the transaction log message value", 0)
    return TransactionRecord(transactional_id, version, read_message(VALUE, version, value, position)[0])
