"""Records against the header of their batch: offsets, timestamps, and what cannot be read at all."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from formats.columns.headers import Headers
from formats.compression import Codec, CompressionError
from formats.record_batch import TIMESTAMP_TYPE
from kctl.checks.batches import place_of
from kctl.findings import Finding, Place, segments
from kctl.scan.record_groups import Group, Trouble

Ints = NDArray[np.int64]
RowFinding = tuple[int, Finding]


def check_records(group: Group, headers: Headers, place: Place, limit: int) -> list[RowFinding]:
    """What is wrong with the records of a group, with the row of the batch."""
    found = [(trouble.row, _unreadable(trouble, headers, place)) for trouble in group.trouble]
    for row in group.too_large:
        found.append((row, segments.NOT_EXAMINED.at(place_of(headers, row, place), limit=limit)))
    for row, offset in group.wrong_crc:
        found.append((row, segments.RECORD_CRC_MISMATCH.at(place_of(headers, row, place), offset=offset)))
    if len(group.rows) and len(group.fields.position):
        found += _offsets(group, headers, place)
        found += _timestamps(group, headers, place)
    return found


def _unreadable(trouble: Trouble, headers: Headers, place: Place) -> Finding:
    where = place_of(headers, trouble.row, place)
    if isinstance(trouble.error, CompressionError):
        codec = Codec(int(headers.codec[trouble.row])).name.lower()
        return segments.NOT_DECOMPRESSED.at(where, codec=codec, what=trouble.error)
    count = int(headers.records_count[trouble.row])
    return segments.RECORD_MALFORMED.at(
        where, number=trouble.records_before + 1, count=count, what=trouble.error
    )


def _offsets(group: Group, headers: Headers, place: Place) -> Iterator[RowFinding]:
    """Offset deltas that do not grow, or lie outside of the batch."""
    delta = group.fields.offset_delta
    starts, after = group.first_rows[:-1], group.first_rows[1:]
    held = (after > starts) & ~group.bad
    wrong = np.zeros(len(group.rows), np.bool_)
    wrong[held] = delta[starts[held]] < 0
    wrong[held] |= delta[after[held] - 1] > headers.last_offset_delta[group.rows[held]]
    back = np.flatnonzero(np.diff(delta) <= 0) + 1
    if len(back):
        numbers = np.searchsorted(starts, back, side="right") - 1
        inside = back != starts[numbers]
        wrong[numbers[inside]] = True
        wrong &= held
    for number in np.flatnonzero(wrong).tolist():
        row = int(group.rows[number])
        yield row, _offset_finding(delta[starts[number] : after[number]], headers, row, place)


def _offset_finding(delta: Ints, headers: Headers, row: int, place: Place) -> Finding:
    base, last = int(headers.base_offset[row]), int(headers.last_offset_delta[row])
    before = np.concatenate(([-1], delta[:-1]))
    wrong = (delta <= before) | (delta > last)
    number = int(wrong.argmax())
    if delta[number] < 0:
        why = f"below the batch's base offset {base}"
    elif delta[number] > last:
        why = f"beyond the batch's last offset {base + last}"
    else:
        why = f"not after {base + int(before[number])} before it"
    return segments.RECORD_OFFSETS.at(
        place_of(headers, row, place),
        number=number + 1,
        count=len(delta),
        offset=base + int(delta[number]),
        why=why,
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
