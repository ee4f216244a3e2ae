"""Batches too large to have in memory at once: their records are checked piece by piece as they come.

Nothing here grows with the batch, but a single record is held whole, up to `LARGEST_RECORD`.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints
from formats.compression import pieces
from formats.errors import FormatError, Truncated
from formats.log.columns.headers import PADDING
from formats.log.columns.records import fields_of
from formats.log.record_batch import HEADER_SIZE, BatchHeader, read_record, whole_records
from formats.values import Struct
from formats.words import counted
from kctl.scan.source import Source

PIECE = 1 << 20


class LargeBatch(Struct):
    """The result of checking the records of one batch; `error` says why they cannot be read."""

    records: int = 0
    latest_delta: int | None = None  # of the timestamps
    wrong_offset: tuple[int, int, int] | None = None  # number from 1, offset delta, the delta before it
    error: FormatError | None = None


def body_pieces(source: Source, position: int, header: BatchHeader, limit: int) -> Iterator[bytes]:
    """The decompressed body of the batch at position; `CompressionError` where it cannot be."""
    start, size = position + HEADER_SIZE, header.size_in_bytes - HEADER_SIZE
    if header.codec:
        yield from pieces(header.codec, source.read_at(start, size), magic=2, limit=limit)
        return
    for at in range(start, start + size, PIECE):
        yield source.read_at(at, min(PIECE, start + size - at))


def check_large(header: BatchHeader, body: Iterator[bytes]) -> LargeBatch:
    """The records of a batch whose decompressed body comes in pieces."""
    result = LargeBatch()
    before = -1
    try:
        for window, positions, ends in _windows(header, body, result):
            columns, wrong = fields_of(window, positions, ends)
            if len(wrong):
                result.records += int(wrong[0])
                read_record(header, window.data, int(positions[wrong[0]]))
                raise AssertionError("the two decoders disagree on a record")
            timestamps, deltas = columns[0], columns[1]
            odd = (deltas <= np.concatenate(([before], deltas[:-1]))) | (deltas > header.last_offset_delta)
            if odd.any() and result.wrong_offset is None:
                at = int(odd.argmax())
                previous = int(deltas[at - 1]) if at else before
                result.wrong_offset = result.records + at + 1, int(deltas[at]), previous
            latest = int(timestamps.max())
            result.latest_delta = latest if result.latest_delta is None else max(latest, result.latest_delta)
            before = int(deltas[-1])
            result.records += len(positions)
    except FormatError as error:
        result.error = error.with_traceback(None)  # it would hold the body
    return result


def _windows(
    header: BatchHeader, body: Iterator[bytes], result: LargeBatch
) -> Iterator[tuple[NDArray[np.uint8], Ints, Ints]]:
    """Runs of whole records: their bytes, where each begins and where it ends."""
    data = bytearray()
    needed = place = 0  # the place of the held bytes in the body
    for piece in body:
        data += piece
        if len(data) < needed:
            continue
        starts, stop, needed = whole_records(data, header.records_count - result.records)
        remainder = data[stop:]
        if starts:
            ends = np.array([*starts[1:], stop], np.int64)
            data += bytes(PADDING)
            yield np.frombuffer(data, np.uint8)[: stop + PADDING], np.array(starts, np.int64), ends
        data, place = remainder, place + stop
        if result.records == header.records_count and data:
            raise FormatError(f"bytes follow the last of {counted(header.records_count, 'record')}", place)
    if result.records < header.records_count:
        problem = f"the batch ends after {counted(result.records, 'record')}, its header promises {header.records_count}"
        raise Truncated(problem, place)
