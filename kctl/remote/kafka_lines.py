"""Chunks of metadata records as the lines of Kafka's RemoteLogMetadataFormatter."""

from collections.abc import Iterator

from formats.errors import FormatError
from formats.remote_log_metadata import read_remote_log_metadata
from formats.remote_log_metadata_text import format_kafka_line
from formats.remote_metadata_columns import read_metadata_columns
from formats.remote_metadata_lines import KafkaLines
from kctl.remote.metadata_log import Say, ValueChunk, bad_record

# Columns of so many rows stay in the processor's cache.
ROWS = 1 << 15


def lines_of_chunk(chunk: ValueChunk, say: Say) -> Iterator[bytes]:
    """The lines of a chunk, many at a time; a value that is no record is a finding and has no line."""
    printed = KafkaLines()
    for first in range(0, len(chunk.offsets), ROWS):
        rows = slice(first, first + ROWS)
        starts, sizes, offsets = chunk.starts[rows], chunk.sizes[rows], chunk.offsets[rows]
        read = read_metadata_columns(chunk.data, starts, sizes)

        def plain(row: int, first: int = first) -> str | None:
            offset, value = int(chunk.offsets[first + row]), chunk.value(first + row)
            try:
                if value is None:
                    raise FormatError("the value is null", 0)
                return format_kafka_line(chunk.metadata_partition, offset, read_remote_log_metadata(value))
            except FormatError as error:
                say(bad_record(chunk.metadata_partition, offset, error))
                return None

        yield printed.lines(read, chunk.metadata_partition, offsets, plain)
