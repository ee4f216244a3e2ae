"""Small logs read together: their bytes lie one behind another in memory, and are walked, checked and decoded at once.

A small log costs calls more than bytes, and each call here is for some dozens of logs. What comes out are the pieces
of sound logs; a log in which anything is wrong that a piece alone shows is left to a scan of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from formats.arrays import Ints
from formats.log.columns.headers import PADDING, Headers, check_crc, gather, walk
from formats.log.record_batch import LOG_OVERHEAD, MIN_LENGTH
from kctl.scan.block import SourceBlock
from kctl.scan.checks.table import header_checks, record_checks
from kctl.scan.options import Level, ScanOptions
from kctl.scan.pieces import ScannedPiece
from kctl.scan.record_groups import Octets, batch_groups
from kctl.scan.source import LocalFile, Source

LARGEST = 256 << 10
"""Bytes of a log that is read with others."""
TOGETHER = 1 << 20
"""Bytes of logs that are read at once."""
MOST = 64
"""Logs that are open at once."""


class LogInMemory(LocalFile):
    """A small log that was read whole; what happens to the file meanwhile is still seen."""

    data: Octets

    def read_at(self, position: int, size: int) -> bytes:
        """Bytes from position on, fewer where it ends."""
        return self.data[position : position + size].tobytes()

    def read_into(self, position: int, room: Octets) -> int:
        """Fill the room from position on; how many bytes there were."""
        part = self.data[position : position + len(room)]
        room[: len(part)] = part
        return len(part)


class ReadTogether:
    """Small logs and the pieces of sound ones, some of them read whenever the next one is asked for.

    `paths` are in the order in which they are asked for; some of them may not be.
    """

    def __init__(self, paths: Iterable[Path], options: ScanOptions) -> None:
        self._options = options
        self._waiting = deque(paths)
        self._to_read = set(self._waiting)
        self._logs: dict[Path, LogInMemory] = {}
        self._pieces: dict[Path, ScannedPiece] = {}

    def source_of(self, path: Path) -> Source | None:
        """The bytes of a sound log, which the caller closes; None for any other."""
        self._read_with(path)
        return self._logs.pop(path, None)

    def pieces(self, path: Path, source: Source, options: ScanOptions) -> Sequence[ScannedPiece] | None:
        """The pieces of a sound log as one scan would give them; None for any other."""
        piece = self._pieces.pop(path, None)
        return [piece] if piece is not None and isinstance(source, LogInMemory) else None

    def digest_of(self, path: Path) -> None:
        """None: no digest is made here."""

    def close(self) -> None:
        """Close what nobody asked for."""
        for log in self._logs.values():
            log.close()
        self._logs, self._pieces = {}, {}

    def _read_with(self, path: Path) -> None:
        """Read a log that was not read yet, and those behind it."""
        if path in self._to_read:
            self.close()
            self._read(self._next_from(path))

    def _found_sound(self, logs: Mapping[Path, Headers]) -> None:
        """Called with the batches of logs that were read and are sound."""

    def _next_from(self, path: Path) -> list[LogInMemory]:
        """The next logs that are read, beginning with this one; those before it are not asked for any more."""
        while self._waiting[0] != path:
            self._to_read.discard(self._waiting.popleft())
        logs: list[LogInMemory] = []
        size = 0
        while self._waiting and size < TOGETHER and len(logs) < MOST:
            self._to_read.discard(self._waiting[0])
            if log := _opened(self._waiting.popleft()):
                logs.append(log)
                size += log.size
        return logs

    def _read(self, logs: list[LogInMemory]) -> None:
        starts = [0, *accumulate(log.size for log in logs)]
        memory = np.empty(starts[-1] + PADDING, np.uint8)
        memory[starts[-1] :] = 0
        positions, whole = [], []
        for log, (start, end) in zip(logs, pairwise(starts), strict=True):
            if _fill(log, memory[start:end]):
                walked = walk(memory, start, end)
                if walked.stop == end:
                    positions.append(walked.positions)
                    whole.append((log, start))
                    continue
            log.close()
        if whole:
            self._keep_sound(memory, whole, positions)

    def _keep_sound(self, memory: Octets, logs: list[tuple[LogInMemory, int]], positions: list[Ints]) -> None:
        log_of_row = np.repeat(np.arange(len(logs)), [len(rows) for rows in positions])
        headers = gather(memory, np.concatenate(positions))
        is_legal = (headers.magic == 2) & (headers.size_in_bytes >= MIN_LENGTH + LOG_OVERHEAD)
        unsound = set(log_of_row[~is_legal].tolist())
        if unsound:
            headers, log_of_row = headers[is_legal], log_of_row[is_legal]
        unsound |= set(log_of_row[self._unsound_rows(memory, headers)].tolist())
        headers.position[:] -= np.array([start for _, start in logs])[log_of_row]
        edges = np.searchsorted(log_of_row, np.arange(len(logs) + 1)).tolist()
        for number, (log, _) in enumerate(logs):
            if number in unsound:
                log.close()
                continue
            path = Path(log.path)
            rows = headers[edges[number] : edges[number + 1]]
            self._logs[path] = log
            self._pieces[path] = ScannedPiece(0, log.size, rows, None, {}, [], is_examined=True)
        self._found_sound({path: piece.headers for path, piece in self._pieces.items()})

    def _unsound_rows(self, memory: Octets, headers: Headers) -> list[int]:
        """Batches that have anything wrong with them: the CRC, what the header says of itself, records."""
        options, rows = self._options, list[int]()
        if options.level >= Level.CRC:
            check_crc(memory, headers)
            rows += np.flatnonzero(~headers.crc_valid).tolist()
        for header_check in header_checks():
            for suspects in header_check(headers, options):
                rows += suspects.rows
        if options.level < Level.RECORDS:
            return rows
        block = SourceBlock.of(memory)
        for group in batch_groups(headers, block, limit=options.max_decompressed_bytes):
            rows += group.too_large
            for record_check in record_checks():
                for suspects in record_check(group, headers, options):
                    rows += suspects.rows
        return rows


def _opened(path: Path) -> LogInMemory | None:
    """A log of a size that may be read with others; None for another, and for what cannot be opened."""
    try:
        log = LogInMemory(path)
    except OSError:
        return None
    if 0 < log.size <= LARGEST:
        return log
    log.close()
    return None


def _fill(log: LogInMemory, room: Octets) -> bool:
    """Read a log whole; whether that succeeded."""
    try:
        is_whole = LocalFile.read_into(log, 0, room) == log.size
    except OSError:
        return False
    log.data = room
    return is_whole
