"""Kafka's flexible fields: round trips, unknown tags kept, arbitrary bytes never crash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.errors import FormatError, Truncated
from formats.message_schema import (
    UNKNOWN_TAGGED_FIELDS,
    Field,
    Message,
    Since,
    Struct,
    read_message,
    uuid_bytes,
    uuid_text,
    write_message,
)

MESSAGE = Message(
    "Everything",
    7,
    Since(0, 3),
    Since(2),
    Struct(
        (
            Field("flag", "bool"),
            Field("small", "int8"),
            Field("port", "uint16", versions=Since(1)),
            Field("id", "uuid"),
            Field("name", "string", nullable=Since(1)),
            Field("data", "bytes", nullable=Since(0)),
            Field(
                "items", Struct((Field("n", "int64"), Field("text", "string"))), array=True, nullable=Since(2)
            ),
            Field("more", "int32", tag=0, versions=Since(2), default=-1),
            Field("ratio", "float64", tag=3, versions=Since(3)),
        )
    ),
)
ID = "LWgrMmVrT0a__7a4SasuPA"
VALUES: dict[str, Any] = {
    "flag": True,
    "small": -3,
    "port": 65535,
    "id": ID,
    "name": "überall",
    "data": b"\0\1",
    "items": [{"n": 5, "text": "a"}, {"n": -6, "text": ""}],
    "more": -1,
    "ratio": 0.0,
}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_message_survives_the_round_trip_in_every_version(version: int) -> None:
    data = write_message(MESSAGE, version, VALUES)
    values, end = read_message(MESSAGE, version, data)
    assert end == len(data)
    expected = VALUES | ({"port": 0} if version == 0 else {})
    assert values == expected


def test_lengths_are_varints_of_one_more_where_it_is_flexible_and_fixed_where_it_is_not() -> None:
    few = {**VALUES, "items": [], "data": None, "name": "ab"}
    plain, flexible = write_message(MESSAGE, 1, few), write_message(MESSAGE, 2, few)
    assert plain == b"\x01\xfd\xff\xff" + uuid_bytes(ID) + b"\0\2ab" + b"\xff" * 4 + b"\0\0\0\0"
    assert flexible == b"\x01\xfd\xff\xff" + uuid_bytes(ID) + b"\3ab" + b"\0" + b"\1" + b"\0"


def test_tagged_fields_are_read_by_tag_and_unknown_ones_are_kept() -> None:
    values = {**VALUES, "more": 9, "ratio": 1.5, UNKNOWN_TAGGED_FIELDS: [(2, b"xyz"), (70, b"")]}
    values["items"] = [{"n": 1, "text": "t", UNKNOWN_TAGGED_FIELDS: [(0, b"\xff")]}]
    data = write_message(MESSAGE, 3, values)
    assert read_message(MESSAGE, 3, data) == (values, len(data))
    assert data.endswith(b"\2\3xyz" + b"\3\x08" + b"\x3f\xf8" + bytes(6) + b"\x46\0")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "1 bytes are promised, 0 are left"),
        (write_message(MESSAGE, 2, VALUES)[:-1], "varint is cut off"),
        (write_message(MESSAGE, 2, VALUES)[:30], "are left"),
    ],
)
def test_bytes_that_end_too_soon_are_truncated(data: bytes, why: str) -> None:
    with pytest.raises(Truncated, match=why):
        read_message(MESSAGE, 2, data)


def test_a_count_that_cannot_be_is_refused_before_anything_is_made() -> None:
    head = write_message(MESSAGE, 2, {**VALUES, "items": []})[:-2]
    with pytest.raises(Truncated, match="promises 268435454 elements"):
        read_message(MESSAGE, 2, head + b"\xff\xff\xff\x7f")


def test_null_where_it_must_not_be_unknown_versions_and_bad_text_are_format_errors() -> None:
    with pytest.raises(FormatError, match="has no version 9"):
        read_message(MESSAGE, 9, b"")
    with pytest.raises(FormatError, match="name is null"):
        read_message(MESSAGE, 0, b"\1\0" + bytes(16) + b"\xff\xff")
    with pytest.raises(FormatError, match="not UTF-8"):
        read_message(MESSAGE, 0, b"\1\0" + bytes(16) + b"\0\1\xff")


def test_a_tagged_field_must_fill_its_size() -> None:
    data = write_message(MESSAGE, 3, {**VALUES, "more": 9})
    with pytest.raises(FormatError, match="1 bytes too many"):
        read_message(MESSAGE, 3, data[:-6] + b"\0\5" + data[-4:] + b"\0")


@pytest.mark.parametrize(
    "text", ["AAAAAAAAAAAAAAAAAAAAAA", ID, "AAAAAAAAAAAAAAAAAAAAAQ", "oAtiIQ95REujbuzNd_lkLQ"]
)
def test_a_uuid_is_22_characters(text: str) -> None:
    assert uuid_text(uuid_bytes(text)) == text


@pytest.mark.parametrize("text", ["", "short", "LWgrMmVrT0a__7a4SasuPA42", "ü" * 22])
def test_what_is_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        uuid_bytes(text)


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 3))
def test_arbitrary_bytes_are_read_or_refused(data: bytes, version: int) -> None:
    try:
        values, end = read_message(MESSAGE, version, data)
    except FormatError:
        return
    assert 0 <= end <= len(data)
    again, _ = read_message(MESSAGE, version, write_message(MESSAGE, version, values))
    assert str(again) == str(values)  # as text, for NaN
