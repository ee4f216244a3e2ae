"""The partition of each record of remote log metadata, found for many at once and never by a hash alone.

The topic's name, its id and the partition number are adjacent. Id, number and the name's length find the earlier row
of bytes; the name is then compared with it word by word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.arrays import Ints
from formats.messages.remote_log_metadata import TopicIdPartition
from formats.messages.schema import uuid_text
from formats.tier.ids import Ids
from formats.tier.metadata_columns import MetadataColumns, MetadataRead, windows
from formats.values import Struct, field

Words = NDArray[np.uint64]
Codes = NDArray[np.int32]

BEHIND_NAME = 20  # bytes: a topic id, and a partition number
WORD = 8
ODD = -1
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class PartitionCodes(Struct):
    """Numbers of partitions, in the order in which they were first read."""

    partitions: list[TopicIdPartition] = field(default_factory=list)
    _codes: dict[TopicIdPartition, int] = field(default_factory=dict)
    _ids: Ids = field(default_factory=Ids)
    # Known partitions: their bytes, codes, and the columns that records are compared with.
    _keys: list[bytes] = field(default_factory=list)
    _code_of: Codes = field(default_factory=lambda: np.full(1, ODD, np.int32))
    _high: Words = field(default_factory=lambda: np.zeros(1, np.uint64))
    _low: Words = field(default_factory=lambda: np.zeros(1, np.uint64))
    _id_high: Words = field(default_factory=lambda: np.zeros(1, np.uint64))
    # By number of words: these words of all known names.
    _names: dict[int, NDArray[Any]] = field(default_factory=dict)

    def code(self, partition: TopicIdPartition) -> int:
        if partition not in self._codes:
            self._codes[partition] = len(self.partitions)
            self.partitions.append(partition)
        return self._codes[partition]

    def coded(self, read: MetadataRead) -> tuple[list[tuple[MetadataColumns, Codes]], Ints]:
        """The records of each type with their codes, and the rows that must be read singly, ascending."""
        parts, odd_rows = [], [read.slow]
        for columns in (read.copies, read.updates):
            codes = self.of(columns)
            odd = codes < 0
            if odd.any():
                odd_rows.append(columns.rows[odd])
                columns, codes = columns[~odd], codes[~odd]
            parts.append((columns, codes))
        return parts, np.sort(np.concatenate(odd_rows))

    def of(self, columns: MetadataColumns) -> Codes:
        """The code of each record's partition; -1 for records that must be read singly."""
        id_high, low = columns.column("topic_id_high"), columns.column("topic_id_low")
        # This sum and the id's first half determine the number and the name's length.
        high = (columns.name_length << 32).view(np.uint64)
        high += columns.column("partition").view(np.uint32)
        high *= _SPREAD
        high += id_high
        rows, _ = self._ids.find(high, low, self._high, self._low)
        new = np.flatnonzero(rows < 0)
        if len(new):
            self._learn(columns, new, high, low, id_high)
            rows, _ = self._ids.find(high, low, self._high, self._low)
        codes = self._code_of.take(rows)
        same = self._id_high.take(rows) == id_high
        sizes = (columns.name_length + (WORD - 1)) // WORD
        # An empty name is known by its length.
        for words in (np.flatnonzero(np.bincount(sizes)[1:]) + 1).tolist():
            which = np.flatnonzero(sizes == words)
            # After the name, up to the end of the last word, are bytes that were compared already.
            names = windows(columns.data, columns.name_position[which], np.dtype(f"V{WORD * words}"))
            known = self._words(words).take(rows[which])
            differs = names.view(np.uint64) != known.view(np.uint64)
            if differs.any():
                same[which[differs.reshape(-1, words).any(axis=1)]] = False
        return codes if same.all() else np.where(same, codes, np.int32(ODD))

    def _words(self, words: int) -> NDArray[Any]:
        """So many words of each known key, padded with zeros."""
        names = self._names.get(words)
        if names is None or len(names) < len(self._keys):
            size = WORD * words
            texts = [key[:size].ljust(size, b"\0") for key in self._keys]
            names = self._names[words] = np.frombuffer(b"".join(texts), f"V{size}")
        return names

    def _learn(self, columns: MetadataColumns, new: Ints, high: Words, low: Words, id_high: Words) -> None:
        """Add the partitions of new rows; a name that is no text gets no code."""
        pairs = np.stack((high[new], low[new]))
        new = new[np.unique(pairs, axis=1, return_index=True)[1]]
        first = len(self._keys)
        for start, size in zip(
            columns.name_position[new].tolist(), columns.name_length[new].tolist(), strict=True
        ):
            self._keys.append(columns.data[start : start + size + BEHIND_NAME].tobytes())
        new_keys = self._keys[first:]
        self._code_of = np.concatenate(
            (self._code_of[:first], np.array([self._code_at(key) for key in new_keys], np.int32))
        )
        self._high = np.concatenate((self._high[:first], high[new]))
        self._low = np.concatenate((self._low[:first], low[new]))
        self._id_high = np.concatenate((self._id_high[:first], id_high[new]))
        if self._ids.room() < len(new):
            self._ids.clear(2 * len(self._keys))
            first = 0
        self._ids.add(
            self._ids.first(self._high[first:], self._low[first:]), np.arange(first, len(self._keys))
        )

    def _code_at(self, key: bytes) -> int:
        name, topic_id = key[:-BEHIND_NAME], uuid_text(key[-BEHIND_NAME:-4])
        number = int.from_bytes(key[-4:], "big", signed=True)
        try:
            return self.code(TopicIdPartition(topic_id, name.decode(), number))
        except UnicodeDecodeError:
            return ODD
