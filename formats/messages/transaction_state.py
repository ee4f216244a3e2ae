"""Records of `__transaction_state`: what the coordinator knows of each transactional id.

Source: transaction-coordinator/src/main/resources/common/message/TransactionLog{Key,Value}.json @ 3.9.0-rc3 and 4.3.0;
core/src/main/scala/kafka/coordinator/transaction/TransactionMetadata.scala @ 3.9.0-rc3
"""

import enum
from typing import NamedTuple

from formats.binary.layout import Bytes
from formats.errors import FormatError
from formats.messages.reading import read_message, take
from formats.messages.schema import Values, parse

MESSAGES = parse("""
TransactionLogKey 0
  transactional_id string

TopicPartitions
  topic string, partition_ids []int32
TransactionLogValue 0-1 flexible 1+
  producer_id int64
  previous_producer_id int64 1+ tag 0 = -1
  next_producer_id int64 1+ tag 1 = -1
  producer_epoch int16
  next_producer_epoch int16 1+ tag 3 = -1
  transaction_timeout_ms int32, transaction_status int8, transaction_partitions ?[]TopicPartitions
  transaction_last_update_timestamp_ms int64, transaction_start_timestamp_ms int64
  client_transaction_version int16 1+ tag 2
""")
KEY, VALUE = MESSAGES["TransactionLogKey"], MESSAGES["TransactionLogValue"]


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


class UnknownTransactionRecord(FormatError):
    """A key of a version from the future; `position` is that version."""


class TransactionRecord(NamedTuple):
    """A record of the topic; no value is a tombstone."""

    transactional_id: str
    version: int | None
    value: Values | None


def read_transaction_record(key: Bytes, value: Bytes | None) -> TransactionRecord:
    """The record; `UnknownTransactionRecord` for a key from the future, `FormatError` for bytes that are not one."""
    raw, position = take(key, 0, 2)
    kind = int.from_bytes(raw, "big", signed=True)
    if kind not in KEY.versions:
        raise UnknownTransactionRecord(f"key version {kind} is unknown", kind)
    transactional_id = read_message(KEY, kind, key, position)[0]["transactional_id"]
    if value is None:
        return TransactionRecord(transactional_id, None, None)
    raw, position = take(value, 0, 2)
    version = int.from_bytes(raw, "big", signed=True)
    if version not in VALUE.versions:
        raise FormatError(f"Unknown version {version} from the transaction log message value", 0)
    return TransactionRecord(transactional_id, version, read_message(VALUE, version, value, position)[0])
