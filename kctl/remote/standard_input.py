"""Metadata records from a stream: what Kafka's console consumer writes, or the bytes of a segment.

The consumer writes lines where RemoteLogMetadataFormatter is used, else the values themselves with a line end
behind each; these may hold line ends too, but a value says where it ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from formats.errors import FormatError
from formats.message_schema import read_message
from formats.record_batch import MAGIC_AT
from formats.records import Damage, iterate_records, walk
from formats.remote_log_metadata import (
    MESSAGES,
    ApiKey,
    Layout,
    read_remote_log_metadata,
    write_remote_log_metadata,
)
from formats.remote_log_metadata_text import parse_kafka_line
from kctl.findings import Place
from kctl.findings import remote as say
from kctl.remote.metadata_log import Say, ValueChunk, chunk_of

LINE = b"partition: "


def chunks_of_stream(data: bytes, say_: Say) -> Iterator[ValueChunk]:
    """The records in the bytes of a stream."""
    if data.lstrip()[: len(LINE)] == LINE:
        yield from _lines(data, say_)
    elif len(data) > MAGIC_AT and data[MAGIC_AT] == 2 and data[0] == 0:
        yield from _segment(data, say_)
    else:
        yield from _values(data, say_)


def _lines(data: bytes, say_: Say) -> Iterator[ValueChunk]:
    """Formatter's lines; what is no event is a finding and the rest goes on."""
    held: dict[int | None, list[tuple[int, bytes | None]]] = {}
    for number, line in enumerate(data.decode("utf-8", "surrogateescape").splitlines(), 1):
        if not line.strip():
            continue
        try:
            partition, offset, record = parse_kafka_line(line)
        except FormatError as error:
            say_(say.METADATA_RECORD_BAD.at(Place(position=number), reason=f"line {number}: {error.what}"))
            continue
        value = write_remote_log_metadata(record)
        held.setdefault(partition, []).append((-1 if offset is None else offset, value))
    for partition, rows in held.items():
        yield chunk_of(partition, rows)


def _segment(data: bytes, say_: Say) -> Iterator[ValueChunk]:
    rows: list[tuple[int, bytes | None]] = []
    for item in walk(data):
        place = Place(position=item.position, size_in_bytes=item.size_in_bytes)
        if isinstance(item, Damage) or not item.crc_valid:
            reason = str(item.reason) if isinstance(item, Damage) else "its CRC is wrong"
            say_(say.METADATA_DAMAGED.at(place, reason=reason))
        elif item.batch is None or not item.batch.is_control:
            try:
                rows += [(record.offset, record.value) for record in iterate_records(item)]
            except FormatError as error:
                say_(say.METADATA_DAMAGED.at(place, reason=str(error)))
    yield chunk_of(None, rows)


def _values(data: bytes, say_: Say) -> Iterator[ValueChunk]:
    """Values with a line end behind each."""
    rows: list[tuple[int, bytes | None]] = []
    position = 0
    while position < len(data):
        end = _end_of_value(data, position)
        if end is None:
            after = data.find(b"\n", position)
            end = len(data) if after < 0 else after
            place = Place(position=position, size_in_bytes=end - position)
            if end > position:
                say_(say.METADATA_RECORD_BAD.at(place, reason="no record starts here"))
        else:
            rows.append((-1, data[position:end]))
        position = end + 1
    yield chunk_of(None, rows)


def _end_of_value(data: bytes, position: int) -> int | None:
    """Where the value at position ends; a line end or the end of the stream follows."""
    if data[position : position + 1] != b"\x01" or data[position + 2 : position + 3] != b"\0":
        return None
    key = data[position + 1]
    for layout in Layout:
        try:
            _, end = read_message(MESSAGES[layout][ApiKey(key)], 0, data, position + 3)
            read_remote_log_metadata(data[position:end])
        except (FormatError, ValueError):
            continue
        if end == len(data) or data[end : end + 1] == b"\n":
            return end
    return None
