"""Kafka's flexible fields: round trips, unknown tags kept, arbitrary bytes never crash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.errors import FormatError, Truncated
from formats.messages.reading import read_message
from formats.messages.schema import (
    NEVER,
    NEWEST,
    UNKNOWN_TAGGED_FIELDS,
    MessageField,
    Versions,
    default_of,
    parse,
    uuid_bytes,
    uuid_text,
)
from formats.messages.writing import write_message

MESSAGE = parse("""
Item
  n int64, text string
Everything 0-3 flexible 2+
  flag bool, small int8
  port uint16 1+
  id uuid, name string, data ?bytes
  items ?[]Item
  more int32 2+ tag 0 = -1
  ratio float64 3+ tag 3
""")["Everything"]
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


def test_the_notation_says_all_of_a_message() -> None:
    found = parse("""
Part
  a string

Whole 1-2 flexible 2+ key 7
  parts ?[]Part 2+ tag 3
  on bool = true
  number int32 1 = -2

Part
  b bytes, c ?uuid
Other 5
  part Part
Later 0+
""")
    always = Versions(0, NEWEST)
    part = MessageField("a", "string", False, False, always, None, "")
    assert list(found) == ["Whole", "Other", "Later"]
    assert found["Whole"] == (
        "Whole", (1, 2), (2, NEWEST), 7,
        (
            MessageField("parts", (part,), True, True, Versions(2, NEWEST), 3, []),
            MessageField("on", "bool", False, False, always, None, True),
            MessageField("number", "int32", False, False, Versions(1, 1), None, -2),
        ),
    )  # fmt: skip
    (of_other,) = found["Other"].fields
    assert isinstance(of_other.type, tuple)
    assert [(one.name, one.nullable) for one in of_other.type] == [("b", False), ("c", True)]
    assert found["Later"] == ("Later", always, NEVER, -1, ())


@pytest.mark.parametrize("wrong", ["M 0\n  a int31", "M 0\n  a", "M 0\n  a int32 tag", "M 0 flexible", "M x"])
def test_a_notation_that_says_nothing_is_refused(wrong: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        parse(wrong)


def test_a_field_of_another_version_and_a_tagged_field_that_is_left_out_have_their_default() -> None:
    fields = parse("M 0\n  a ?string, b string, c []int8, d uuid, e bool\n  f int32 = -1, g ?[]int8 = null")[
        "M"
    ].fields
    assert [default_of(one) for one in fields] == ["", "", [], "A" * 22, False, -1, None]


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
    with pytest.raises(FormatError, match="name must not be null"):
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
