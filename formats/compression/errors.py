"""What decompression raises; positions are bytes of the compressed data."""

from collections.abc import Iterable, Iterator

from formats.errors import FormatError


class CompressionError(FormatError):
    """Compressed data that Kafka's reader would refuse."""


class TooLarge(CompressionError):
    """More comes out than the limit allows; the data may be sound."""

    def __init__(self, limit: int, position: int = 0) -> None:
        super().__init__(f"decompresses to more than {limit} bytes", position)
        self.limit = limit
        self.args = (limit, position)  # what pickling gives back to __init__


def limited(parts: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """The parts as they come; raises TooLarge at the one that goes beyond the limit."""
    bytes_left = limit
    for part in parts:
        bytes_left -= len(part)
        if bytes_left < 0:
            raise TooLarge(limit)
        yield part
