"""A body decompressed into memory that is there: what `decompress` gives, or nothing."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.compression import CompressionError, decompress
from formats.compression.in_place import reader_into
from formats.compression.writers import compress

CODECS = st.sampled_from([2, 3, 4])
BODIES = st.binary(max_size=300) | st.builds(
    lambda seed, size: bytes(random.Random(seed).choices(b"abcdef{}", k=size)),
    st.integers(0, 9),
    st.integers(0, 150_000),
)


def into(codec: int, data: bytes, room: int) -> bytes | None:
    out = bytearray(room + 8)
    read = reader_into(codec)
    size = read(memoryview(data), memoryview(out)[:room]) if read else None
    assert out[room:] == bytes(8)
    return None if size is None else bytes(out[:size])


@given(CODECS, BODIES, st.integers(0, 200_000))
def test_bodies_of_the_java_client(codec: int, body: bytes, room: int) -> None:
    found = into(codec, compress(codec, body, magic=2), room)
    assert found == body or (found is None and (room <= len(body) or not body or codec == 3))


@pytest.mark.parametrize("codec", [2, 3, 4])
def test_what_the_java_client_writes_is_taken(codec: int) -> None:
    body = bytes(random.Random(codec).choices(b"abcdef{}", k=200_000))
    assert into(codec, compress(codec, body, magic=2), len(body) + 1) == body


@given(
    CODECS,
    BODIES,
    st.integers(0, 10**6),
    st.integers(0, 255),
    st.sampled_from(["over", "cut", "more", "twice"]),
)
def test_what_decompress_refuses_is_left(codec: int, body: bytes, at: int, byte: int, how: str) -> None:
    data = bytearray(compress(codec, body, magic=2))
    place = at % len(data)
    match how:
        case "over":
            data[place] = byte
        case "cut":
            del data[place:]
        case "more":
            data.append(byte)
        case "twice":
            data = data * 2
    found = into(codec, bytes(data), 400_000)
    try:
        right = decompress(codec, bytes(data), magic=2, limit=1 << 20)
    except CompressionError:
        assert found is None
    else:
        assert found is None or found == right


@given(st.binary(max_size=100), st.integers(0, 7))
def test_any_bytes(data: bytes, codec: int) -> None:
    found = into(codec, data, 1000)
    if found is not None:
        assert found == decompress(codec, data, magic=2)
