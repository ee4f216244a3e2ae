"""Metadata records as they are appended: a folder that grows, read from where it was left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from formats.errors import FormatError
from formats.log_dir_files import parse_segment_file
from formats.records import Damage, iterate_records, walk
from kctl.remote.metadata_log import MetadataLog, MetadataReplica, ValueChunk, chunk_of

POLL_SECONDS = 0.5


def followed(log: MetadataLog, until_idle: float | None = None) -> Iterator[ValueChunk]:
    """What is there, then what comes, for ever or until nothing came for `until_idle` seconds.

    Of several replicas of a metadata partition the first is followed.
    """
    tails = [
        _Tail(number, replicas[0])
        for number, replicas in sorted(log.replicas.items(), key=lambda i: i[0] or 0)
    ]
    quiet_since = time.monotonic()
    while True:
        came = False
        for tail in tails:
            for chunk in tail.new():
                came = True
                yield chunk
        if came:
            quiet_since = time.monotonic()
        elif until_idle is not None and time.monotonic() - quiet_since >= until_idle:
            return
        else:
            time.sleep(POLL_SECONDS)


class _Tail:
    """How far one replica was read."""

    def __init__(self, number: int | None, replica: MetadataReplica) -> None:
        self.number = number
        self.folder: Path | None = replica.files[0].parent if replica.files else None
        self.positions: dict[Path, int] = {}

    def new(self) -> Iterator[ValueChunk]:
        """What was appended since the last look."""
        for path in self._segments():
            rows: list[tuple[int, bytes | None]] = []
            try:
                data = path.read_bytes()
            except OSError:
                continue  # rolled away or deleted by retention
            position = self.positions.get(path, 0)
            for item in walk(data, position=min(position, len(data))):
                if isinstance(item, Damage) or not item.crc_valid:
                    break  # not all of it is written yet
                position = item.next_position
                if item.batch is None or not item.batch.is_control:
                    try:
                        rows += [(record.offset, record.value) for record in iterate_records(item)]
                    except FormatError:
                        continue
            self.positions[path] = position
            if rows:
                yield chunk_of(self.number, rows)

    def _segments(self) -> list[Path]:
        if self.folder is None:
            return []
        try:
            names = [(parse_segment_file(path.name), path) for path in self.folder.iterdir()]
        except OSError:
            return []
        return [
            path
            for _, path in sorted(
                (o.base_offset, p) for o, p in names if o and o.suffix == ".log" and not o.state
            )
        ]
