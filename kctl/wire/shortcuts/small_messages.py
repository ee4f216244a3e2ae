"""Read and write small messages field by field: the code that kafka-python generates for each costs a millisecond.

For a message that a command sends once or twice that is more than it saves. Long answers, and requests that may be
long, still use the generated code.
"""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from kafka.protocol.schemas.fields.struct import StructField

SMALL = 2048  # bytes of an answer
SHORT_REQUESTS = frozenset(
    {
        "api_versions_request",
        "describe_cluster_request",
        "describe_quorum_request",
        "list_partition_reassignments_request",
        "request_header",
    }
)
made_decoder: Any = StructField.compiled_decode_from
made_encoder: Any = StructField.compiled_encode_into


def decoder(
    self: Any, version: int, compact: bool = False, tagged: bool = False, data_class: Any = None
) -> Callable[[Any, int], tuple[Any, int]]:
    """A function that decodes a message from a position on; it returns the message and where it ends."""

    def decode(data: Any, position: int) -> tuple[Any, int]:
        if len(data) - position > SMALL:
            decoded: tuple[Any, int] = made_decoder(self, version, compact, tagged, data_class)(
                data, position
            )
            return decoded
        stream = BytesIO(data[position:])
        message = self.decode(stream, version=version, compact=compact, tagged=tagged, data_class=data_class)
        return message, position + stream.tell()

    return decode


def encoder(
    self: Any, version: int, compact: bool = False, tagged: bool = False
) -> Callable[[Any, Any], None]:
    """A function that encodes a message."""
    if self.name not in SHORT_REQUESTS:
        made: Callable[[Any, Any], None] = made_encoder(self, version, compact, tagged)
        return made

    def encode(message: Any, out: Any) -> None:
        self.encode_into(message, out, version=version, compact=compact, tagged=tagged)

    return encode


def take_small_messages() -> None:
    """Replace the library's generated code for small messages."""
    StructField.compiled_decode_from, StructField.compiled_encode_into = decoder, encoder
