"""Sources of metadata records: the paths of a command line, a stream, or a growing folder.

A stream is the output of Kafka's console consumer, or the bytes of a segment. With RemoteLogMetadataFormatter the
consumer writes lines, else the values themselves, each with a line end; values may contain line ends, but their
length is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from formats.errors import FormatError
from formats.kafka_text.remote_log_metadata import parse_kafka_line
from formats.log.record_batch import MAGIC_AT
from formats.log.records import Damage, walk
from formats.messages.reading import read_message
from formats.messages.remote_log_metadata import (
    MESSAGES,
    ApiKey,
    RecordLayout,
    read_remote_log_metadata,
    write_remote_log_metadata,
)
from formats.values import Struct, field
from kctl.errors import KctlError
from kctl.evidence.model import Arriving
from kctl.findings import Place
from kctl.findings import remote as codes
from kctl.scan.source import opened_source
from kctl.tier.metadata.log import (
    METADATA_TOPIC,
    MetadataLog,
    MetadataReplica,
    Say,
    ValueChunk,
    chunk_of,
    find_metadata,
    live_segments,
    values_in,
)

LINE = b"partition: "
POLL_SECONDS = 0.5


class OpenedMetadata(Struct):
    """A metadata log, and the paths that could not be opened."""

    log: MetadataLog
    failures: list[KctlError] = field(default_factory=list)
    stream: list[ValueChunk] = field(default_factory=list)

    @property
    def chunks(self) -> Iterator[ValueChunk]:
        """All values, those of standard input first."""
        yield from self.stream
        yield from self.log.chunks()


def open_sources(
    paths: Sequence[str],
    say: Say,
    standard_input: Callable[[], bytes] = bytes,
    arriving: Mapping[Path, Arriving] | None = None,
) -> OpenedMetadata:
    """The metadata log below the paths, of which `-` stands for standard input.

    `arriving` gives the segments of folders of a running cluster.
    """
    from kctl.evidence.discover import discover

    opened = OpenedMetadata(MetadataLog(say=say))
    folders = [path for path in paths if path != "-"]
    if folders:
        evidence = discover(folders).with_arriving(arriving or {})
        opened = OpenedMetadata(find_metadata(evidence, say), list(evidence.failures))
        if not opened.log.replicas and not opened.failures:
            what = f"no segment of {METADATA_TOPIC} below {', '.join(map(str, folders))}"
            opened.failures.append(KctlError(what, "name a log directory, a partition folder or a segment"))
    if "-" in paths:
        opened.stream = list(chunks_of_stream(standard_input(), say))
    return opened


# --- a stream -------------------------------------------------------------------------------------------


def chunks_of_stream(data: bytes, say_: Say) -> Iterator[ValueChunk]:
    """The records in the bytes of a stream."""
    if data.lstrip()[: len(LINE)] == LINE:
        yield from _lines(data, say_)
    elif len(data) > MAGIC_AT and data[MAGIC_AT] == 2 and data[0] == 0:
        yield from _segment(data, say_)
    else:
        yield from _values(data, say_)


def _lines(data: bytes, say_: Say) -> Iterator[ValueChunk]:
    """The records of formatter lines; a line that is no event is a finding."""
    rows_by_partition: dict[int | None, list[tuple[int, bytes | None]]] = {}
    for number, line in enumerate(data.decode("utf-8", "surrogateescape").splitlines(), 1):
        if not line.strip():
            continue
        try:
            partition, offset, record = parse_kafka_line(line)
        except FormatError as error:
            say_(codes.METADATA_RECORD_BAD.at(Place(position=number), reason=f"line {number}: {error.what}"))
            continue
        value = write_remote_log_metadata(record)
        rows_by_partition.setdefault(partition, []).append((-1 if offset is None else offset, value))
    for partition, rows in rows_by_partition.items():
        yield chunk_of(partition, rows)


def _segment(data: bytes, say_: Say) -> Iterator[ValueChunk]:
    rows: list[tuple[int, bytes | None]] = []
    for item in walk(data):
        place = Place(position=item.position, size_in_bytes=item.size_in_bytes)
        if isinstance(item, Damage) or not item.crc_valid:
            reason = str(item.reason) if isinstance(item, Damage) else "its CRC is wrong"
            say_(codes.METADATA_DAMAGED.at(place, reason=reason))
        else:
            try:
                rows += values_in(item)
            except FormatError as error:
                say_(codes.METADATA_DAMAGED.at(place, reason=str(error)))
    yield chunk_of(None, rows)


def _values(data: bytes, say_: Say) -> Iterator[ValueChunk]:
    """The records of values that each end with a line end."""
    rows: list[tuple[int, bytes | None]] = []
    position = 0
    while position < len(data):
        end = _end_of_value(data, position)
        if end is None:
            after = data.find(b"\n", position)
            end = len(data) if after < 0 else after
            place = Place(position=position, size_in_bytes=end - position)
            if end > position:
                say_(codes.METADATA_RECORD_BAD.at(place, reason="no record starts here"))
        else:
            rows.append((-1, data[position:end]))
        position = end + 1
    yield chunk_of(None, rows)


def _end_of_value(data: bytes, position: int) -> int | None:
    """Where the value at a position ends, followed by a line end or the end of the stream; None if none begins there."""
    if data[position : position + 1] != b"\x01" or data[position + 2 : position + 3] != b"\0":
        return None
    key = data[position + 1]
    for layout in RecordLayout:
        try:
            _, end = read_message(MESSAGES[layout][ApiKey(key)], 0, data, position + 3)
            read_remote_log_metadata(data[position:end])
        except (FormatError, ValueError):
            continue
        if end == len(data) or data[end : end + 1] == b"\n":
            return end
    return None


# --- a folder that grows --------------------------------------------------------------------------------


def followed(log: MetadataLog, until_idle: float | None = None) -> Iterator[ValueChunk]:
    """All values, then new ones as they arrive, for ever or until none came for `until_idle` seconds.

    Of several replicas of a metadata partition only the first is followed.
    """
    tails = [
        _Tail(number, replicas[0])
        for number, replicas in sorted(log.replicas.items(), key=lambda item: item[0] or 0)
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
    """How far a replica was read."""

    def __init__(self, number: int | None, replica: MetadataReplica) -> None:
        self.number = number
        self.folder: Path | None = replica.files[0].parent if replica.files else None
        self.positions: dict[Path, int] = {}

    def new(self) -> Iterator[ValueChunk]:
        """What was appended since the last call."""
        try:
            files = live_segments(self.folder) if self.folder else ()
        except OSError:
            return
        for path in files:
            rows: list[tuple[int, bytes | None]] = []
            position = self.positions.get(path, 0)
            # It may have been rolled or deleted by retention.
            with suppress(OSError), opened_source(path) as source:
                for item in walk(source, position=min(position, source.size)):
                    if isinstance(item, Damage) or not item.crc_valid:
                        break  # not all of it is written yet
                    position = item.next_position
                    with suppress(FormatError):
                        rows += values_in(item)
            self.positions[path] = position
            if rows:
                yield chunk_of(self.number, rows)
