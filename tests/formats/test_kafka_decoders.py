"""Internal topics as Kafka 3.9's dump tool decodes them, and the formats beneath: recordings, properties."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.kafka_text.internal_topics import (
    metadata_texts,
    offsets_texts,
    scala_set_order,
    transaction_texts,
)
from formats.log import records
from formats.messages.cluster_metadata import (
    RECORDS,
    MetadataRecord,
    read_metadata_record,
    write_metadata_record,
)
from formats.messages.consumer_offsets import TYPES, read_group_record, write_versioned
from formats.messages.json_text import double_text, json_text
from formats.messages.schema import Message, Values, default_of
from formats.messages.transaction_state import read_transaction_record
from formats.messages.writing import write_message
from tests.conftest import recording, recordings

DECODERS = {
    "--offsets-decoder": offsets_texts,
    "--transaction-log-decoder": transaction_texts,
    "--cluster-metadata-decoder": metadata_texts,
}


def runs() -> Iterator[Any]:
    for name in recordings("segments"):
        for number, run in enumerate(_index(name)):
            decoder = next((a for a in run["args"] if a in DECODERS), None)
            if decoder and run["version"] == "3.9.1" and run["exit"] == 0:
                yield pytest.param(name, number, decoder, id=f"{name}{decoder}")


def _index(name: str) -> list[dict[str, Any]]:
    file = recording(name) / "expected" / "index.json"
    found: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    return found


@pytest.mark.parametrize(("name", "number", "decoder"), list(runs()))
def test_key_and_payload_are_those_that_kafka_printed(name: str, number: int, decoder: str) -> None:
    folder, run = recording(name), _index(name)[number]
    printed = gzip.decompress((folder / "expected" / run["stdout"]).read_bytes()).decode("utf-8", "replace")
    wanted = [line for line in printed.split("\n") if line.startswith("| ")]
    found = 0
    for file in run["files"]:
        for entry in records.walk((folder / file).read_bytes()):
            assert isinstance(entry, records.LogEntry)
            for record in records.records_of(entry):
                line = wanted[found]
                found += 1
                if "endTxnMarker" in line or "controlType" in line or " Snapshot" in line or " KRaft" in line:
                    continue
                key, payload = DECODERS[decoder](record.key, record.value, record.offset)
                text = (f" key: {key}" if key is not None else "") + (
                    f" payload: {payload}" if payload is not None else ""
                )
                assert text
                assert line.endswith(text)
    assert found == len(wanted) > 0


@pytest.mark.parametrize(("name", "message"), list(RECORDS.items()))
def test_metadata_records_survive_the_round_trip_in_every_version(name: str, message: Message) -> None:
    for version in range(message.versions.first, message.versions.last + 1):
        values: Values = {one.name: default_of(one) for one in message.fields}
        record = MetadataRecord(name, version, values)
        assert read_metadata_record(write_metadata_record(record)) == record


@pytest.mark.parametrize(("key", "value"), TYPES, ids=lambda m: m.name)
def test_group_records_survive_the_round_trip_in_every_version(key: Message, value: Message) -> None:
    for kind in range(key.versions.first, key.versions.last + 1):
        for version in range(value.versions.first, value.versions.last + 1):
            names = {one.name: default_of(one) for one in key.fields}
            values = {one.name: default_of(one) for one in value.fields}
            raw = write_versioned(key, kind, names), write_versioned(value, version, values)
            read = read_group_record(*raw)
            assert read.value is not None
            assert (read.key.values, read.value.values) == (names, values)


@given(st.binary(max_size=80), st.none() | st.binary(max_size=80))
def test_arbitrary_bytes_are_said_to_be_wrong_and_never_raise(key: bytes, value: bytes | None) -> None:
    for decoder in DECODERS.values():
        decoder(key, value, 7)
    for read in (read_group_record, read_transaction_record):
        try:
            read(key, value)
        except FormatError as error:
            assert error.what


GROUP = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "current_state_timestamp": 5}
OFFSET = {"offset": 5, "leader_epoch": 1, "commit_timestamp": 7, "topic_id": "AAECAwQFBgcICQoLDA0ODw"}
GROUP_TEXT = '"protocolType":"consumer","generation":1,"protocol":"range","leader":null'
OFFSET_TEXT = '{"offset":5,"leaderEpoch":1,"metadata":"","commitTimestamp":7}'


@pytest.mark.parametrize(
    ("number", "version", "layout", "values", "data"),
    [
        (1, 4, 4, GROUP, f'{{{GROUP_TEXT},"currentStateTimestamp":5,"members":[]}}'),
        (1, 5, 4, GROUP, f'{{{GROUP_TEXT},"currentStateTimestamp":5,"members":[]}}'),
        (1, -1, 0, GROUP, f'{{{GROUP_TEXT},"members":[]}}'),
        (0, 4, 4, OFFSET, OFFSET_TEXT),
        (0, 5, 4, OFFSET, OFFSET_TEXT),
        (2, 0, 0, {"epoch": 3, "metadata_hash": 9}, '{"epoch":3}'),
        (2, 1, 0, {"epoch": 3}, '{"epoch":3}'),
        (2, -1, 0, {"epoch": 3}, '{"epoch":3}'),
    ],
)
def test_values_of_versions_that_3_9_does_not_know(
    number: int, version: int, layout: int, values: Values, data: str
) -> None:
    """As the dump tool of 3.9.1 printed them; what follows a layout that it knows is passed over."""
    key, value = TYPES[number]
    nulls = {"leader": None} if number == 1 else {}
    raw = version.to_bytes(2, "big", signed=True) + write_message(value, layout, values | nulls) + bytes(4)
    name = write_versioned(key, key.versions.last, {})
    assert offsets_texts(name, raw, 0)[1] == f'{{"version":"{version}","data":{data}}}'


def test_what_cannot_be_read_is_said_as_kafka_says_it() -> None:
    assert offsets_texts(b"\x00\x63", b"", 5) == ("Unknown record type 99 at offset 5, skipping.", None)
    assert offsets_texts(b"\x00\x09\x00\x01g", None, 5) == (
        "Unknown record type 9 at offset 5, skipping.",
        None,
    )
    assert transaction_texts(b"\x00\x01", None, 5) == ("unknown::version=1", None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\x00\x02\x00", "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release of KRaft in 2.8 to newer versions are not supported."),
        (b"\x30", "Could not deserialize metadata record due to unknown frame version 48(only frame version 1 is supported)"),
        (b"\x80\x80\x02\x00", "Value for frame version was too large."),
        (None, "Error while reading frame version"),
        (b"\x01", "Error while reading type"),
        (b"\x01\x02", "Error while reading version"),
        (b"\x01\x63\x00", "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id 99"),
        (b"\x01\x02\x00\x04f", "Failed to deserialize record with type 2"),
        (b"\x01\x02\x63\x00", "Failed to deserialize record with type 2"),
        (write_metadata_record(MetadataRecord("NO_OP_RECORD", 0, {})) + b"xy", "Found 2 byte(s) of garbage after 20"),
    ],
)  # fmt: skip
def test_a_metadata_record_that_cannot_be_read(value: bytes | None, text: str) -> None:
    assert metadata_texts(None, value, 9)[1] == f"Error at 9, skipping. {text}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (1024.0, "1024.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (-1.5e-5, "-1.5E-5"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(value: float, text: str) -> None:
    assert double_text(value) == text


def test_json_is_escaped_as_jackson_does() -> None:
    assert (
        json_text({"a": 'x"\\\n\x1f\x7fé', "b": [None, True, b"\xff"]})
        == '{"a":"x\\"\\\\\\n\\u001F\x7fé","b":[null,true,"/w=="]}'
    )


def test_the_order_of_a_scala_set_does_not_depend_on_that_of_the_input() -> None:
    many = [(f"t{n}", n % 5) for n in range(40)]
    assert scala_set_order(many) == scala_set_order(reversed(many))
    assert sorted(scala_set_order(many)) == sorted(many)


def test_a_struct_that_is_null_in_a_tagged_field_is_a_zero() -> None:
    """As a 4.3 broker wrote it: a member of a KIP-848 group that does not use the classic protocol."""
    key = bytes.fromhex("0005 0006 6b6970383438 0001 6d")
    value = bytes.fromhex("0000 00 00 08 7264 6b61666b61 02 2f 01 01 000493e0 00 01 00 01 00")
    read = read_group_record(key, value)
    assert read.value is not None
    assert read.value.values["classic_member_metadata"] is None
    assert read.value.values["rebalance_timeout_ms"] == 300000
    payload = offsets_texts(key, value, 0)[1]
    assert payload is not None
    assert payload.endswith('"serverAssignor":null,"classicMemberMetadata":null}}'), payload
