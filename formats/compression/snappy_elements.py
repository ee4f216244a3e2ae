"""Many small snappy blocks side by side: whether each is whole, so that all may be decompressed as one.

The elements of two blocks one behind the other are the elements of a block that holds both, if no copy of the second
reaches back into the first and each comes to the size that it promises. Blocks are lanes: step k looks at element k
of each, for all of them at once. A lane is one number, the place in the data in its low half and the size of what
came out so far in its high half, so that a step is one addition.

Source: google/snappy:format_description.txt @ 1.1.10
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints

Octets = NDArray[np.uint8]

HALF = 32
PLACE = (1 << HALF) - 1
LITERAL_OF_WORD = 61 << 2  # the tag of a literal whose size less one is in the two bytes behind it
LONGEST_LITERAL = 1 << 16  # of that tag
STAY = 3  # the tag of a copy from anywhere, which no small block needs: a lane that comes to it stays there
PAST_THE_END = 1 << 18  # how far a lane can go astray before more came out than should


@cache
def _tables() -> tuple[Ints, Ints]:
    """By the first two bytes of an element: what it adds to its lane, and what must have come out before it.

    UNCLEAR is added where a third byte says it, 0 where no such element should be.
    """
    words = np.arange(1 << 16, dtype=np.int64)
    tag, byte = words & 0xFF, words >> 8
    kind, number = tag & 3, tag >> 2
    literal = np.where(number < 60, number + 1, byte + 1)
    adds = np.where(number < 60, 1 + literal, 2 + literal) | literal << HALF
    adds = np.where(
        (kind == 2) | (tag == LITERAL_OF_WORD), UNCLEAR, np.where((kind == 0) & (number <= 60), adds, 0)
    )
    adds = np.where(kind == 1, 2 | (4 + (number & 7)) << HALF, adds)
    return adds, np.where(kind == 1, (tag >> 5 << 8 | byte) << HALF, 0)


UNCLEAR = 1 << 62


def are_whole(data: Octets, starts: Ints, ends: Ints, sizes: Ints) -> bool:
    """Whether the elements data[start:end] of each block are whole, and come to its size by themselves.

    A `STAY` stands at each end, and `PAST_THE_END` readable bytes are behind the last. False also for elements that
    no block of less than 64 KiB needs. Copies from 0 bytes back are left to the library, which refuses them.
    """
    adds, needs = _tables()
    behind = data[1:]
    lanes, until = starts.copy(), ends | sizes << HALF
    too_much = int(sizes.max()) + 1 << HALF
    while True:
        place = lanes & PLACE
        word = data.take(place).astype(np.uint16)
        word |= behind.take(place).astype(np.uint16) << 8
        added = adds.take(word)
        if (needs.take(word) > lanes).any():
            return False
        lanes += added
        if lanes.max() >= too_much and not _are_clear(data, lanes, too_much):
            return False
        going = np.count_nonzero(added)
        if 2 * going < len(lanes):  # fewer of them are cheaper, but making them fewer has its price
            is_going = added != 0
            if (lanes[~is_going] != until[~is_going]).any():
                return False
            if not going:
                return True
            lanes, until = lanes[is_going], until[is_going]


def _are_clear(data: Octets, lanes: Ints, too_much: int) -> bool:
    """Move the unclear lanes on by what a third byte says; whether none of all then has too much."""
    unclear = np.flatnonzero(lanes >= UNCLEAR)
    before = lanes[unclear] - UNCLEAR
    added, needed = _of_three_bytes(data, before & PLACE)
    lanes[unclear] = before + added
    return bool((needed <= before).all() and lanes.max() < too_much)


def _of_three_bytes(data: Octets, places: Ints) -> tuple[Ints, Ints]:
    """What elements of three bytes add and need: copies from up to 64 KiB back, and literals of up to that size."""
    tag = data[places]
    word = data[places + 1].astype(np.int64) | data[places + 2].astype(np.int64) << 8
    is_copy = tag & 3 == 2
    copied = 3 | ((tag >> 2).astype(np.int64) + 1) << HALF
    literal = (3 + word + 1) | (word + 1) << HALF
    return np.where(is_copy, copied, literal), np.where(is_copy, word << HALF, 0)
