"""What entries of every magic begin with.

Source: clients/src/main/java/org/apache/kafka/common/record/FileLogInputStream.java @ 3.9.0-rc3
"""

from typing import NamedTuple

from formats.binary.layout import int8, int32, int64, layout
from formats.log import message_set
from formats.log.record_batch import LOG_OVERHEAD


class Framing(NamedTuple):
    """The first 17 bytes of an entry of any magic."""

    offset: int64
    length: int32  # bytes after this field
    partition_leader_epoch: int32  # the CRC in magic 0 and 1
    magic: int8


FRAMING_SIZE = layout(Framing).size
SMALLEST_ENTRY = LOG_OVERHEAD + message_set.MIN_SIZES[0]
