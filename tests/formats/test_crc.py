"""Checksums with every provider."""

import random
import sys
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from formats.binary import crc
from formats.binary import native_libraries as providers
from formats.binary.crc_lanes import POLYNOMIAL
from formats.binary.crc_of_ranges import crc32c_of_ranges


@pytest.fixture(params=["google-crc32c", "numpy"], autouse=True)
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "numpy":
        for name in ("google_crc32c", "crc32c", "fastcrc"):
            monkeypatch.setitem(sys.modules, name, None)
    providers.optional.cache_clear()
    crc.provider.cache_clear()
    yield request.param
    monkeypatch.undo()
    providers.optional.cache_clear()
    crc.provider.cache_clear()


def test_check_values(provider: str) -> None:
    assert crc.provider()[0] == provider
    for buffer in (bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)):
        assert crc.crc32c(buffer(b"123456789")) == 0xE3069283
        assert crc.crc32(buffer(b"123456789")) == 0xCBF43926
    assert crc.crc32c(b"") == 0
    assert crc.crc32(b"") == zlib.crc32(b"")


@pytest.mark.parametrize("cut", [0, 1, 5, 1024, 2999, 3000])
def test_piece_by_piece(cut: int) -> None:
    data = random.Random(3).randbytes(3000)
    assert crc.crc32c_more(crc.crc32c(data[:cut]), memoryview(data)[cut:]) == bit_by_bit(data)


def bit_by_bit(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (POLYNOMIAL if register & 1 else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [0, 1, 3, 4, 63, 1023, 1024, 1025, 3000])
def test_ranges(size: int) -> None:
    data = random.Random(size).randbytes(9000)
    starts = np.array([0, 5, 4000])
    found = crc32c_of_ranges(np.frombuffer(data, np.uint8), starts, starts + size)
    assert found.tolist() == [bit_by_bit(data[at : at + size]) for at in starts.tolist()]


def test_many_lanes() -> None:
    data = np.frombuffer(random.Random(1).randbytes(1 << 20), np.uint8)
    starts = np.arange(0, (1 << 20) - 200, 100)
    found = crc32c_of_ranges(data, starts, starts + 200)
    for place in (0, 5000, len(starts) - 1):
        assert found[place] == bit_by_bit(data[starts[place] : starts[place] + 200].tobytes())
