"""Log bytes with hashes in the place of contents: all but the contents is as it was, damage included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.binary.crc import crc32
from formats.compression import decompress
from formats.compression.writers import compress
from formats.errors import FormatError
from formats.log.hashed_contents import ContentHash, _is_plausible, hashed_damage, hashed_entry
from formats.log.log_bytes import LogBytes
from formats.log.message_set import read_message, write_message, write_wrapper
from formats.log.record_batch import CONTROL, Record, write_batch
from formats.log.records import Damage, DamageReason, LogEntry, iterate_records, walk
from formats.messages.cluster_metadata import MetadataRecord, read_metadata_record, write_metadata_record
from formats.messages.consumer_offsets import BY_KEY_VERSION, read_group_record, write_versioned
from formats.messages.hashed_fields import contents_of
from tests.conftest import examples
from tests.kctl.scan.test_findings import CASES, found_in
from tests.log_examples import LOG

HASH = ContentHash(b"a key that nobody has")
SECRET = b"the contents of a record"
KEY = b"a key that nobody is to see"
AT_THE_FRONT = ("base_offset", "partition_leader_epoch", "magic", "attributes")
"""Fields of the header of a batch that stay where contents may stand behind them."""


def hashed(data: bytes, topic: str | None = "orders", key: ContentHash = HASH) -> bytes:
    """The bytes of a log as a copy for others has them."""
    log, contents, out, last_offset = LogBytes(data), contents_of(topic, key), bytearray(), -1
    for item in walk(data):
        if isinstance(item, Damage):
            for piece in hashed_damage(item, log, last_offset, contents):
                out += piece
            continue
        out += hashed_entry(item, contents)
        last_offset = item.last_offset if item.crc_valid else last_offset
    return bytes(out)


def shape(data: bytes) -> Iterator[tuple[Any, ...]]:
    """What there is to see of a log but contents and the sizes of what is compressed."""
    for item in walk(data):
        if isinstance(item, Damage):
            yield item.reason, item.size_in_bytes
            continue
        header = item.header
        kept = {name: getattr(header, name) for name in header._fields}
        if not item.crc_valid and item.batch is not None and not _is_plausible(item.batch):
            kept = {name: v for name, v in kept.items() if name in AT_THE_FRONT}
        kept = {name: v for name, v in kept.items() if name not in ("crc", "batch_length", "message_size")}
        yield kept, item.crc_valid, None if header.codec else item.size_in_bytes


def records(data: bytes) -> list[Record]:
    return [record for item in walk(data) if isinstance(item, LogEntry) for record in iterate_records(item)]


def sizes(record: Record) -> tuple[Any, ...]:
    def size(field: bytes | None) -> int | None:
        return None if field is None else len(field)

    headers = [(name, size(value)) for name, value in record.headers]
    return (
        size(record.key),
        size(record.value),
        headers,
        record._replace(key=None, value=None, headers=(), crc=None),
    )


def some_records(count: int = 5) -> list[Record]:
    return [
        Record(
            10 + n, 1_700_000_000_000 + n, None if n == 3 else b"key %d" % (n % 2), None if n == 4 else SECRET * n,
            ((b"name", SECRET), (b"null", None)),
        )
        for n in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("codec", range(5))
def test_all_but_contents_stays(codec: int) -> None:
    data = write_batch(some_records(), codec=codec, producer_id=7, producer_epoch=1, base_sequence=3)
    out = hashed(data)
    assert list(shape(out)) == list(shape(data))
    before, after = records(data), records(out)
    assert list(map(sizes, after)) == list(map(sizes, before))
    assert after[0].key == after[2].key != after[1].key  # the key of 0 and 2 was one
    assert SECRET not in out and not any(SECRET in (record.value or b"") for record in after)
    assert all(a.value != b.value for a, b in zip(after, before, strict=True) if b.value)
    assert hashed(data, key=ContentHash(b"another key of sixteen")) != out


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", range(4))
def test_messages_of_old_formats_stay_but_for_their_contents(magic: int, codec: int) -> None:
    old = [record._replace(headers=()) for record in some_records()]
    if codec:
        data = write_wrapper(magic, old, codec=codec)
    else:
        data = b"".join(write_message(magic, r.offset, r.key, r.value, timestamp=r.timestamp) for r in old)
    out = hashed(data)
    assert list(shape(out)) == list(shape(data))
    assert list(map(sizes, records(out))) == list(map(sizes, records(data)))
    assert all(record.crc_valid for record in records(out))
    assert SECRET not in out and not any(SECRET in (record.value or b"") for record in records(out))


def test_control_batches_stay_as_they_are() -> None:
    data = write_batch([Record(0, 1, b"\0\0\0\1", b"\0\0\0\0\0\7")], attributes=CONTROL, producer_id=7)
    assert hashed(data) == data


def is_seen(out: bytes, *secrets: bytes) -> bool:
    """Whether ten bytes of a content stand together in what was written, or in what is packed in it."""
    plain = bytearray(out)
    for item in walk(out):
        if isinstance(item, LogEntry):
            with suppress(FormatError):
                for record in iterate_records(item):
                    plain += b"|" + (record.key or b"") + b"|" + (record.value or b"")
    return any(s[n : n + 10] in plain for s in secrets or (SECRET, KEY) for n in range(len(s) - 9))


def between(damaged: bytes, magic: int = 2) -> bytes:
    """Damaged bytes between two entries that are right."""
    if magic == 2:
        before, behind = (write_batch([Record(n, 1, KEY, SECRET)]) for n in (10, 12))
    else:
        before, behind = (write_message(magic, n, KEY, SECRET, timestamp=1) for n in (10, 12))
    return before + damaged + behind


@pytest.mark.parametrize("codec", [0, 2])
def test_what_says_it_is_control_and_is_not_is_replaced(codec: int) -> None:
    wrong = bytearray(write_batch([Record(11, 1, KEY, SECRET)]))
    wrong[22] |= CONTROL
    assert not is_seen(hashed(between(bytes(wrong))))
    right = write_batch([Record(11, 1, KEY, SECRET)], attributes=CONTROL, codec=codec)
    assert not is_seen(hashed(between(right)))
    (_, (_, is_right, _), _) = shape(hashed(between(right)))
    assert is_right


@pytest.mark.parametrize("magic", [0, 1])
def test_damaged_messages_of_old_formats_show_neither_key_nor_value(magic: int) -> None:
    fields_at = 18 + 8 * magic
    for place, flipped in (
        (17, 1),
        (17, 7),
        (fields_at + 4 + len(KEY), 0x40),
        (fields_at, 0x40),
        (fields_at + 3, 3),
    ):
        damaged = bytearray(write_message(magic, 11, KEY, SECRET, timestamp=1))
        damaged[place] ^= flipped
        data = between(bytes(damaged), magic)
        out = hashed(data)
        assert not is_seen(out), (place, flipped)
        assert list(shape(out)) == list(shape(data))
        assert found_in(out) == found_in(data)


def test_what_lies_behind_the_messages_of_a_set_is_not_to_be_seen() -> None:
    inner = write_message(1, 0, KEY, SECRET, timestamp=1) + SECRET + KEY
    message = bytearray(write_message(1, 5, None, compress(1, inner, magic=1), timestamp=1))
    message[17] |= 1
    message[12:16] = crc32(bytes(message[16:])).to_bytes(4, "big")
    (entry,) = walk(hashed(bytes(message)))
    assert isinstance(entry, LogEntry) and entry.crc_valid
    packed = read_message(bytes(entry.data)).value
    assert packed is not None and not is_seen(bytes(decompress(1, packed, magic=1)))


@pytest.mark.parametrize("length", [b"\x80\x00", b"\x81\x00", b"\x82\x00"])
def test_a_value_whose_length_is_damaged_is_not_taken_for_names_of_headers(length: bytes) -> None:
    value = b"Rb" + SECRET * 3
    damaged = bytearray(write_batch([Record(11, 1, b"key", value)]))
    at = damaged.index(value)
    damaged[at - 2 : at] = length
    assert not is_seen(hashed(between(bytes(damaged))))


def test_contents_in_the_place_of_a_header_are_not_to_be_seen() -> None:
    batch = write_batch([Record(11, 1, KEY, SECRET)])
    for data in (batch[:20] + (SECRET * 9)[: len(batch) - 20], batch[:20] + SECRET * 2):
        assert not is_seen(hashed(between(data))), data
        assert not is_seen(hashed(write_batch([Record(10, 1, KEY, SECRET)]) + data)), data


@pytest.mark.parametrize("field", ["last_offset_delta", "base_timestamp", "max_timestamp", "producer_id"])
def test_a_text_is_no_number_of_a_header(field: str) -> None:
    batch = bytearray(write_batch([Record(11, 1, KEY, SECRET)]))
    at, text = (
        {"last_offset_delta": 23, "base_timestamp": 27, "max_timestamp": 35, "producer_id": 43}[field],
        SECRET[:8],
    )
    size = 4 if field == "last_offset_delta" else 8
    batch[at : at + size] = text[:size]
    for data in (bytes(batch), bytes(batch)[:-5]):
        assert text[:size] not in hashed(between(data)) and text[:size] not in hashed(data)


@pytest.mark.slow
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_contents_that_bytes_which_are_gone_bring_into_a_header_are_not_to_be_seen(magic: int) -> None:
    """Small zeros in front of a text may be taken for an offset, and the text for the rest of a header."""
    entries = [
        write_batch([Record(n, 1_000 + n, KEY, SECRET)], base_offset=n)
        if magic == 2
        else write_message(magic, n, KEY, SECRET, timestamp=1_000 + n)
        for n in range(3)
    ]
    whole, start = b"".join(entries), len(entries[0])
    shown = [text[at : at + 9] for text in (KEY, SECRET) for at in range(len(text) - 8)]
    offsets = [bytes(5) + text[:3] for text in shown if magic == 0]  # of others it may be a time
    for first in range(start, start + 61, 1 if magic < 2 else 3):
        for gone in range(1, 75):
            out = hashed(whole[:first] + whole[first + gone :])
            assert not [text for text in shown if text in out], (first, gone)
            assert not [text for text in offsets if text in out], (first, gone)


@pytest.mark.parametrize(
    ("kind", "data"), CASES, ids=[f"{kind.code}-{n}" for n, (kind, _) in enumerate(CASES)]
)
def test_what_is_wrong_with_a_segment_is_wrong_without_contents(kind: Any, data: bytes) -> None:
    assert found_in(hashed(data)) == found_in(data)


@pytest.mark.slow
@given(st.integers(0, len(LOG) - 1), st.integers(1, 255), st.integers(0, len(LOG)))
@settings(max_examples=examples(200), deadline=None)
def test_damage_stays_the_same_damage(place: int, change: int, cut: int) -> None:
    damaged = bytearray(LOG)
    damaged[place] ^= change
    for data in (bytes(damaged), LOG[:cut], LOG[:cut] + bytes(700), LOG[:cut] + LOG[place:]):
        assert list(shape(hashed(data))) == list(shape(data))


@pytest.mark.parametrize("codec", [0, 4])
def test_contents_in_damage_are_not_to_be_seen(codec: int) -> None:
    batch = write_batch(some_records(), codec=codec)
    wrong = bytearray(batch)
    wrong[17] ^= 1
    for data in (batch + batch[:-9], SECRET * 60, bytes(wrong), bytes(wrong) + SECRET + batch, SECRET[:9]):
        out = hashed(data)
        assert SECRET not in out and SECRET[:9] not in out
        assert not any(SECRET[:9] in (record.value or b"") for record in records(out))
    torn = hashed(batch + write_batch([Record(20, 1, None, SECRET)], codec=codec)[:-9])
    assert [item.reason for item in walk(torn) if isinstance(item, Damage)] == [DamageReason.TORN_TAIL]


def test_short_contents_stay_different() -> None:
    for size in (1, 2):
        contents = [n.to_bytes(size, "big") for n in range(256**size)][:4096]
        replaced = [HASH.replaced(content) for content in contents]
        assert len(set(replaced)) == len(contents) and {len(r) for r in replaced} == {size}
        assert sum(a == b for a, b in zip(replaced, contents, strict=True)) < 8
    assert HASH.replaced(b"") == b""
    for size in range(3, 40):
        assert len(HASH.replaced(b"x" * size)) == size
        assert HASH.replaced(b"x" * size) != HASH.replaced(b"x" * (size - 1) + b"y")


def one_value(out: bytes) -> bytes:
    (record,) = records(out)
    assert record.value is not None
    return record.value


def test_of_the_metadata_log_secrets_alone_are_replaced() -> None:
    for kind, values, secret in (
        ("TOPIC_RECORD", {"name": "orders", "topic_id": "A" * 22}, ()),
        ("CONFIG_RECORD", {"resource_type": 4, "resource_name": "1", "name": "retention.ms", "value": "7"}, ()),
        ("CONFIG_RECORD", {"resource_type": 4, "resource_name": "1", "name": "ssl.key.password", "value": "hunter2"}, ("value",)),
        ("USER_SCRAM_CREDENTIAL_RECORD", {"name": "alice", "mechanism": 1, "salt": b"s" * 20, "stored_key": b"k" * 32,
                                         "server_key": b"v" * 32, "iterations": 4096}, ("salt", "stored_key", "server_key")),
    ):  # fmt: skip
        value = write_metadata_record(MetadataRecord(kind, 0, values))
        out = one_value(hashed(write_batch([Record(0, 1, None, value)]), "__cluster_metadata"))
        after = read_metadata_record(out).values
        assert {name for name in values if after[name] != values[name]} == set(secret)
        assert len(out) == len(value)


def test_of_commits_their_metadata_alone_is_replaced() -> None:
    key_message, value_message = BY_KEY_VERSION[1]
    key = write_versioned(key_message, 1, {"group": "billing", "topic": "orders", "partition": 3})
    for version in range(5):
        values = {"offset": 42, "metadata": "häufig", "commit_timestamp": 5}
        value = write_versioned(value_message, version, values)
        (record,) = records(hashed(write_batch([Record(0, 1, key, value)]), "__consumer_offsets"))
        assert record.key == key and record.value is not None
        read = read_group_record(key, record.value).value
        assert read is not None and read.values["offset"] == 42
        assert read.values["metadata"] != "häufig" and len(read.values["metadata"]) == 7
    other = Record(0, 1, b"no key", SECRET)
    assert SECRET not in hashed(write_batch([other]), "__consumer_offsets")
