"""The batches of a log file as a broker's loader meets them: up to its end, a batch cut short, or corruption.

A broker goes from one batch to the next by the size in its header. Sizes below 14 are corruption (up to 0.10.1 they end the
log quietly), a batch that reaches behind the end of the file ends the log quietly; of the magic it asks only whether it is
below 2. What kctl calls damage
may therefore be a batch for the broker, and is taken as one here.

Source: clients/src/main/java/org/apache/kafka/common/record/FileLogInputStream.java,
{DefaultRecordBatch,LegacyRecord}.java (ensureValid) @ 0.11.0.0 to 3.9.0-rc3,
core/src/main/scala/kafka/log/FileMessageSet.scala @ 0.8.2.2 to 0.10.1.1
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from formats.binary.crc import crc32c
from formats.binary.layout import read
from formats.log.columns.headers import PADDING, Headers, gather
from formats.log.framing import FRAMING_SIZE, Framing
from formats.log.message_set import CRC_STARTS_AT as CRC_STARTS_AT_OF_MESSAGES
from formats.log.record_batch import CRC_STARTS_AT, HEADER_SIZE, LOG_OVERHEAD
from kctl.scan.runs import BatchRuns
from kctl.scan.source import Source

LEAST = 14  # LegacyRecord.RECORD_OVERHEAD_V0
MAGIC_AT = 16
MOST_STEPS = 64
"""Batches that are taken one by one before the quick walk is tried again."""
PIECE = 1 << 20


class LoadedBatches:
    """The batches of a file from a position on; iterate once.

    Behind the last one, `position` is where they end and `corrupt` Kafka's words about what is there, None where the
    file or a batch cut short ends there; `small_size` is a size below 14.
    """

    def __init__(
        self, source: Source, start: int, end: int, *, check_crc: bool, magic_2: bool = True
    ) -> None:
        self.position = start
        self.corrupt: str | None = None
        self.small_size: int | None = None
        self._source = source
        self._end = end
        self._check_crc = check_crc
        self._magic_2 = magic_2

    def __iter__(self) -> Iterator[Headers]:
        while self.position < self._end:
            yield from self._quick()
            for _ in range(MOST_STEPS):
                headers = self._step()
                if headers is None:
                    return
                yield headers

    def _quick(self) -> Iterator[Headers]:
        """Runs of batches that are sound beyond doubt."""
        for run in BatchRuns(self._source, self.position, self._end, crc=self._check_crc):
            headers = run.headers
            taken = headers.crc_valid & (self._magic_2 | (headers.magic < 2))
            if not taken.all():
                headers = headers[: int(taken.argmin())]
            if not len(headers) or headers.position[0] != self.position:
                return
            self.position = int(headers.next_position[-1])
            yield headers
            if len(headers) < len(run.headers) or run.damage is not None:
                return

    def _step(self) -> Headers | None:
        """The batch at the position by Kafka's own rules; None where there is none."""
        position, end = self.position, self._end
        if position >= end - FRAMING_SIZE:
            return None
        head = bytearray(self._source.read_at(position, HEADER_SIZE))
        framing = read(Framing, bytes(head))
        if framing.length < LEAST:
            self.small_size = framing.length
            self.corrupt = (
                f"Found record size {framing.length} smaller than minimum record overhead ({LEAST})"
            )
            return None
        if position > end - LOG_OVERHEAD - framing.length:
            return None
        is_old = framing.magic < 2 or not self._magic_2
        size = LOG_OVERHEAD + framing.length
        if self._check_crc and not self._is_valid(framing, size, is_old):
            return None
        head[MAGIC_AT] = min(1, max(0, framing.magic)) if is_old else 2  # what the broker takes it for
        head += bytes(HEADER_SIZE + PADDING - len(head))
        headers = gather(np.frombuffer(bytes(head), np.uint8), np.zeros(1, np.int64), position)
        self.position += size
        return headers

    def _is_valid(self, framing: Framing, size: int, is_old: bool) -> bool:
        if not is_old and size < HEADER_SIZE:
            self.corrupt = f"Record batch is corrupt (the size {size} is smaller than the minimum allowed overhead {HEADER_SIZE})"
            return False
        starts = CRC_STARTS_AT_OF_MESSAGES if is_old else CRC_STARTS_AT
        at = 12 if is_old else 17
        stored = int.from_bytes(self._source.read_at(self.position + at, 4), "big")
        computed = self._crc(self.position + starts, self.position + size, is_old)
        if stored != computed:
            self.corrupt = f"Record is corrupt (stored crc = {stored}, computed crc = {computed})"
            return False
        return True

    def _crc(self, start: int, end: int, is_old: bool) -> int:
        if not is_old:
            return crc32c(self._source.read_at(start, end - start))
        crc = 0
        for position in range(start, end, PIECE):
            crc = zlib.crc32(self._source.read_at(position, min(PIECE, end - position)), crc)
        return crc
