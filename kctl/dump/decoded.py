"""What records say where their meaning is known: control records, and those of internal topics.

A topic's line in the table names the function that turns key and value into an object; it raises
`FormatError` for bytes that are none.
"""

import json
from collections.abc import Callable
from importlib import import_module

from formats import control_records
from formats.errors import FormatError
from formats.record_batch import Record
from formats.transaction_state import read_transaction_record

Decode = Callable[[bytes | None, bytes | None], object]


def group_record(key: bytes | None, value: bytes | None) -> object:
    """A record of `__consumer_offsets`: Kafka's JSON of key and value, a tombstone's value null."""
    decoders = import_module("formats.kafka_decoders")
    consumer_offsets = import_module("formats.consumer_offsets")
    consumer_offsets.read_group_record(key or b"", value)  # raises where the text would be an excuse
    key_text, value_text = decoders.offsets_texts(key or b"", value, 0)
    return {"key": json.loads(key_text), "value": None if value is None else json.loads(value_text)}


def transaction_record(key: bytes | None, value: bytes | None) -> object:
    """A record of `__transaction_state`."""
    record = read_transaction_record(key or b"", value)
    return {"transactional_id": record.transactional_id, "version": record.version, "value": record.value}


def metadata_record(key: bytes | None, value: bytes | None) -> object:
    """A record of `__cluster_metadata`."""
    import_module("formats.cluster_metadata").read_metadata_record(value or b"")
    _, text = import_module("formats.kafka_decoders").metadata_texts(key, value, 0)
    return json.loads(text)


TOPICS: dict[str, Decode] = {
    "__consumer_offsets": group_record,
    "__transaction_state": transaction_record,
    "__cluster_metadata": metadata_record,
}


def decoded(topic: str | None, is_control: bool, record: Record) -> object:
    """What the record says; None where its topic says nothing special or it cannot be read."""
    try:
        if is_control:
            return control_records.fields_of(record.key, record.value)
        decode = TOPICS.get(topic or "")
        return decode(record.key, record.value) if decode else None
    except (FormatError, ValueError):
        return None
