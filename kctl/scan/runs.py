"""A source as runs: headers of consecutive batches, and the damage between them.

What is sound is walked as arrays. Where the arrays meet something that is not (a wrong CRC, an illegal
magic or length, a batch larger than a block), `formats.log.records.walk` says what it is: the one definition of
what counts as a batch and what as damage.
"""

from collections.abc import Iterator

import numpy as np

from formats.arrays import Ints
from formats.log import records
from formats.log.columns.headers import PADDING, Headers, check_crc, concatenated, gather, legal_rows, walk
from formats.log.record_batch import HEADER_SIZE
from formats.log.records import LARGEST_IN_MEMORY, Damage, LogEntry
from formats.values import Struct
from kctl.scan.block import BLOCK_SIZE, SourceBlock
from kctl.scan.source import Source

CAREFUL = 64 << 10  # how far to walk after trouble; more after each good run


class BatchRun(Struct, frozen=True):
    """Bytes [position, end): batches in `headers`, then at most one range that is none."""

    position: int
    end: int
    headers: Headers
    damage: Damage | None
    in_block: bool  # the bytes of all its batches are in the block


NO_HEADERS = gather(np.zeros(PADDING, np.uint8), np.empty(0, np.int64))


class BatchRuns:
    """Walks a source from start to end; `block` holds the bytes of the run that was given last, `log` reads any."""

    def __init__(
        self,
        source: Source,
        start: int,
        end: int,
        *,
        crc: bool,
        last_offset: int = -1,
        hints: Ints | None = None,
    ) -> None:
        self.block = SourceBlock(source, BLOCK_SIZE)
        self.end = end
        self._start = start
        self._crc = crc
        self._last_offset = last_offset
        self._hints = hints if hints is not None else np.empty(0, np.int64)
        # Damage is examined up to the end of the file, even if only a part of the file is scanned.
        self.log = records.LogBytes(source)
        self._walker = records.Walker(self.log, last_offset, crc)
        self._reach = BLOCK_SIZE
        self._walked_out = -1  # where the block ends in the middle of a batch

    def __iter__(self) -> Iterator[BatchRun]:
        position = self._start
        while position < self.end:
            run = self._sound_run(position) or self._troubled_run(position)
            if run is None:
                return
            yield run
            position = run.end

    def _sound_run(self, position: int) -> BatchRun | None:
        """Batches from position on that are in one block; None where the first one is not plainly good."""
        block = self.block
        is_held = block.start <= position and position + HEADER_SIZE <= block.end
        if not is_held or (position == self._walked_out and block.start < position):
            block.load(position, self.end)
        headers = self._walked(position)
        if not len(headers):
            size = self._size_of_larger(position)
            self._reach = max(self._reach, size)
            # A batch may end behind the block; the bytes after an unsound batch decide whether its length is believed.
            has_more = block.end < self.end and position + max(self._reach, size) > block.end
            if has_more and (size or block.start < position):
                block.load(position, self.end, size)
            if has_more or size:
                headers = self._walked(position)
        if not len(headers):
            return None
        self._reach = min(4 * self._reach, max(BLOCK_SIZE, block.end - block.start))
        sound = headers.last_offset[headers.crc_valid]
        if len(sound):
            self._last_offset = int(sound[-1])
        return BatchRun(position, int(headers.next_position[-1]), headers, None, True)

    def _walked(self, position: int) -> Headers:
        block = self.block
        low = position - block.start
        high = min(block.end - block.start, low + self._reach)
        first, last = np.searchsorted(self._hints, (position + 1, block.start + high))
        walked = walk(block.data, low, high, self._hints[first:last] - block.start)
        headers = gather(block.data, walked.positions, block.start)
        legal = legal_rows(headers)
        headers = headers[:legal] if legal < len(headers) else headers
        if high == block.end - block.start and block.end < self.end:
            self._walked_out = block.start + walked.stop
        if not self._crc or not len(headers):
            return headers
        check_crc(block.data, headers, block.start)
        return headers if headers.crc_valid.all() else headers[: self._believed(headers)]

    def _believed(self, headers: Headers) -> int:
        """Rows up to the first one with a wrong CRC that is not plainly followed, by its length, by a sound one."""
        valid = headers.crc_valid
        edges = np.flatnonzero(np.diff(np.concatenate(([True], valid, [True])).astype(np.int8)))
        for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            before = int(headers.last_offset[first - 1]) if first else self._last_offset
            # After this many batches whose lengths were right, a length is believed whatever follows.
            if (headers.magic[first:after] == 2).all():
                first += (after - first) // records.LONG_CHAIN * records.LONG_CHAIN
            if first == after:
                continue
            if (
                after == len(valid)
                or headers.base_offset[after] <= before
                or (headers.magic[first:after] != 2).any()
            ):
                return int(first)
        return len(valid)

    def _size_of_larger(self, position: int) -> int:
        """The size of a legal batch at position that does not fit what was looked at, if memory may hold it."""
        block = self.block
        low = position - block.start
        if position + HEADER_SIZE > block.end:
            return 0
        headers = gather(block.data, np.array([low]), block.start)
        size = int(headers.size_in_bytes[0])
        reached = min(block.end, position + self._reach)
        fits = reached < position + size <= self.end
        return size if legal_rows(headers) and fits and size <= LARGEST_IN_MEMORY else 0

    def _troubled_run(self, position: int) -> BatchRun | None:
        """What `records.walk` says is at position, up to the next batch that is sound."""
        entries: list[Headers] = []
        damage = None
        end = position
        self._walker.last_offset = self._last_offset
        for item in self._walker.items_at(position):
            end = item.position + item.size_in_bytes
            if isinstance(item, Damage):
                damage, self._reach = item, CAREFUL
            else:
                entries.append(self._header_of(item))
        self._last_offset = self._walker.last_offset
        self.end = min(self.end, self.log.end)
        if end == position:
            return None
        headers = concatenated(entries) if entries else NO_HEADERS
        return BatchRun(position, end, headers, damage, False)

    @staticmethod
    def _header_of(entry: LogEntry) -> Headers:
        row = np.zeros(HEADER_SIZE + PADDING, np.uint8)
        head = entry.source.read(entry.position, min(HEADER_SIZE, entry.size_in_bytes))
        row[: len(head)] = np.frombuffer(head, np.uint8)
        headers = gather(row, np.zeros(1, np.int64), entry.position)
        headers.crc_valid[:] = entry.crc_valid
        return headers
