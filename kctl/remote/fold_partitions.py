"""Which partition each row of metadata is about, told for many rows at once and never by a hash alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from formats.message_schema import uuid_text
from formats.remote_log_metadata import TopicIdPartition
from formats.remote_metadata_columns import MetadataColumns, windows
from kctl.remote.fold_rows import Column

_WORD = np.dtype(">u8")


@dataclass
class PartitionCodes:
    """Numbers of partitions, in the order in which they were met."""

    partitions: list[TopicIdPartition] = field(default_factory=list)
    _codes: dict[TopicIdPartition, int] = field(default_factory=dict)
    # By hash, ascending: the code, and what rows of that hash are compared with.
    _keys: Column = field(default_factory=lambda: np.empty(0, np.uint64))
    _code_of: Column = field(default_factory=lambda: np.empty(0, np.int32))
    _heads: Column = field(default_factory=lambda: np.empty((0, 4), np.int64))
    _names: Column = field(default_factory=lambda: np.empty((0, 0), np.uint64))

    def code(self, partition: TopicIdPartition) -> int:
        """The number of a partition."""
        if partition not in self._codes:
            self._codes[partition] = len(self.partitions)
            self.partitions.append(partition)
        return self._codes[partition]

    def of(self, data: NDArray[np.uint8], columns: MetadataColumns, which: Column) -> tuple[Column, Column]:
        """Codes of the partitions of rows `which`, and a mask of the rows that have to be looked at singly."""
        head = _head(columns, which)
        keys = head[:, 0].view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= head[:, 1].view(np.uint64) + (head[:, 2].view(np.uint64) << np.uint64(1))
        at = self._places(keys)
        missing = self._keys[at] != keys if len(self._keys) else np.ones(len(keys), np.bool_)
        if missing.any():
            self._learn(data, columns, which[missing], keys[missing], head[missing])
            at = self._places(keys)
        codes = self._code_of[at]
        odd = (self._heads[at] != head).any(axis=1) | (codes < 0)
        lengths = np.where(odd, 0, head[:, 3])
        odd |= self._other_names(data, columns.name_position[which], lengths, at)
        return codes, odd

    def _places(self, keys: Column) -> Column:
        """Where each key stands among those known, or would."""
        return np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))

    def _learn(
        self, data: NDArray[np.uint8], columns: MetadataColumns, which: Column, keys: Column, head: Column
    ) -> None:
        """Take up the partitions of rows whose hash is new; of a name that is no text the code is -1."""
        new, first = np.unique(keys, return_index=True)
        codes, names = [], []
        for row in which[first].tolist():
            at, size = int(columns.name_position[row]), int(columns.name_length[row])
            raw = data[at : at + size].tobytes()
            topic_id = uuid_text(data[at + size : at + size + 16].tobytes())
            names.append(np.frombuffer(raw.ljust(-(-size // 8) * 8, b"\0"), _WORD).astype(np.uint64))
            try:
                codes.append(self.code(TopicIdPartition(topic_id, raw.decode(), int(columns.partition[row]))))
            except UnicodeDecodeError:
                codes.append(-1)
        width = max([self._names.shape[1], *(len(words) for words in names)])
        table = np.zeros((len(self._keys) + len(new), width), np.uint64)
        table[: len(self._keys), : self._names.shape[1]] = self._names
        for number, words in enumerate(names, len(self._keys)):
            table[number, : len(words)] = words
        all_keys = np.concatenate((self._keys, new))
        order = np.argsort(all_keys)
        self._keys, self._names = all_keys[order], table[order]
        self._code_of = np.concatenate((self._code_of, np.array(codes, np.int32)))[order]
        self._heads = np.concatenate((self._heads, head[first]))[order]

    def _other_names(self, data: NDArray[np.uint8], positions: Column, lengths: Column, at: Column) -> Column:
        """Rows whose name, of a length that fits, is not the one that their hash stands for."""
        other = np.zeros(len(at), np.bool_)
        for number in range(-(-int(lengths.max(initial=0)) // 8)):
            # Words that begin behind a name's end are not looked at: it may be that of the buffer.
            left = np.clip(lengths - 8 * number, 0, 8)
            found = windows(data, positions + np.where(left > 0, 8 * number, 0), _WORD).astype(np.uint64)
            # Bytes behind the name's end are shifted out; a shift by all 64 bits is not defined, so in two steps.
            shift = (np.uint64(8) - left.astype(np.uint64)) * np.uint64(4)
            other |= ((found ^ self._names[at, number]) >> shift >> shift) != 0
        return other


def _head(columns: MetadataColumns, which: Column) -> Column:
    """Topic id, partition and length of the name of rows."""
    head = np.empty((len(which), 4), np.int64)
    head[:, 0] = columns.topic_id_high.view(np.int64)[which]
    head[:, 1] = columns.topic_id_low.view(np.int64)[which]
    head[:, 2] = columns.partition[which]
    head[:, 3] = columns.name_length[which]
    return head
