"""Records against the header of their batch: offsets, timestamps, and what cannot be read at all."""

from collections.abc import Iterator

import numpy as np

from formats.arrays import Ints
from formats.compression import Codec, CompressionError, TooLarge
from formats.errors import FormatError
from formats.log.columns.headers import Headers
from formats.log.control_records import ControlType, read_key, read_marker
from formats.log.record_batch import CONTROL, HEADER_SIZE, TIMESTAMP_TYPE, read_header
from formats.log.records import LARGEST_COMPRESSED
from kctl.findings import Place, segments
from kctl.scan.checks.check import RowFinding, Suspects, always
from kctl.scan.large_batches import body_pieces, check_large
from kctl.scan.options import ScanOptions
from kctl.scan.record_groups import RecordGroup, Trouble
from kctl.scan.source import Source


def unreadable_records(group: RecordGroup, headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Batches that cannot be decompressed, or whose records cannot be read."""
    for trouble in group.trouble:
        yield _unreadable(trouble, headers)


def record_crcs(group: RecordGroup, headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Messages inside a compressed set whose own CRC is wrong."""
    for row, offset in group.wrong_crc:
        yield Suspects(segments.RECORD_CRC_MISMATCH, [row], always(offset=offset))


def control_records(group: RecordGroup, headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Control records whose key, or end markers whose value, cannot be read."""
    control = (headers.attributes[group.rows] & CONTROL != 0) & (headers.magic[group.rows] == 2) & ~group.bad
    for number in np.flatnonzero(control).tolist():
        row = int(group.rows[number])
        for at in range(int(group.first_rows[number]), int(group.first_rows[number + 1])):
            try:
                key = read_key(_bytes(group, group.fields.key_position, group.fields.key_size, at))
                if key.type in (ControlType.ABORT, ControlType.COMMIT):
                    read_marker(_bytes(group, group.fields.value_position, group.fields.value_size, at))
            except FormatError as error:
                yield Suspects(segments.CONTROL_BATCH, [row], always(what=error.what))


def _bytes(group: RecordGroup, positions: Ints, sizes: Ints, at: int) -> bytes | None:
    start, size = int(positions[at]), int(sizes[at])
    return group.data[start : start + size].tobytes() if size >= 0 else None


def record_offsets(group: RecordGroup, headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Offset deltas that do not grow, or lie outside of the batch."""
    delta = group.fields.offset_delta
    if not len(delta):
        return
    starts, after = group.first_rows[:-1], group.first_rows[1:]
    has_records = (after > starts) & ~group.bad
    wrong = np.zeros(len(group.rows), np.bool_)
    wrong[has_records] = delta[starts[has_records]] < 0
    wrong[has_records] |= delta[after[has_records] - 1] > headers.last_offset_delta[group.rows[has_records]]
    grows = delta[1:] > delta[:-1]
    grows[starts[(starts > 0) & (starts < len(delta))] - 1] = True
    if not grows.all():
        wrong[np.searchsorted(starts, np.flatnonzero(~grows) + 1, side="right") - 1] = True
        wrong &= has_records
    for number in np.flatnonzero(wrong).tolist():
        row = int(group.rows[number])
        deltas = delta[starts[number] : after[number]]
        before = np.concatenate(([-1], deltas[:-1]))
        at = int(((deltas <= before) | (deltas > headers.last_offset_delta[row])).argmax())
        yield _wrong_offset(at + 1, int(deltas[at]), int(before[at]), headers, row)


def _wrong_offset(number: int, delta: int, before: int, headers: Headers, row: int) -> Suspects:
    base, last = int(headers.base_offset[row]), int(headers.last_offset_delta[row])
    if delta < 0:
        why = f"below the batch's base offset {base}"
    elif delta > last:
        why = f"beyond the batch's last offset {base + last}"
    else:
        why = f"not after {base + before} before it"
    count = int(headers.records_count[row])
    details = always(number=number, count=count, offset=base + delta, why=why)
    return Suspects(segments.RECORD_OFFSETS, [row], details)


def record_timestamps(group: RecordGroup, headers: Headers, options: ScanOptions) -> Iterator[Suspects]:
    """Max timestamps that are not those of the latest record."""
    filled = np.diff(group.first_rows) > 0
    is_judged = filled & ~group.bad & (headers.attributes[group.rows] & TIMESTAMP_TYPE == 0)
    if not is_judged.any():
        return
    # reduceat takes each range up to the next one's start: ranges with nothing in them are left out first.
    latest = np.full(len(group.rows), np.iinfo(np.int64).min)
    latest[filled] = np.maximum.reduceat(group.fields.timestamp_delta, group.first_rows[:-1][filled])
    with np.errstate(over="ignore"):
        latest += headers.base_timestamp[group.rows]
    wrong = np.flatnonzero(is_judged & (latest != headers.max_timestamp[group.rows])).tolist()
    latest_of = {int(group.rows[number]): int(latest[number]) for number in wrong}
    yield Suspects(
        segments.MAX_TIMESTAMP,
        list(latest_of),
        lambda row: {"max_timestamp": int(headers.max_timestamp[row]), "latest": latest_of[row]},
    )


def check_large_batch(
    headers: Headers, row: int, source: Source, place: Place, limit: int
) -> list[RowFinding]:
    """What is wrong with the records of a batch that is read piece by piece, because it does not fit into memory.

    The functions above do not see such a batch; what they check is checked here once more.
    """
    position = int(headers.position[row])
    header = read_header(source.read_at(position, HEADER_SIZE).ljust(HEADER_SIZE, b"\0"))
    if header.codec and header.size_in_bytes > LARGEST_COMPRESSED:
        not_examined = Suspects(segments.NOT_EXAMINED, [row], always(limit=limit, examined=0))
        return list(not_examined.findings(headers, place))
    result = check_large(header, body_pieces(source, position, header, limit))
    if isinstance(result.error, TooLarge):
        details = always(limit=result.error.limit, examined=result.records)
        not_examined = Suspects(segments.NOT_EXAMINED, [row], details)
        return list(not_examined.findings(headers, place))
    suspects: list[Suspects] = []
    if result.error is not None:
        suspects.append(_unreadable(Trouble(row, result.error, result.records), headers))
    if result.wrong_offset is not None:
        suspects.append(_wrong_offset(*result.wrong_offset, headers, row))
    latest = header.base_timestamp + (result.latest_delta or 0)
    if not suspects and not header.is_log_append_time and latest != header.max_timestamp:
        details = always(max_timestamp=header.max_timestamp, latest=latest)
        suspects.append(Suspects(segments.MAX_TIMESTAMP, [row], details))
    return [finding for suspect in suspects for finding in suspect.findings(headers, place)]


def _unreadable(trouble: Trouble, headers: Headers) -> Suspects:
    row, error = trouble.row, trouble.error
    if isinstance(error, CompressionError):
        number = int(headers.codec[row])  # sets of magic 0 and 1 come here with any
        codec = Codec(number).name.lower() if number in [*Codec] else f"codec {number}"
        return Suspects(segments.NOT_DECOMPRESSED, [row], always(codec=codec, what=error))
    number, count = trouble.records_before + 1, int(headers.records_count[row])
    return Suspects(segments.RECORD_MALFORMED, [row], always(number=number, count=count, what=error))
