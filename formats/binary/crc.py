"""Checksums: CRC-32C of magic 2 and of producer snapshots, CRC-32 of magic 0 and 1.

Any buffer is taken. A native library does the work where one is installed, else numpy, which is loaded only then: a
checkpoint or a snapshot is read without it.

Source: clients/src/main/java/org/apache/kafka/common/utils/{Crc32C,Crc32}.java @ 3.9.0-rc3
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from formats.binary.layout import Bytes
from formats.binary.native_libraries import optional

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Octets = NDArray[np.uint8]

ALL_ONES = 0xFFFFFFFF


@cache
def provider() -> tuple[str, Callable[[Any], int]]:
    """The name of the library that computes CRC-32C, and its function over `bytes` or arrays of bytes."""
    google = optional("google_crc32c")
    if google is not None and google.implementation == "c":
        return "google-crc32c", google.value
    icrar = optional("crc32c")
    if icrar is not None:
        return "crc32c", icrar.crc32c
    fast = optional("fastcrc")
    if fast is not None:
        return "fastcrc", fast.crc32.iscsi
    return "numpy", lambda data: _by_lanes(data, ALL_ONES)


def octets(data: Bytes | Octets) -> Octets:
    """The same bytes as an array."""
    import numpy as np

    return data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)


def crc32c(data: Bytes | Octets) -> int:
    """CRC-32C (Castagnoli) of the bytes."""
    # google-crc32c refuses memoryview, bytearray and mmap; every provider takes arrays.
    return provider()[1](data if isinstance(data, bytes) else octets(data))


def crc32c_more(value: int, data: Bytes | Octets) -> int:
    """CRC-32C of bytes that follow others whose CRC-32C is value."""
    name, _ = provider()
    block = data if isinstance(data, bytes) else octets(data)
    if name == "google-crc32c":
        return int(import_module("google_crc32c").extend(value, block))
    if name == "crc32c":
        return int(import_module("crc32c").crc32c(block, value))
    if name == "fastcrc":
        return int(import_module("fastcrc").crc32.iscsi(block, value))
    return _by_lanes(data, value ^ ALL_ONES)


def crc32(data: Bytes | Octets) -> int:
    """CRC-32 (zlib, IEEE) of the bytes."""
    fast = optional("isal.isal_zlib") or zlib
    return int(fast.crc32(data))


def _by_lanes(data: Bytes | Octets, register: int) -> int:
    from formats.binary.crc_lanes import crc32c_by_lanes

    return int(crc32c_by_lanes(octets(data), [0], [len(data)], register)[0])
