"""Headers that a scan of logs leaves for those that read the same logs after it, so that no byte is read twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from formats.arrays import Ints, Mask
from formats.log.columns.headers import Headers
from formats.values import Struct
from kctl.log.folder import LogSegment
from kctl.scan.packed import Column, narrowed, widened

A_RUN = 400  # bytes in memory of a run besides its columns


class HeaderColumns(Struct, frozen=True):
    """The columns of headers that are kept, one element a batch; see `formats.log.columns.headers.Headers`."""

    base_offset: Ints
    last_offset: Ints
    partition_leader_epoch: npt.NDArray[np.int32]
    magic: npt.NDArray[np.int8]
    crc: npt.NDArray[np.uint32]
    position: Ints
    size_in_bytes: Ints
    records_count: npt.NDArray[np.int32]
    max_timestamp: Ints
    crc_valid: Mask

    def __len__(self) -> int:
        return len(self.base_offset)

    def __getitem__(self, rows: Mask) -> HeaderColumns:
        return HeaderColumns(*(getattr(self, name)[rows] for name in NAMES))


NAMES = HeaderColumns.__struct_fields__


def columns_of(headers: Headers) -> HeaderColumns:
    """The columns of some headers; they share memory."""
    return HeaderColumns(*(getattr(headers, name) for name in NAMES))


class NotedRun(Struct, frozen=True):
    """Sound bytes of a segment from the end of the run before up to `end`, as another scan read them."""

    end: int
    count: int  # of batches
    packed: bytes  # their columns, narrowed, as MessagePack

    @property
    def columns(self) -> HeaderColumns:
        """The columns, unpacked."""
        columns = msgspec.msgpack.decode(self.packed, type=tuple[Column, ...])
        return HeaderColumns(*(widened(column, self.count) for column in columns))

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return A_RUN + len(self.packed)


def noted_run(end: int, headers: Headers) -> NotedRun:
    """A run of sound batches; without batches if the bytes hold none."""
    columns = [narrowed(getattr(headers, name)) for name in NAMES]
    return NotedRun(end, len(headers), msgspec.msgpack.encode(columns))


Noted = Mapping[str, Sequence[NotedRun]]
"""The logs of one partition folder, by file name."""
NOTHING_NOTED: Noted = {}


class ScanNotes:
    """The runs of logs by path; up to `most` bytes."""

    def __init__(self, most: int) -> None:
        self.most = most  # bytes
        self.runs: dict[Path, Sequence[NotedRun]] = {}
        self.size = 0

    def add(self, path: Path, runs: Sequence[NotedRun]) -> None:
        """Keep the runs of a segment if there is room."""
        size = sum(run.size for run in runs)
        if self.size + size <= self.most:
            self.runs[path] = list(runs)
            self.size += size

    def by_folder(self) -> Mapping[Path, Noted]:
        """The runs by partition folder."""
        folders: dict[Path, dict[str, Sequence[NotedRun]]] = defaultdict(dict)
        for path, runs in self.runs.items():
            folders[path.parent][path.name] = runs
        return folders


def noted_of(segment: LogSegment, noted: Noted) -> Sequence[NotedRun] | None:
    """The runs of a segment whose size is unchanged; None if it must be read."""
    assert segment.log is not None
    runs = noted.get(segment.log.path.name)
    return runs if runs and runs[-1].end == segment.log.size_in_bytes else None
