"""Decode records whose meaning is known: control records, and those of internal topics.

A topic's line in the table names the function that turns key and value into an object; it raises
`FormatError` for bytes that are none.
"""

import json
from collections.abc import Callable
from importlib import import_module

from formats.errors import FormatError
from formats.kafka_text.dump_log_segments import Decoder, Texts
from formats.log import control_records
from formats.log.record_batch import Record
from formats.messages.transaction_state import read_transaction_record
from formats.secrets import SECRET_WORD, redact_values, withheld

Decode = Callable[[bytes | None, bytes | None], object]


def group_record(key: bytes | None, value: bytes | None) -> object:
    """A record of `__consumer_offsets`: Kafka's JSON of key and value. The value of a tombstone is null."""
    return json.loads(
        import_module("formats.kafka_text.internal_topics").group_record_text(key or b"", value)
    )


def transaction_record(key: bytes | None, value: bytes | None) -> object:
    """A record of `__transaction_state`."""
    record = read_transaction_record(key or b"", value)
    return {"transactional_id": record.transactional_id, "version": record.version, "value": record.value}


def metadata_record(key: bytes | None, value: bytes | None, show_secrets: bool = False) -> object:
    """A record of `__cluster_metadata`."""
    import_module("formats.messages.cluster_metadata").read_metadata_record(value or b"")
    texts = import_module("formats.kafka_text.internal_topics").metadata_texts(key, value, 0, show_secrets)
    return json.loads(texts[1])


METADATA_TOPIC = "__cluster_metadata"
TOPICS: dict[str, Decode] = {
    "__consumer_offsets": group_record,
    "__transaction_state": transaction_record,
    METADATA_TOPIC: metadata_record,
}


def holds_secret(topic: str | None, value: bytes | None) -> bool:
    """Whether a record's bytes hold a password or a credential, so that they are not shown."""
    if topic != METADATA_TOPIC or value is None:
        return False
    try:
        record = import_module("formats.messages.cluster_metadata").read_metadata_record(value)
    except (FormatError, ValueError):
        return SECRET_WORD.search(value) is not None
    return redact_values(record.values) is not record.values


def without_secrets(decode: Decoder) -> Decoder:
    """The same decoder of records of `__cluster_metadata`; a value that holds a secret is withheld."""

    def decode_rest(key: bytes | None, value: bytes | None, offset: int) -> Texts:
        is_secret = value is not None and holds_secret(METADATA_TOPIC, value)
        return decode(key, withheld(value).encode() if is_secret and value else value, offset)

    return decode_rest


def decoded(topic: str | None, is_control: bool, record: Record, show_secrets: bool = False) -> object:
    """The decoded record; None if its topic has no decoder or the record cannot be read."""
    try:
        if is_control:
            return control_records.fields_of(record.key, record.value)
        if topic == METADATA_TOPIC:
            return metadata_record(record.key, record.value, show_secrets)
        decode = TOPICS.get(topic or "")
        return decode(record.key, record.value) if decode else None
    except (FormatError, ValueError):
        return None
