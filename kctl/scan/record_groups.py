"""Records of the batches of a run as columns, in groups whose bodies fit in memory together.

Bodies that are not compressed are looked at where they lie in the block; others are decompressed side by
side into one array. A batch whose records cannot be read gets a `Trouble`, with the error of the decoder of
single batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from formats.columns.headers import PADDING, Headers
from formats.columns.records import Fields, decode
from formats.compression import DEFAULT_LIMIT, CompressionError, TooLarge, decompress
from formats.errors import FormatError
from formats.record_batch import CODEC_MASK, HEADER_SIZE, BatchHeader, read_header, read_records
from kctl.scan.block import Block

Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

GROUP_BYTES = 8 << 20  # of bodies that are decoded together
GROUP_RECORDS = 128 << 10
SMALLEST_RECORD = 7  # bytes: one for each field of a record with nothing in it
WHOLE = 32 << 20  # bodies up to this size are decoded at once when their records are only checked


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the records of a batch cannot be read."""

    row: int  # of the batch in the headers
    error: FormatError
    records_before: int  # that can be read


@dataclass(slots=True)
class Group:
    """The records of batches [first, after) of a run, and what is wrong with them."""

    first: int
    after: int
    data: Octets
    rows: Ints  # of the batches whose records are in `fields`
    first_rows: Ints  # where the records of each of them begin; one more at the end
    fields: Fields
    bad: Mask  # those of `rows` whose records mean nothing
    trouble: list[Trouble] = field(default_factory=list)
    too_large: list[int] = field(default_factory=list)
    wrong_crc: list[tuple[int, int]] = field(default_factory=list)  # row and offset of inner messages

    def moved(self, by: int) -> "Group":
        """The same, its rows counted from `by` rows earlier."""
        if by:
            self.first += by
            self.after += by
            self.rows = self.rows + by
            self.trouble = [Trouble(one.row + by, one.error, one.records_before) for one in self.trouble]
            self.too_large = [row + by for row in self.too_large]
            self.wrong_crc = [(row + by, offset) for row, offset in self.wrong_crc]
        return self


def batch_groups(
    headers: Headers, block: Block, *, limit: int = DEFAULT_LIMIT, whole: int = WHOLE
) -> Iterator[Group]:
    """The records of batches of magic 2 whose bytes are all in the block.

    Batches with a wrong CRC, without records, or of an unknown codec are passed over. What decompresses to
    more than `limit` is in `too_large`, what comes to more than `whole` too: it has to be read in pieces.
    """
    readable = headers.crc_valid & (headers.records_count > 0) & (headers.codec <= 4)
    rows = np.flatnonzero(readable)
    starts = headers.position - block.start + HEADER_SIZE
    ends = headers.next_position - block.start
    compressed = headers.codec[rows] != 0
    if not compressed.any():
        yield from _in_place(headers, block, rows, starts, ends)
        return
    yield from _decompressed(headers, block, rows, starts, ends, min(limit, whole))


def _in_place(headers: Headers, block: Block, rows: Ints, starts: Ints, ends: Ints) -> Iterator[Group]:
    """Groups whose bodies are looked at in the block."""
    counts = headers.records_count[rows].astype(np.int64)
    sizes = (ends - starts)[rows]
    cuts = _cuts(sizes, np.minimum(counts, sizes // SMALLEST_RECORD))
    first = 0
    for low, high in pairwise(cuts):
        after = len(headers) if high == len(rows) else int(rows[high])
        chosen = rows[low:high]
        group = _decoded(headers, block.data, chosen, starts[chosen], ends[chosen], first, after)
        _explain(group, headers, block)
        yield group
        first = after
    if not len(rows):
        yield _decoded(headers, block.data, rows, rows, rows, 0, len(headers))


def _cuts(sizes: Ints, counts: Ints) -> list[int]:
    """Where groups begin, and the end."""
    weight = np.cumsum(sizes / GROUP_BYTES + counts / GROUP_RECORDS).astype(np.int64)
    return [*np.flatnonzero(np.diff(weight, prepend=-1)).tolist(), len(sizes)]


def _decompressed(
    headers: Headers, block: Block, rows: Ints, starts: Ints, ends: Ints, limit: int
) -> Iterator[Group]:
    """Groups whose bodies are decompressed, those that are not compressed copied."""
    parts: list[bytes] = []
    chosen: list[int] = []
    trouble: list[Trouble] = []
    too_large: list[int] = []
    size = count = first = 0
    view = memoryview(block.data.data)
    codecs = headers.codec.tolist()
    for row in rows.tolist():
        try:
            body = decompress(codecs[row], view[starts[row] : ends[row]], magic=2, limit=limit)
        except TooLarge:
            too_large.append(row)
            continue
        except CompressionError as error:
            trouble.append(Trouble(row, error, 0))
            continue
        parts.append(body)
        chosen.append(row)
        size += len(body)
        count += int(headers.records_count[row])
        if size >= GROUP_BYTES or count >= GROUP_RECORDS:
            yield _joined(headers, block, parts, chosen, first, row + 1, trouble, too_large)
            parts, chosen, trouble, too_large, size, count, first = [], [], [], [], 0, 0, row + 1
    yield _joined(headers, block, parts, chosen, first, len(headers), trouble, too_large)


def _joined(
    headers: Headers,
    block: Block,
    parts: list[bytes],
    chosen: list[int],
    first: int,
    after: int,
    trouble: list[Trouble],
    too_large: list[int],
) -> Group:
    data = np.frombuffer(b"".join([*parts, bytes(PADDING)]), np.uint8)
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    ends = np.cumsum(sizes)
    group = _decoded(headers, data, np.array(chosen, np.int64), ends - sizes, ends, first, after)
    _explain(group, headers, block, parts)
    group.trouble += trouble
    group.too_large += too_large
    return group


def _decoded(
    headers: Headers, data: Octets, rows: Ints, starts: Ints, ends: Ints, first: int, after: int
) -> Group:
    counts = headers.records_count[rows].astype(np.int64)
    impossible = counts > (ends - starts) // SMALLEST_RECORD
    if impossible.any():  # a count that lies must not size an array
        counts[impossible] = 0
    fields, first_rows, bad = decode(data, starts, ends, counts)
    return Group(first, after, data, rows, first_rows, fields, bad | impossible)


def _explain(group: Group, headers: Headers, block: Block, bodies: list[bytes] | None = None) -> None:
    """Ask the decoder of single batches what is wrong with the bodies that do not decode."""
    for number in np.flatnonzero(group.bad).tolist():
        row = int(group.rows[number])
        start = int(headers.position[row]) - block.start
        end = start + int(headers.size_in_bytes[row])
        batch = block.data[start:end].tobytes()
        body = bodies[number] if bodies is not None else batch[HEADER_SIZE:]
        error, before = exact_error(read_header(batch), body)
        group.trouble.append(Trouble(row, error, before))


def exact_error(header: BatchHeader, body: bytes) -> tuple[FormatError, int]:
    """What is wrong with a body, and how many records are right before it."""
    before = 0
    try:
        for _ in read_records(header, body):
            before += 1
    except FormatError as error:
        return error, before
    raise AssertionError(f"the two decoders disagree on the batch at offset {header.base_offset}")


__all__ = ["CODEC_MASK", "Group", "Trouble", "batch_groups", "exact_error"]
