"""Small logs that are read together, and their indexes, which are compared with the batches of all at once.

Here an index is found to be right or nothing: whatever is not as a broker writes it today is compared by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from formats.arrays import Ints, Mask
from formats.log.columns.headers import Headers
from formats.log_dir.index_files import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from kctl.checks.indexes import OFFSET_ENTRY, TIME_ENTRY, ReadIndexes, SoundTimes
from kctl.files import read_padded
from kctl.log.folder import FolderFile, LogSegment
from kctl.scan.options import ScanOptions
from kctl.scan.together import ReadTogether

LARGEST_INDEX = 16 << 10
"""Bytes of an index that is read with others: those of active segments are often megabytes of zeros."""
OF_A_LOG = 32
"""The bits of a relative offset or a position; the number of the log stands above them."""
OF_A_TIME = 46
"""The bits of a timestamp: until the year 4199."""
HIGHEST_NAME = 1 << 62


class SmallLogs(ReadTogether):
    """Small logs of segments, in the order in which they are asked for, with their indexes."""

    def __init__(self, segments: Iterable[LogSegment], options: ScanOptions) -> None:
        self._segments = {segment.log.path: segment for segment in segments if segment.log}
        self._indexes: dict[Path, ReadIndexes] = {}
        super().__init__(self._segments, options)

    def indexes_of(self, path: Path) -> ReadIndexes | None:
        """The indexes beside a sound log; None for those of any other."""
        self._read_with(path)
        return self._indexes.pop(path, None)

    def close(self) -> None:
        """Close what nobody asked for."""
        super().close()
        self._indexes = {}

    def _found_sound(self, logs: Mapping[Path, Headers]) -> None:
        segments = [self._segments[path] for path in logs]
        self._indexes.update(zip(logs, read_indexes(segments, [*logs.values()]), strict=True))


def read_indexes(segments: Sequence[LogSegment], headers: Sequence[Headers]) -> list[ReadIndexes]:
    """The indexes of segments whose logs have these batches, all sound; none where they cannot be read."""
    offsets = [_read(segment.index) for segment in segments]
    times = [_read(segment.time_index) for segment in segments]
    bases = np.array([min(segment.base_offset, HIGHEST_NAME) for segment in segments])
    plain = [number for number, of_log in enumerate(headers) if _is_plain(of_log, int(bases[number]))]
    sound_offsets, sound_times = set[int](), dict[int, SoundTimes]()
    if plain:
        batches = _Batches([headers[number] for number in plain], bases[plain])
        sound_offsets = {plain[n] for n in batches.sound_offsets([offsets[number] for number in plain])}
        of_times = batches.sound_times([times[number] for number in plain])
        sound_times = {plain[n]: sound for n, sound in of_times.items()}
    return [
        ReadIndexes(offset, time, number in sound_offsets, sound_times.get(number))
        for number, (offset, time) in enumerate(zip(offsets, times, strict=True))
    ]


def _read(file: FolderFile | None) -> bytes | None:
    if file is None or file.size_in_bytes > LARGEST_INDEX:
        return None
    try:
        return read_padded(file.path)
    except OSError:
        return None  # whoever needs it reads it once more, and says what is wrong


def _is_plain(headers: Headers, base_offset: int) -> bool:
    """Whether the batches, of magic 2 with records and times, follow each other from the segment's base offset on."""
    if not len(headers) or base_offset >= HIGHEST_NAME or headers.base_offset[0] != base_offset:
        return False
    base, last = headers.base_offset, headers.last_offset
    return bool(
        (base[1:] == last[:-1] + 1).all()
        and (last >= base).all()
        and last[-1] - base_offset < 1 << 31
        and (headers.magic == 2).all()
        and headers.crc_valid.all()
        and headers.records_count.min() > 0
        and headers.max_timestamp.min() >= 0
        and headers.max_timestamp.max() < 1 << OF_A_TIME
    )


class _Batches:
    """The batches of plain logs; what is looked for in them rises from log to log."""

    def __init__(self, headers: Sequence[Headers], bases: Ints) -> None:
        counts = [len(of_log) for of_log in headers]
        self.log = np.repeat(np.arange(len(headers)), counts)
        self.above = self.log << OF_A_LOG
        last = np.concatenate([of_log.last_offset for of_log in headers])
        self.last = self.above + last - np.repeat(bases, counts)
        self.position = np.concatenate([of_log.position for of_log in headers])
        self.at = self.above + self.position
        self.timestamp = np.concatenate([of_log.max_timestamp for of_log in headers])
        newest = np.maximum.accumulate((self.log << OF_A_TIME) + self.timestamp)
        self.newest = newest - (self.log << OF_A_TIME)
        self.ends = np.cumsum(counts)

    def sound_offsets(self, data: Sequence[bytes | None]) -> list[int]:
        """The logs whose offset index is right: each entry is the last offset of a batch from its position on, before the next."""
        entries = _Entries(data, OFFSET_ENTRY_SIZE)
        rows = np.frombuffer(entries.joined, OFFSET_ENTRY)
        offset, target = rows["relative_offset"].astype(np.int64), rows["position"].astype(np.int64)
        begins, is_begin = _found(self.at, entries.above + target)
        ends, is_end = _found(self.last, entries.above + offset)
        right = is_begin & is_end & (offset >= 0) & (target >= 0) & (ends >= begins)
        right[1:] &= entries.begins_log[1:] | (begins[1:] > ends[:-1])
        return entries.sound(right)

    def sound_times(self, data: Sequence[bytes | None]) -> dict[int, SoundTimes]:
        """The logs whose time index is right: each entry is the largest timestamp so far, and that of the batch it names."""
        entries = _Entries(data, TIME_ENTRY_SIZE)
        rows = np.frombuffer(entries.joined, TIME_ENTRY)
        timestamp, offset = rows["timestamp"].astype(np.int64), rows["relative_offset"].astype(np.int64)
        row = np.minimum(np.searchsorted(self.last, entries.above + offset), len(self.last) - 1)
        right = (offset >= 0) & (self.log[row] == entries.log) & (self.last[row] >= entries.above + offset)
        right &= (timestamp == self.timestamp[row]) & (timestamp == self.newest[row])
        rises = (timestamp[1:] > timestamp[:-1]) & (offset[1:] >= offset[:-1])
        right[1:] &= entries.begins_log[1:] | rises
        targets = self.position[row]
        return {
            number: SoundTimes(
                targets[entries.edges[number] : entries.edges[number + 1]],
                int(self.newest[self.ends[number] - 1]),
            )
            for number in entries.sound(right)
        }


def _found(values: Ints, wanted: Ints) -> tuple[Ints, Mask]:
    """The row of each value, and whether it is there."""
    rows = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return rows, values[rows] == wanted


class _Entries:
    """The entries of the indexes that have nothing but entries, one index behind the other."""

    def __init__(self, data: Sequence[bytes | None], width: int) -> None:
        whole = [b"" if of_log is None or len(of_log) % width else of_log for of_log in data]
        self._candidates = [
            of_log is not None and len(of_log) == len(part) for of_log, part in zip(data, whole, strict=True)
        ]
        self.joined = b"".join(whole)
        counts = [len(part) // width for part in whole]
        self.edges = [0, *np.cumsum(counts).tolist()]
        self.log = np.repeat(np.arange(len(data)), counts)
        self.above = self.log << OF_A_LOG
        self.begins_log = np.ones(len(self.log), np.bool_)
        self.begins_log[1:] = self.log[1:] != self.log[:-1]
        octets = np.frombuffer(self.joined, np.uint8).reshape(-1, width)
        self._is_filled = octets.any(axis=1)

    def sound(self, right: Mask) -> list[int]:
        """The logs all of whose entries are right; a row of zeros is none."""
        wrong = set(self.log[~(right & self._is_filled)].tolist())
        return [n for n, is_candidate in enumerate(self._candidates) if is_candidate and n not in wrong]
