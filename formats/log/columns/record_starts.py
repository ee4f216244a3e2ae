"""Where the records of magic 2 start: batches are lanes, step k finds where record k of each starts, for all at once.

The 8 bytes there are kept, for they hold the record's first fields.

Source: clients/src/main/java/org/apache/kafka/common/record/DefaultRecordBatch.java @ 3.9.0-rc3
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.log.columns.varints import TOO_LONG, Words, unaligned, varints, words_at

Octets = NDArray[np.uint8]

# Microseconds: a step of all lanes, and of each of them; a lane that a plain loop follows, and each of its records.
STEP, STEP_OF_A_LANE = 8.0, 0.02
LANE_ALONE, RECORD_ALONE = 13.0, 0.12
FAR = 1 << 48  # beyond all data


@cache
def _steps() -> Ints:
    """By the 16 bits at a record's start: how far the next one is; FAR where 16 bits do not say it."""
    words = np.arange(65536, dtype=np.int64)
    short = words & 0x80 == 0
    value = np.where(short, words & 0x7F, words & 0x7F | (words >> 8 & 0x7F) << 7)
    step = (value >> 1) + np.where(short, 1, 2)
    legal = (value & 1 == 0) & (short | (words & 0x8000 == 0))
    return np.where(legal, step, FAR)


def chain(
    data: Octets, starts: Ints, ends: Ints, counts: Ints, first_rows: Ints, positions: Ints, words: Words
) -> Mask:
    """Write each record's start, and the 8 bytes there; which bodies do not hold exactly their count of records."""
    order = np.argsort(-counts, kind="stable")
    at, until, rows = starts[order], ends[order], first_rows[:-1][order]
    # Lanes still going at step k are those with more than k records: a prefix.
    going = np.searchsorted(-counts[order], -np.arange(int(counts.max())), side="left")
    together = _steps_together(going)
    wrong = np.zeros(len(order), np.bool_)
    _chain_in_lanes(data, at, until, rows, going[:together].tolist(), wrong, positions, words)
    if together < len(going):
        for lane in range(int(going[together])):
            row, records_left = int(rows[lane]), int(counts[order[lane]]) - together
            lane_positions = positions[row : row + records_left]
            wrong[lane] |= not _chain_of_one(data, int(at[lane]), int(until[lane]), lane_positions)
            words[row : row + records_left] = words_at(data, lane_positions)
            at[lane] = until[lane]
    bad = np.empty(len(order), np.bool_)
    bad[order] = wrong | (at != until)
    return bad


def _steps_together(going: Ints) -> int:
    """How many steps lanes are taken along together, before a plain loop follows each that is left: what costs least."""
    before = STEP * np.arange(len(going) + 1) + STEP_OF_A_LANE * np.cumsum(np.append(0, going))
    lanes_left = np.append(going, 0)
    return int(np.argmin(before + LANE_ALONE * lanes_left + RECORD_ALONE * np.cumsum(lanes_left[::-1])[::-1]))


def _chain_in_lanes(
    data: Octets,
    at: Ints,
    until: Ints,
    rows: Ints,
    going: list[int],
    wrong: Mask,
    positions: Ints,
    words: Words,
) -> None:
    """Take each lane as many steps as it goes along; where it then is, and its next row, are in `at` and `rows`."""
    steps = _steps()
    windows = unaligned(data, "V8")
    last = int(until.max())
    for lanes in going:
        position, row = at[:lanes], rows[:lanes]
        word = windows[position].view(np.uint64)
        positions[row] = position
        words[row] = word
        row += 1
        position += steps.take(word.astype(np.uint16))
        if position.max() <= last:  # a lane that goes astray does not come to its end, for none goes back
            continue
        unclear = np.flatnonzero(position >= FAR)
        position[unclear] = _next_of(word[unclear], position[unclear] - FAR)
        wrong[:lanes] |= position > until[:lanes]
        np.minimum(position, until[:lanes], out=position)


def _next_of(words: Words, positions: Ints) -> Ints:
    """Where the record at each position ends; past all data where its length is not legal."""
    length, size = varints(words)
    after = positions + length + size
    after[(length < 0) | (np.broadcast_to(size, len(length)) == TOO_LONG)] = np.iinfo(np.int64).max
    return after


@cache
def _steps_by_byte() -> list[list[int]]:
    """The same table by first and second byte, as lists: what a plain loop reads fastest; 0 for FAR."""
    steps = _steps() % FAR
    rows: list[list[int]] = steps.reshape(256, 256).T.tolist()
    return rows


def _chain_of_one(data: Octets, start: int, end: int, out: Ints) -> bool:
    """Write the starts of one body's records; whether they fill it exactly."""
    body = data[start : end + PAST_THE_END].tobytes()
    steps, at = _steps_by_byte(), 0
    record_starts: list[int] = []
    note = record_starts.append
    try:
        for _ in range(len(out)):
            note(at)
            step = steps[body[at]][body[at + 1]]
            at += step or _long_step(body, at)
    except IndexError:  # past the end: it is not right
        at = -1
    is_right = 0 <= at == end - start
    out[:] = record_starts if is_right else 0
    out += start
    return is_right


PAST_THE_END = 5  # bytes that a varint at the very end may touch


def _long_step(body: bytes, at: int) -> int:
    """How far the next record is when the length takes more than two bytes."""
    value = shift = 0
    for place in range(at, at + 5):
        byte = body[place]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            value &= 0xFFFFFFFF
            if value & 1:  # negative
                break
            return (value >> 1) + place + 1 - at
    raise IndexError


def chosen(mask: Mask) -> Mask | slice:
    """The mask, or what is the same and cheaper where it holds everywhere."""
    return slice(None) if mask.all() else mask
