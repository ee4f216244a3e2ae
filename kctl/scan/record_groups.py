"""Records of the batches of a run as columns, in groups whose bodies fit in memory together.

A batch whose records cannot be read gets a `Trouble`, with the error of the decoder of single batches.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from formats.compression import DEFAULT_LIMIT, CompressionError, TooLarge, decompress
from formats.errors import FormatError
from formats.log.columns.headers import Headers
from formats.log.columns.records import Fields, decode
from formats.log.record_batch import HEADER_SIZE, BatchHeader, read_header, read_records
from formats.values import Struct, field
from kctl.scan.block import Arena, SourceBlock

Octets = NDArray[np.uint8]

GROUP_BYTES = 16 << 20  # of bodies that are decoded together
GROUP_RECORDS = 256 << 10
SMALLEST_RECORD = 7  # bytes: one for each field of a record with nothing in it
WHOLE = 32 << 20  # bodies up to this size are decoded at once when their records are only checked


class Trouble(Struct, frozen=True):
    """Why the records of a batch cannot be read."""

    row: int  # of the batch in the headers
    error: FormatError
    records_before: int  # that can be read


class RecordGroup(Struct):
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

    def moved(self, by: int) -> "RecordGroup":
        """The same, its rows counted from `by` rows earlier."""
        if by:
            self.first += by
            self.after += by
            self.rows = self.rows + by
            self.trouble = [
                Trouble(finding.row + by, finding.error, finding.records_before) for finding in self.trouble
            ]
            self.too_large = [row + by for row in self.too_large]
            self.wrong_crc = [(row + by, offset) for row, offset in self.wrong_crc]
        return self


def batch_groups(
    headers: Headers, block: SourceBlock, *, limit: int = DEFAULT_LIMIT, whole: int = WHOLE
) -> Iterator[RecordGroup]:
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


def _in_place(
    headers: Headers, block: SourceBlock, rows: Ints, starts: Ints, ends: Ints
) -> Iterator[RecordGroup]:
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
    if sizes.sum() / GROUP_BYTES + counts.sum() / GROUP_RECORDS < 1 and len(sizes):
        return [0, len(sizes)]
    weight = np.cumsum(sizes / GROUP_BYTES + counts / GROUP_RECORDS).astype(np.int64)
    return [*np.flatnonzero(np.diff(weight, prepend=-1)).tolist(), len(sizes)]


def _decompressed(
    headers: Headers, block: SourceBlock, rows: Ints, starts: Ints, ends: Ints, limit: int
) -> Iterator[RecordGroup]:
    """Groups whose bodies are decompressed, those that are not compressed copied."""
    bodies, first = _Bodies(block.arena), 0
    starts, ends, counts, codecs = starts[rows], ends[rows], headers.records_count[rows], headers.codec[rows]
    for low, high in pairwise(_cuts_by_codec(codecs, ends - starts)):
        while low < high:
            run = slice(low, high)
            count = bodies.add(int(codecs[low]), block.data, rows[run], starts[run], ends[run], limit)
            bodies.count += int(counts[low : low + count].sum())
            low += count
            if block.arena.size >= GROUP_BYTES or bodies.count >= GROUP_RECORDS:
                after = int(rows[low - 1]) + 1
                yield _joined(headers, block, bodies, first, after)
                bodies, first = _Bodies(block.arena), after
    yield _joined(headers, block, bodies, first, len(headers))


RUN_BYTES = 1 << 20  # compressed, of bodies that are looked at together
RUN_ROWS = 16384
ROOM = 1 << 20  # what the body of a batch is given at first; larger ones are rare


def _cuts_by_codec(codecs: NDArray[np.int16], sizes: Ints) -> list[int]:
    """Where runs of one codec begin, few and small enough that a group can end behind each; and the end."""
    weight = np.cumsum(sizes / RUN_BYTES + 1 / RUN_ROWS).astype(np.int64)
    ends = (np.diff(codecs) != 0) | (np.diff(weight) != 0)
    return [0, *(np.flatnonzero(ends) + 1).tolist(), len(codecs)]


class _Bodies(Struct):
    """Decompressed bodies of a group that is being gathered."""

    arena: Arena
    rows: list[Ints] = field(default_factory=list)
    starts: list[Ints] = field(default_factory=list)
    ends: list[Ints] = field(default_factory=list)
    count: int = 0  # of records, as the headers have it
    trouble: list[Trouble] = field(default_factory=list)
    too_large: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.arena.size = 0

    def add(self, codec: int, data: Octets, rows: Ints, starts: Ints, ends: Ints, limit: int) -> int:
        """Bodies compressed in data[start:end], as many of them as the group has room for; how many rows that were."""
        from formats.compression.many import small_bodies  # codecs are loaded where a batch has one

        small = small_bodies(codec, data, starts, ends, self.arena.room, min(limit, GROUP_BYTES))
        if small is None:
            return self.add_each(codec, data, rows, starts, ends, limit)
        self.hold(rows, small.starts + self.arena.size, small.ends + self.arena.size)
        self.arena.size += small.size
        return len(rows)

    def add_each(self, codec: int, data: Octets, rows: Ints, starts: Ints, ends: Ints, limit: int) -> int:
        """The same, and why some of them cannot be decompressed."""
        from formats.compression.in_place import reader_into

        view, arena, into = memoryview(data.data), self.arena, reader_into(codec)
        good: list[int] = []
        edges = [arena.size]
        most = min(limit, ROOM)
        room, first, rows_done = arena.room(0), arena.size, 0
        for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
            if first + len(room) < arena.size + most:
                if arena.size >= GROUP_BYTES:
                    break
                room, first = arena.room(4 * most), arena.size
            rows_done += 1
            at = arena.size - first
            size = into(view[start:end], room[at : at + most]) if into is not None else None
            try:
                if size is None:
                    arena.add(decompress(codec, view[start:end], magic=2, limit=limit))
                    room, first = arena.room(0), arena.size
                else:
                    arena.size += size
            except TooLarge:
                self.too_large.append(row)
            except CompressionError as error:
                self.trouble.append(Trouble(row, error, 0))
            else:
                good.append(row)
                edges.append(arena.size)
        self.hold(np.array(good, np.int64), np.array(edges[:-1], np.int64), np.array(edges[1:], np.int64))
        return rows_done

    def hold(self, rows: Ints, starts: Ints, ends: Ints) -> None:
        """Bodies that are in the arena, or about to be."""
        self.rows.append(rows)
        self.starts.append(starts)
        self.ends.append(ends)


def _joined(headers: Headers, block: SourceBlock, bodies: _Bodies, first: int, after: int) -> RecordGroup:
    none = np.empty(0, np.int64)
    parts = (bodies.rows, bodies.starts, bodies.ends)
    rows, starts, ends = (np.concatenate([none, *columns]) for columns in parts)
    group = _decoded(headers, bodies.arena.data(), rows, starts, ends, first, after)
    _explain(group, headers, block, (starts, ends))
    group.trouble += bodies.trouble
    group.too_large += bodies.too_large
    return group


def _decoded(
    headers: Headers, data: Octets, rows: Ints, starts: Ints, ends: Ints, first: int, after: int
) -> RecordGroup:
    counts = headers.records_count[rows].astype(np.int64)
    impossible = counts > (ends - starts) // SMALLEST_RECORD
    if impossible.any():  # a count that lies must not size an array
        counts[impossible] = 0
    fields, first_rows, bad = decode(data, starts, ends, counts)
    return RecordGroup(first, after, data, rows, first_rows, fields, bad | impossible)


def _explain(
    group: RecordGroup, headers: Headers, block: SourceBlock, spans: tuple[Ints, Ints] | None = None
) -> None:
    """Ask the decoder of single batches about the bodies that do not decode; spans of those that were compressed."""
    for number in np.flatnonzero(group.bad).tolist():
        row = int(group.rows[number])
        start = int(headers.position[row]) - block.start
        batch = block.data[start : start + int(headers.size_in_bytes[row])].tobytes()
        body = batch[HEADER_SIZE:]
        if spans is not None:
            body = group.data[spans[0][number] : spans[1][number]].tobytes()
        error, before = exact_error(read_header(batch), body)
        group.trouble.append(Trouble(row, error, before))


def exact_error(header: BatchHeader, body: bytes) -> tuple[FormatError, int]:
    """The error in a body that does not decode, and the number of records before it that are right."""
    before = 0
    try:
        for _ in read_records(header, body):
            before += 1
    except FormatError as error:
        return error, before
    raise AssertionError(f"the two decoders disagree on the batch at offset {header.base_offset}")
