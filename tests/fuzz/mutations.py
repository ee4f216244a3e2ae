"""Mutators: a function a format from a random source and a file's bytes to the bytes of a file that is wrong.

They know the structure, so that damage reaches what lies behind the first check: CRCs are mended after most
edits, text stays lines, JSON stays JSON. Every one of them also edits raw bytes at times.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from random import Random
from struct import pack, pack_into, unpack_from
from typing import Any
from zlib import crc32

from formats.binary.crc import crc32c
from formats.errors import FormatError
from formats.log.record_batch import HEADER_SIZE, seal, write_batch
from formats.log.records import LogEntry, records_of, walk

Mutator = Callable[[Random, bytes], bytes]

EDGES = (
    0,
    1,
    -1,
    2,
    61,
    127,
    128,
    255,
    256,
    65535,
    2**31 - 1,
    -(2**31),
    2**32,
    2**53 + 1,
    2**62,
    2**63 - 1,
    -(2**63),
)
FIELDS = ((0, 8), (8, 4), (12, 4), (16, 1), (17, 4), (21, 2), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (53, 4), (57, 4))  # fmt: skip
"""Position and width of each field of a batch's header of magic 2; messages of magic 0 and 1 share the first."""
STRANGE = (
    b"", b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xe2\x80\xae", b"\x1b[31m", b"\x1b]52;c;eA==\x07",
    b"\x85", b"\xc2\x9b31m", b"\r", b"\r\n", b"\n\n", b"\t", b" ", b"'", b'"', b"\\", b"/", b"//", b"..", b"%s", b"{}", b"[]", b"null",
    b"-0", b"1e999", b"NaN", b"9" * 25, b"-" + b"9" * 25, b"\xd9\xa3", b"\xc2\xb2", b"1_0", b"+1", b"0x1", b" 1", b"[" * 200_000,
)  # fmt: skip


# --- bytes --------------------------------------------------------------------------------------------


def number(rng: Random, width: int) -> bytes:
    """A number at an edge, or any, big endian."""
    value = rng.choice(EDGES) if rng.random() < 0.8 else rng.getrandbits(64)
    return (value & (1 << 8 * width) - 1).to_bytes(width, "big")


def over(data: bytes, at: int, piece: bytes) -> bytes:
    """The bytes with a piece written over those at a position."""
    return data[:at] + piece + data[at + len(piece) :]


def some_bytes(rng: Random, data: bytes) -> bytes:
    """One edit without regard to structure."""
    at = rng.randrange(len(data) + 1)
    size = rng.choice((1, 1, 2, 4, 8, 17, 100))
    match rng.randrange(9):
        case 0 if at < len(data):
            return over(data, at, bytes([data[at] ^ 1 << rng.randrange(8)]))
        case 1:
            return over(data, at, number(rng, rng.choice((1, 2, 4, 8))))
        case 2:
            return data[:at] + data[at + size :]
        case 3:
            return data[:at] + rng.randbytes(size) + data[at:]
        case 4:
            return over(data, at, bytes(size))
        case 5:
            return data[:at]
        case 6:
            return data[at:]
        case 7:
            return data[: at + size] + data[at:]
        case _:
            return data + rng.choice((bytes(size), rng.randbytes(size), data[:size], b"\xff" * size))


def times(rng: Random, data: bytes, edit: Mutator) -> bytes:
    """Mostly one edit, at times some."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        data = edit(rng, data)
    return data


# --- logs ---------------------------------------------------------------------------------------------


def entries(data: bytes) -> list[tuple[int, int]]:
    """Position and size of each entry, as far as lengths are believable."""
    found, at = [], 0
    while at + 17 <= len(data):
        (length,) = unpack_from(">i", data, at + 8)
        if length < 14 or at + 12 + length > len(data):
            break
        found.append((at, 12 + length))
        at += 12 + length
    return found


def mended(data: bytes) -> bytes:
    """The log with the CRC of every entry made right."""
    whole = bytearray(data)
    for at, size in entries(data):
        if whole[at + 16] == 2 and size >= HEADER_SIZE:
            pack_into(">I", whole, at + 17, crc32c(bytes(whole[at + 21 : at + size])))
        elif whole[at + 16] < 2:
            pack_into(">I", whole, at + 12, crc32(bytes(whole[at + 16 : at + size])))
    return bytes(whole)


def one_entry(rng: Random, data: bytes) -> bytes:
    """A field of a header, a byte of a body, or an entry dropped, repeated or moved."""
    places = entries(data)
    if not places:
        return some_bytes(rng, data)
    at, size = rng.choice(places)
    entry = data[at : at + size]
    match rng.randrange(8):
        case 0 | 1 | 2:
            position, width = rng.choice(FIELDS)
            return data if position + width > size else over(data, at + position, number(rng, width))
        case 3 | 4 if size > HEADER_SIZE:  # a body of another size, in a batch whose length says so
            body = times(rng, entry[HEADER_SIZE:], some_bytes)
            length = pack(">i", HEADER_SIZE - 12 + len(body))
            return data[:at] + over(entry[:HEADER_SIZE], 8, length) + body + data[at + size :]
        case 5:
            return data[:at] + data[at + size :]
        case 6:
            return data[: at + size] + data[at:]
        case _:
            other = rng.choice(places)[0]
            return data[:other] + entry + data[other:]


def log(rng: Random, data: bytes) -> bytes:
    """A segment whose entries are wrong; their CRCs are mostly right."""
    data = times(rng, data, one_entry)
    if rng.random() < 0.8:
        data = mended(data)
    return some_bytes(rng, data) if rng.random() < 0.3 else data


def message_values(rng: Random, data: bytes) -> bytes:
    """A segment whose batches are right, with keys and values that are not."""
    batches = [item for item in walk(data) if isinstance(item, LogEntry) and item.batch]
    chosen = rng.choice(batches)
    out = b""
    for entry in batches:
        header, body = entry.batch, bytes(entry.data)[HEADER_SIZE:]
        assert header is not None
        if entry is not chosen:
            out += seal(header, body)
            continue
        try:
            records = records_of(entry)
        except FormatError:
            return log(rng, data)
        if not records:
            return log(rng, data)
        at = rng.randrange(len(records))
        field = rng.choice(("key", "value", "value", "value"))
        old = getattr(records[at], field)
        new = (
            None
            if rng.random() < 0.1
            else times(rng, old or b"", rng.choice((some_bytes, fields, some_json)))
        )
        records[at] = records[at]._replace(**{field: new})
        out += write_batch(
            records,
            base_offset=header.base_offset,
            partition_leader_epoch=header.partition_leader_epoch,
            attributes=header.attributes & ~7,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )
    return out


def fields(rng: Random, data: bytes) -> bytes:
    """Binary fields: a number at an edge anywhere, or a string with strange bytes of the same size."""
    if not data:
        return data
    at = rng.randrange(len(data))
    piece = number(rng, rng.choice((1, 2, 4, 8))) if rng.random() < 0.5 else rng.choice(STRANGE)[:60]
    return over(data, at, piece)[: len(data)]


def rows_of(width: int) -> Mutator:
    """Entries of one width: their fields, their order, their number."""

    def edit(rng: Random, data: bytes) -> bytes:
        count = len(data) // width
        if not count or rng.random() < 0.2:
            return some_bytes(rng, data)
        at, other = rng.randrange(count) * width, rng.randrange(count) * width
        match rng.randrange(4):
            case 0:
                return data[:at] + data[at + width :]
            case 1:
                return data[:other] + data[at : at + width] + data[other:]
            case 2:
                return over(data, at, data[other : other + width])
            case _:
                return over(data, at + rng.randrange(width) // 4 * 4, number(rng, rng.choice((4, 8))))[
                    : len(data)
                ]

    return lambda rng, data: times(rng, data, edit)


def snapshot(rng: Random, data: bytes) -> bytes:
    """A producer snapshot; its CRC is mostly right."""
    data = data[:6] + times(rng, data[6:], rng.choice((some_bytes, fields)))
    if rng.random() < 0.8:
        data = over(data, 2, pack(">I", crc32c(data[6:])))
    return some_bytes(rng, data) if rng.random() < 0.3 else data


# --- text ---------------------------------------------------------------------------------------------


def some_text(rng: Random, data: bytes) -> bytes:
    """One edit of lines, words or numbers."""
    lines = data.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    line = lines[at]
    match rng.randrange(11):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, line)
        case 2:
            lines[at], lines[other] = lines[other], line
        case 3 | 4 | 5:
            numbers = [*re.finditer(rb"-?\d+", line)]
            if numbers:
                chosen = rng.choice(numbers)
                new = str(rng.choice(EDGES)).encode() if rng.random() < 0.7 else rng.choice(STRANGE)
                lines[at] = line[: chosen.start()] + new + line[chosen.end() :]
        case 6 | 7:
            place = rng.randrange(len(line) + 1)
            lines[at] = line[:place] + rng.choice(STRANGE) + line[place + rng.choice((0, 0, 1, 5)) :]
        case 8:
            words = line.split(b" ")
            rng.shuffle(words)
            lines[at] = b" ".join(words)
        case 9:
            lines[at] = line[: rng.randrange(len(line) + 1)]
        case _:
            if rng.random() < 0.2:
                return b"\xff\xfe" + data.decode("latin-1").encode("utf-16-le")
            lines[at] = line * rng.choice((2, 50))
    return b"\n".join(lines)


def text(rng: Random, data: bytes) -> bytes:
    """A text file that is wrong."""
    return times(rng, data, some_text if rng.random() < 0.85 else some_bytes)


# --- JSON ---------------------------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**30, 1.5, 1e300, "", "a", "1", "-1", "\ud800", "\x1b[31m", "\u202e", "\0",
    "x" * 300, [], {}, [None], [[]], {"": None}, [1, 1, 1], ["a"], {"version": 1}, [-1], "//", "..", "/a//b", [2**70],
)  # fmt: skip


def places_of(value: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys."""
    found, ahead = [], [value]
    while ahead:
        inner = ahead.pop()
        keys = inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        for key in keys:
            found.append((inner, key))
            ahead.append(inner[key])
    return found


def some_json(rng: Random, data: bytes) -> bytes:
    """One value of a JSON text replaced, removed, renamed or repeated; other text as bytes."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return some_bytes(rng, data)
    places = places_of(value)
    if not places or rng.random() < 0.05:
        return json.dumps(rng.choice(VALUES)).encode()
    inner, key = rng.choice(places)
    match rng.randrange(6):
        case 0:
            del inner[key]
        case 1 if isinstance(inner, dict):
            inner[rng.choice(("", "\ud800", "version", "-1", "0", "9" * 30, "a/b", "\x1b"))] = inner.pop(key)
        case 2:
            other, there = rng.choice(places)
            inner[key] = (
                json.loads(json.dumps(other[there])) if there in other or isinstance(other, list) else None
            )
        case _:
            inner[key] = rng.choice(VALUES)
    out = json.dumps(value, separators=(",", ":")).encode()
    if rng.random() < 0.05:  # a key twice, or a depth that no writer has
        return rng.choice(
            (out.replace(b"{", b'{"version":0,', 1), b"[" * 5000 + out + b"]" * 5000, out[: len(out) // 2])
        )
    return out


def json_text(rng: Random, data: bytes) -> bytes:
    """A JSON file that is wrong."""
    return times(rng, data, some_json if rng.random() < 0.9 else some_bytes)


def znodes(rng: Random, data: bytes) -> bytes:
    """An export whose lines are right, with a znode's content or name that is not; at times the lines too."""

    def edit(rng: Random, data: bytes) -> bytes:
        lines = data.splitlines()
        at = rng.randrange(len(lines))
        try:
            row = json.loads(lines[at])
            content = b64decode(row["data"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return some_text(rng, data)
        if rng.random() < 0.75:
            content = some_json(rng, content) if content else rng.choice(STRANGE)[:5000]
            row |= {"data": b64encode(content).decode(), "dataLength": len(content)}
            row["data_text"] = content.decode("utf-8", "replace")
        else:
            odd = rng.choice(STRANGE)[:50].decode("utf-8", "surrogateescape")
            row["path"] = rng.choice(
                (row["path"] + odd, row["path"] + "/" + odd, odd, "/" + odd + row["path"], row["path"][:-1])
            )
        lines[at] = json.dumps(row).encode()
        return b"\n".join(lines) + b"\n"

    if rng.random() < 0.2:
        return times(rng, data, rng.choice((some_text, lines_of_json)))
    return times(rng, data, edit)


def lines_of_json(rng: Random, data: bytes) -> bytes:
    """One line of JSON that is wrong."""
    lines = data.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = some_json(rng, lines[at])
    return b"\n".join(lines) + b"\n"


MUTATORS: dict[str, Mutator] = {
    "segment": log,
    "index": rows_of(8),
    "timeindex": rows_of(12),
    "txnindex": rows_of(34),
    "snapshot": snapshot,
    "epochs": text,
    "checkpoint": text,
    "partition-metadata": text,
    "meta-properties": text,
    "tier-log": log,
    "tier-index": rows_of(8),
    "tier-timeindex": rows_of(12),
    "tier-txnindex": rows_of(34),
    "tier-snapshot": snapshot,
    "tier-leader_epoch_checkpoint": text,
    "aiven-log": lambda rng, data: times(rng, data, some_bytes),
    "aiven-indexes": lambda rng, data: times(rng, data, rng.choice((some_bytes, fields))),
    "aiven-rsm-manifest": json_text,
    "broker-log": text,
    "znodes": znodes,
    "consumer-offsets": message_values,
    "transaction-state": message_values,
    "cluster-metadata": message_values,
    "remote-log-metadata": message_values,
    "plan": json_text,
    "journal": json_text,
    "settings": text,
    "scenario": text,
}
