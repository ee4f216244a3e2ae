"""The whole batches at the front of what several replicas answered, and whether they are equal and sound.

The partitions of a round are taken together: those whose bytes came in one answer have their headers and CRCs
looked at in one pass, since a pass over a few batches costs as much as one over a thousand.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, cast

import numpy as np

from formats.log.columns.headers import PADDING, Headers, Octets, Positions, check_crc, gather, walk

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
    return _address(np.frombuffer(data, np.uint8)) - _address(
        np.frombuffer(cast("bytes", data.obj), np.uint8)
    )


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


MAGICS = range(3)


class Front(NamedTuple):
    """The whole batches that every answer about a partition holds."""

    answers: Sequence[Data]
    block: Octets  # all that came with the first answer
    positions: Positions  # of the batches, in the block
    size: int  # bytes of them
    next_offset: int


def fronts(windows: Iterable[Sequence[Data]]) -> list[Front | None]:
    """The front of each partition's answers, one of a replica; None where one of them holds no whole batch."""
    found: list[Front | None] = []
    blocks: dict[int, Octets] = {}
    for answers in windows:
        if not answers or not all(answers):
            found.append(None)
            continue
        block, start = located(answers[0])
        block = blocks.setdefault(block.__array_interface__["data"][0], block)  # one array of a buffer
        walked = walk(block, start, start + min(map(len, answers)))
        whole = len(walked.positions) > 0
        found.append(Front(answers, block, walked.positions, walked.stop - start, -1) if whole else None)
    for numbers, block in _by_block(found):
        some = [found[n] for n in numbers]
        last = gather(block, np.array([one.positions[-1] for one in some if one], np.int64))
        for n, one, offset in zip(numbers, some, last.last_offset.tolist(), strict=True):
            found[n] = one._replace(next_offset=offset + 1) if one else None
    return found


def agree(found: Sequence[Front | None]) -> list[bool]:
    """Whether all answers of each are equal on their front, byte for byte, and its batches have the right CRC."""
    alike = [one if one is not None and _is_alike(one) else None for one in found]
    right = [False] * len(alike)
    for numbers, block in _by_block(alike):
        some = [alike[n] for n in numbers]
        headers = gather(block, np.concatenate([one.positions for one in some if one]))
        is_sound = _are_sound(block, headers)
        edges = accumulate((len(one.positions) for one in some if one), initial=0)
        for n, (low, high) in zip(numbers, pairwise(edges), strict=True):
            right[n] = bool(is_sound[low:high].all())
    return right


def _is_alike(one: Front) -> bool:
    first, *others = one.answers
    return all(begin_alike(first, other, one.size) for other in others)


def _are_sound(block: Octets, headers: Headers) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    legal = (headers.magic >= MAGICS.start) & (headers.magic < MAGICS.stop)
    if legal.all():
        check_crc(block, headers)
        return headers.crc_valid
    some = headers[legal]
    check_crc(block, some)
    legal[legal] = some.crc_valid
    return legal


def _by_block(found: Sequence[Front | None]) -> Iterator[tuple[list[int], Octets]]:
    """Numbers of the fronts that lie in one block, in the order of their places there."""
    groups: dict[int, list[tuple[int, int]]] = {}
    blocks: dict[int, Octets] = {}
    for n, one in enumerate(found):
        if one is not None:
            groups.setdefault(id(one.block), []).append((int(one.positions[0]), n))
            blocks[id(one.block)] = one.block
    for key, members in groups.items():
        yield [n for _, n in sorted(members)], blocks[key]
