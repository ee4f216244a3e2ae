"""Records against the header of their batch: offsets, timestamps, and what cannot be read at all."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from formats.columns.headers import Headers
from formats.compression import Codec, CompressionError, TooLarge
from formats.control_records import ControlType, read_key, read_marker
from formats.errors import FormatError
from formats.record_batch import CONTROL, HEADER_SIZE, TIMESTAMP_TYPE, read_header
from kctl.checks.batches import place_of
from kctl.findings import Finding, Place, segments
from kctl.scan.large_batches import COMPRESSED_AT_MOST, body_pieces, check_large
from kctl.scan.record_groups import Group, Trouble
from kctl.scan.source import Source

Ints = NDArray[np.int64]
RowFinding = tuple[int, Finding]


def check_records(group: Group, headers: Headers, place: Place) -> list[RowFinding]:
    """What is wrong with the records of a group, with the row of the batch."""
    found = [(trouble.row, _unreadable(trouble, headers, place)) for trouble in group.trouble]
    for row, offset in group.wrong_crc:
        found.append((row, segments.RECORD_CRC_MISMATCH.at(place_of(headers, row, place), offset=offset)))
    found += _control_batches(group, headers, place)
    if len(group.rows) and len(group.fields.position):
        found += _offsets(group, headers, place)
        found += _timestamps(group, headers, place)
    return found


def check_large_batch(
    headers: Headers, row: int, source: Source, place: Place, limit: int
) -> tuple[int, list[RowFinding]]:
    """How many records a batch has that is read piece by piece, and what is wrong with them."""
    where, position = place_of(headers, row, place), int(headers.position[row])
    header = read_header(source.read_at(position, HEADER_SIZE).ljust(HEADER_SIZE, b"\0"))
    if header.codec and header.size_in_bytes > COMPRESSED_AT_MOST:
        return 0, [(row, segments.NOT_EXAMINED.at(where, limit=limit))]
    found = check_large(header, body_pieces(source, position, header, limit))
    said: list[Finding] = []
    if isinstance(found.error, TooLarge):
        return found.records, [(row, segments.NOT_EXAMINED.at(where, limit=limit))]
    if found.error is not None:
        said.append(_unreadable(Trouble(row, found.error, found.records), headers, place))
    if found.wrong_offset is not None:
        number, delta, before = found.wrong_offset
        said.append(_offset_finding(number, delta, before, headers, row, place))
    latest = header.base_timestamp + (found.latest_delta or 0)
    if not said and not header.is_log_append_time and latest != header.max_timestamp:
        said.append(segments.MAX_TIMESTAMP.at(where, max_timestamp=header.max_timestamp, latest=latest))
    return found.records, [(row, one) for one in said]


def _unreadable(trouble: Trouble, headers: Headers, place: Place) -> Finding:
    where = place_of(headers, trouble.row, place)
    if isinstance(trouble.error, CompressionError):
        codec = Codec(int(headers.codec[trouble.row])).name.lower()
        return segments.NOT_DECOMPRESSED.at(where, codec=codec, what=trouble.error)
    count = int(headers.records_count[trouble.row])
    return segments.RECORD_MALFORMED.at(
        where, number=trouble.records_before + 1, count=count, what=trouble.error
    )


def _control_batches(group: Group, headers: Headers, place: Place) -> Iterator[RowFinding]:
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
                yield row, segments.CONTROL_BATCH.at(place_of(headers, row, place), what=error.what)


def _bytes(group: Group, positions: Ints, sizes: Ints, at: int) -> bytes | None:
    start, size = int(positions[at]), int(sizes[at])
    return group.data[start : start + size].tobytes() if size >= 0 else None


def _offsets(group: Group, headers: Headers, place: Place) -> Iterator[RowFinding]:
    """Offset deltas that do not grow, or lie outside of the batch."""
    delta = group.fields.offset_delta
    starts, after = group.first_rows[:-1], group.first_rows[1:]
    held = (after > starts) & ~group.bad
    wrong = np.zeros(len(group.rows), np.bool_)
    wrong[held] = delta[starts[held]] < 0
    wrong[held] |= delta[after[held] - 1] > headers.last_offset_delta[group.rows[held]]
    grows = delta[1:] > delta[:-1]
    grows[starts[(starts > 0) & (starts < len(delta))] - 1] = True
    if not grows.all():
        wrong[np.searchsorted(starts, np.flatnonzero(~grows) + 1, side="right") - 1] = True
        wrong &= held
    for number in np.flatnonzero(wrong).tolist():
        row = int(group.rows[number])
        mine = delta[starts[number] : after[number]]
        before = np.concatenate(([-1], mine[:-1]))
        at = int(((mine <= before) | (mine > headers.last_offset_delta[row])).argmax())
        yield row, _offset_finding(at + 1, int(mine[at]), int(before[at]), headers, row, place)


def _offset_finding(
    number: int, delta: int, before: int, headers: Headers, row: int, place: Place
) -> Finding:
    base, last = int(headers.base_offset[row]), int(headers.last_offset_delta[row])
    if delta < 0:
        why = f"below the batch's base offset {base}"
    elif delta > last:
        why = f"beyond the batch's last offset {base + last}"
    else:
        why = f"not after {base + before} before it"
    count = int(headers.records_count[row])
    return segments.RECORD_OFFSETS.at(
        place_of(headers, row, place), number=number, count=count, offset=base + delta, why=why
    )


def _timestamps(group: Group, headers: Headers, place: Place) -> Iterator[RowFinding]:
    """Max timestamps that are not those of the latest record."""
    create_time = headers.attributes[group.rows] & TIMESTAMP_TYPE == 0
    held = (np.diff(group.first_rows) > 0) & ~group.bad & create_time
    if not held.any():
        return
    # reduceat takes each range up to the next one's start: ranges with nothing in them are left out first.
    filled = np.diff(group.first_rows) > 0
    latest = np.full(len(group.rows), np.iinfo(np.int64).min)
    latest[filled] = np.maximum.reduceat(group.fields.timestamp_delta, group.first_rows[:-1][filled])
    with np.errstate(over="ignore"):
        latest += headers.base_timestamp[group.rows]
    for number in np.flatnonzero(held & (latest != headers.max_timestamp[group.rows])).tolist():
        row = int(group.rows[number])
        details = {"max_timestamp": int(headers.max_timestamp[row]), "latest": int(latest[number])}
        yield row, segments.MAX_TIMESTAMP.at(place_of(headers, row, place), **details)  # type: ignore[arg-type]
