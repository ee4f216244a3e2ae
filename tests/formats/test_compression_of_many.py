"""Many small bodies at once: what each decompresses to by itself, and nothing where one is not plain."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.compression import CompressionError, compress, decompress
from formats.compression.many import SMALL, small_bodies

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


def together(codec: int, parts: list[bytes]) -> list[bytes] | None:
    data, starts, ends = laid_out(parts)
    before = data.copy()
    found = small_bodies(codec, data, starts, ends)
    assert (data == before).all()
    if found is None:
        return None
    return [found.data[a:b] for a, b in zip(found.starts, found.ends, strict=True)]


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
        assert small_bodies(codec, *laid_out([])) is None
    assert together(2, [compress(2, b"x" * 40_000, magic=2)] * 9) is None  # two blocks
    assert together(1, [compress(1, b"x", magic=2)] * 9) is None
