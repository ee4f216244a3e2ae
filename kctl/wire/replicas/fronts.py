"""The whole batches at the front of several replicas' answers, and whether they are equal and sound.

The partitions of a round are checked together: the headers and CRCs of all that came in one answer are
checked in one pass, since a pass over a few batches costs as much as one over a thousand.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, cast

import numpy as np

from formats.arrays import Ints
from formats.log.columns.headers import PADDING, Headers, Octets, check_crc, gather, walk

Data = bytes | memoryview


def located(data: Data) -> tuple[Octets, int]:
    """A block that contains the bytes and padding behind them, and where in it they begin.

    It is the buffer that they were received in; they are copied if the buffer ends too early.
    """
    if isinstance(data, memoryview) and isinstance(data.obj, bytearray):
        start, whole = place(data), np.frombuffer(data.obj, np.uint8)
        if start + len(data) + PADDING <= len(whole):
            return whole, start
    return np.frombuffer(bytes(data) + bytes(PADDING), np.uint8), 0


def padded(data: Data) -> Octets:
    """The bytes, with padding behind them."""
    block, start = located(data)
    return block[start : start + len(data) + PADDING]


def place(data: memoryview) -> int:
    """Where a view begins in its buffer."""
    if not len(data):
        return 0
    return _address(np.frombuffer(data, np.uint8)) - _address(
        np.frombuffer(cast("bytes", data.obj), np.uint8)
    )


def _address(octets: Octets) -> int:
    address: int = octets.__array_interface__["data"][0]
    return address


def begin_alike(first: Data, second: Data, size: int) -> bool:
    """Whether the first `size` bytes are equal, without copying them."""
    if min(len(first), len(second)) < size:
        return False
    front = memoryview(second)[:size]
    if isinstance(first, bytes):
        return first.startswith(front)
    if isinstance(first.obj, (bytes, bytearray)):
        return first.obj.startswith(front, place(first))
    return bytes(first[:size]) == bytes(front)


MAGICS = range(3)


class Front(NamedTuple):
    """The whole batches at the front of every answer about a partition."""

    answers: Sequence[Data]
    block: Octets  # all that came with the first answer
    positions: Ints  # of the batches, in the block
    size: int  # bytes of them
    next_offset: int


def fronts(windows: Iterable[Sequence[Data]]) -> list[Front | None]:
    """The front of each partition's answers, one answer a replica; None if one has no whole batch."""
    results: list[Front | None] = []
    blocks: dict[int, Octets] = {}
    for answers in windows:
        if not answers or not all(answers):
            results.append(None)
            continue
        block, start = located(answers[0])
        block = blocks.setdefault(block.__array_interface__["data"][0], block)  # one array of a buffer
        walked = walk(block, start, start + min(map(len, answers)))
        whole = len(walked.positions) > 0
        results.append(Front(answers, block, walked.positions, walked.stop - start, -1) if whole else None)
    for numbers, block in _by_block(results):
        block_fronts = [results[n] for n in numbers]
        last = gather(block, np.array([front.positions[-1] for front in block_fronts if front], np.int64))
        for n, front, offset in zip(numbers, block_fronts, last.last_offset.tolist(), strict=True):
            results[n] = front._replace(next_offset=offset + 1) if front else None
    return results


def agree(partition_fronts: Sequence[Front | None]) -> list[bool]:
    """Whether all answers of each are equal on their front, byte for byte, and its batches have the right CRC."""
    alike = [front if front is not None and _is_alike(front) else None for front in partition_fronts]
    right = [False] * len(alike)
    for numbers, block in _by_block(alike):
        block_fronts = [alike[n] for n in numbers]
        headers = gather(block, np.concatenate([front.positions for front in block_fronts if front]))
        is_sound = _are_sound(block, headers)
        edges = accumulate((len(front.positions) for front in block_fronts if front), initial=0)
        for n, (low, high) in zip(numbers, pairwise(edges), strict=True):
            right[n] = bool(is_sound[low:high].all())
    return right


def _is_alike(front: Front) -> bool:
    first, *others = front.answers
    return all(begin_alike(first, data, front.size) for data in others)


def _are_sound(block: Octets, headers: Headers) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    legal = (headers.magic >= MAGICS.start) & (headers.magic < MAGICS.stop)
    if legal.all():
        check_crc(block, headers)
        return headers.crc_valid
    some = headers[legal]
    check_crc(block, some)
    legal[legal] = some.crc_valid
    return legal


def _by_block(partition_fronts: Sequence[Front | None]) -> Iterator[tuple[list[int], Octets]]:
    """The numbers of the fronts in each block, in the order of their positions."""
    groups: dict[int, list[tuple[int, int]]] = {}
    blocks: dict[int, Octets] = {}
    for n, front in enumerate(partition_fronts):
        if front is not None:
            groups.setdefault(id(front.block), []).append((int(front.positions[0]), n))
            blocks[id(front.block)] = front.block
    for key, members in groups.items():
        yield [n for _, n in sorted(members)], blocks[key]
