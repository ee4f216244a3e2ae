"""Many small bodies at once: what each decompresses to by itself, and nothing where one is not plain."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.binary.varint import write_unsigned
from formats.compression import CompressionError, decompress
from formats.compression.many import SMALL, small_bodies
from formats.compression.snappy import XERIAL
from formats.compression.writers import compress

BODIES = st.lists(
    st.binary(min_size=1, max_size=300) | st.text("ab{}", min_size=1).map(str.encode),
    min_size=8,
    max_size=30,
)
CODECS = st.sampled_from([2, 3])
GAP = 61


def laid_out(parts: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts with the headers of batches between them, and where each begins and ends."""
    data, starts, ends = b"", [], []
    for part in parts:
        data += bytes(range(GAP))
        starts.append(len(data))
        data += part
        ends.append(len(data))
    return np.frombuffer(data + bytes(64), np.uint8), np.array(starts), np.array(ends)


def together(codec: int, parts: list[bytes], limit: int = 1 << 20) -> list[bytes] | None:
    data, starts, ends = laid_out(parts)
    before = data.copy()
    out = bytearray()

    def room(size: int) -> memoryview:
        out.extend(bytes(size))
        return memoryview(out)

    found = small_bodies(codec, data, starts, ends, room, limit)
    assert (data == before).all()
    if found is None:
        return None
    assert found.size == len(out)
    return [bytes(out[a:b]) for a, b in zip(found.starts, found.ends, strict=True)]


@given(CODECS, BODIES)
def test_bodies_of_the_java_client(codec: int, bodies: list[bytes]) -> None:
    found = together(codec, [compress(codec, body, magic=2) for body in bodies])
    assert found is None or found == bodies


@pytest.mark.parametrize("codec", [2, 3])
def test_they_are_taken_at_once(codec: int) -> None:
    rng = random.Random(codec)
    bodies = [rng.randbytes(rng.randrange(1, 400)) + b"same " * rng.randrange(90) for _ in range(500)]
    assert together(codec, [compress(codec, body, magic=2) for body in bodies]) == bodies


@given(CODECS, BODIES, st.integers(0, 10**6), st.integers(0, 255), st.sampled_from(["over", "cut", "more"]))
def test_what_one_by_one_is_refused_is_left(
    codec: int, bodies: list[bytes], at: int, byte: int, how: str
) -> None:
    parts = [compress(codec, body, magic=2) for body in bodies]
    which = at % len(parts)
    part = bytearray(parts[which])
    place = at // 7 % len(part)
    match how:
        case "over":
            part[place] = byte
        case "cut":
            del part[place:]
        case "more":
            part.append(byte)
    parts[which] = bytes(part)
    try:
        alone = [decompress(codec, one, magic=2) for one in parts]
    except CompressionError:
        assert together(codec, parts) is None
        return
    found = together(codec, parts)
    assert found is None or found == alone


def test_large_ones_and_other_forms_are_left() -> None:
    for codec in (2, 3):
        plain = compress(codec, b"small" * 10, magic=2)
        assert (
            together(codec, [plain] * 9 + [compress(codec, random.Random(1).randbytes(SMALL), magic=2)])
            is None
        )
        assert together(codec, [plain] * 9 + [b""]) is None
        assert together(codec, []) is None
    assert together(2, [compress(2, b"x" * 40_000, magic=2)] * 9) is None  # two blocks
    assert together(1, [compress(1, b"x", magic=2)] * 9) is None


def snappy_elements(rng: random.Random) -> tuple[bytes, int]:
    """Elements of every kind, copies mostly from where something is, and what they come to."""
    out, size = b"", 0
    for _ in range(rng.randint(1, 6)):
        back = rng.randint(1, max(1, size + (rng.random() < 0.1)))
        match rng.randrange(5 if size else 1):
            case 0 | 1:
                text = rng.randbytes(rng.choice([1, 2, 59, 60, 61, 256, 257, 400]))
                count = len(text) - 1
                extra = b"" if count < 60 else bytes([count]) if count < 256 else count.to_bytes(2, "little")
                tag = count if count < 60 else 59 + len(extra)
                out, size = out + bytes([tag << 2]) + extra + text, size + len(text)
            case 2 | 3 if back < 1 << 11:
                length = rng.randint(4, 11)
                out += bytes([back >> 8 << 5 | length - 4 << 2 | 1, back & 0xFF])
                size += length
            case _:
                length = rng.randint(1, 64)
                out += bytes([length - 1 << 2 | 2]) + back.to_bytes(2, "little")
                size += length
    return out, size


@given(st.integers(0, 10**9))
def test_blocks_of_any_elements(seed: int) -> None:
    rng = random.Random(seed)
    parts = []
    for _ in range(rng.randint(8, 12)):
        elements, size = snappy_elements(rng)
        block = write_unsigned(size + (rng.choice([-1, 1]) if rng.random() < 0.02 else 0)) + elements
        parts.append(XERIAL + bytes(8) + len(block).to_bytes(4, "big") + block)
    try:
        alone = [decompress(2, one, magic=2) for one in parts]
    except CompressionError:
        assert together(2, parts) is None
    else:
        assert together(2, parts) == alone


def test_no_copy_reaches_into_the_block_before_it() -> None:
    plain = compress(2, b"some words and some words", magic=2)
    reaching = b"\x05" + b"\x00a" + b"\x01\x02"  # one byte, then four from two bytes back
    wrong = XERIAL + bytes(8) + len(reaching).to_bytes(4, "big") + reaching
    assert together(2, [plain] * 9) is not None
    assert together(2, [plain] * 4 + [wrong] + [plain] * 4) is None
