"""Records in columns against the reader of single records: varints of any length, edits anywhere, few lanes and many."""

import random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.binary.varint import read_varint, write_varint
from formats.errors import FormatError
from formats.log.columns import record_starts, records
from formats.log.columns.records import Fields, decode, read_fields
from tests.conftest import examples

PADDING = 64
NAMES = Fields.__struct_fields__[2:]
POSITIONS = {"key_position", "value_position", "headers_position"}


def varint(value: int, rng: random.Random, most: int = 5) -> bytes:
    """As it is written, or with bytes that say nothing behind it, which readers accept."""
    plain = write_varint(value)
    extra = rng.choice([0] * 20 + [1, 2]) if len(plain) + 2 <= most else 0
    return plain if not extra else plain[:-1] + bytes([plain[-1] | 0x80] + [0x80] * (extra - 1) + [0])


def field(size: int, rng: random.Random) -> bytes:
    return varint(size, rng) + rng.randbytes(max(0, size))


def record(rng: random.Random, small: bool) -> bytes:
    sizes = [-1, 0, 1, 13] if small else [-1, -5, 0, 1, 60, 64, 200, 9000]
    delta = rng.randint(-60, 60) if small else rng.choice([1, -1]) * rng.getrandbits(rng.randint(0, 63))
    headers = rng.choice([0, 0, 0, 1, 2] if small else [0, 1, 3, 70])
    body = b"\0" + varint(delta, rng, 10)
    body += varint(rng.randint(0, 9) if small else rng.getrandbits(rng.randint(0, 31)), rng)
    body += field(rng.choice(sizes), rng) + field(rng.choice([*sizes, 100]), rng) + varint(headers, rng)
    for _ in range(headers):
        body += field(rng.choice([0, 1, 5]), rng) + field(rng.choice([-1, 0, 3, 70]), rng)
    return varint(len(body), rng) + body


def read_alone(data: bytes, start: int, end: int, count: int) -> list[tuple[int, ...]] | None:
    """Position, size and fields of the records of one body; None where it does not hold exactly so many."""
    rows = []
    try:
        for _ in range(count):
            length, body = read_varint(data[:end], start)
            if length < 0 or body + length > end:
                return None
            found = read_fields(data[start : body + length])
            moved = [v + start if name in POSITIONS else v for name, v in zip(NAMES, found, strict=True)]
            rows.append((start, body + length - start, *moved))
            start = body + length
    except FormatError:
        return None
    return rows if start == end else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "alone", "at_once"), [(0, 9, 16 << 10), (2, 3, 16 << 10), (9, 0, 16 << 10), (0, 9, 7)]
)  # what a step of all costs, and a lane alone: lanes go together, part of the way, or not at all
@given(st.integers(0, 10**9), st.booleans(), st.integers(0, 3))
@settings(max_examples=examples(120))
def test_columns_are_what_is_read_alone(
    step: float, alone: float, at_once: int, seed: int, small: bool, edits: int
) -> None:
    rng = random.Random(seed)
    data, starts, ends, counts = b"", [], [], []
    for _ in range(rng.randint(1, 6)):
        body = [record(rng, small) for _ in range(rng.choice([0, 1, 1, 2, 5]))]
        starts.append(len(data))
        data += b"".join(body)
        ends.append(len(data))
        counts.append(len(body) + (rng.choice([-1, 1]) if rng.random() < 0.05 and body else 0))
    held = bytearray(data + bytes(PADDING))
    for _ in range(edits if data else 0):
        held[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    data = bytes(held)
    costs = {"STEP": step, "STEP_OF_A_LANE": 0, "LANE_ALONE": alone, "RECORD_ALONE": 0}
    with patch.multiple(record_starts, **costs), patch.object(records, "ROWS_AT_ONCE", at_once):
        found, first_rows, bad = decode(
            np.frombuffer(data, np.uint8), np.array(starts), np.array(ends), np.array(counts)
        )
    columns = [getattr(found, name) for name in ("position", "size_in_bytes", *NAMES)]
    for body, (start, end, count) in enumerate(zip(starts, ends, counts, strict=True)):
        alone = read_alone(data, start, end, count)
        assert bool(bad[body]) == (alone is None)
        if alone is not None:
            rows = slice(first_rows[body], first_rows[body + 1])
            assert list(zip(*(column[rows].tolist() for column in columns), strict=True)) == alone
