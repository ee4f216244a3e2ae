"""What was fetched, looked at where it lies: as a block that headers are gathered from, and held against another's."""

import numpy as np

from formats.columns.headers import PADDING, Octets

Data = bytes | memoryview


def located(data: Data) -> tuple[Octets, int]:
    """A block that goes on behind the bytes, and where in it they begin.

    It is all that was received with them; they are copied where their buffer ends with them.
    """
    if isinstance(data, memoryview) and isinstance(data.obj, bytearray):
        start, whole = place(data), np.frombuffer(data.obj, np.uint8)
        if start + len(data) + PADDING <= len(whole):
            return whole, start
    return np.frombuffer(bytes(data) + bytes(PADDING), np.uint8), 0


def padded(data: Data) -> Octets:
    """The bytes, and some more behind them."""
    block, start = located(data)
    return block[start : start + len(data) + PADDING]


def place(data: memoryview) -> int:
    """Where a view begins in the buffer that it is of."""
    if not len(data):
        return 0
    return _address(np.frombuffer(data, np.uint8)) - _address(np.frombuffer(data.obj, np.uint8))  # type: ignore[call-overload]


def _address(octets: Octets) -> int:
    found: int = octets.__array_interface__["data"][0]
    return found


def begin_alike(one: Data, other: Data, size: int) -> bool:
    """Whether so many bytes at the front are equal, without a copy of them."""
    if min(len(one), len(other)) < size:
        return False
    front = memoryview(other)[:size]
    if isinstance(one, bytes):
        return one.startswith(front)
    if isinstance(one.obj, (bytes, bytearray)):
        return one.obj.startswith(front, place(one))
    return bytes(one[:size]) == bytes(front)
