"""Batches out of an answer to Fetch, as views of what was received; the usual decoding would copy them.

Source: clients/src/main/resources/common/message/FetchResponse.json @ 4.3.0 (versions 12 to 18)
"""

from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from formats.binary.varint import after_tags, read_unsigned
from kctl.wire.answers.texts import text
from kctl.wire.protocol.messages import FetchRequest

QUICK_VERSIONS = range(12, 19)
TOP = Struct(">ihi")  # time that was throttled, error, session
PARTITION = Struct(">ihqqq")  # number, error, high watermark, last stable offset, log start offset
ABORTED = 16  # bytes of a transaction that was aborted


class PartitionBytes(NamedTuple):
    """A partition's part of the answer, with the names of the usual decoding."""

    partition_index: int
    error_code: int
    high_watermark: int
    log_start_offset: int
    records: memoryview | None


class TopicBytes(NamedTuple):
    """A topic's part: by name or by id."""

    topic: str | None
    topic_id: UUID | None
    partitions: list[PartitionBytes]


class BytesAnswer(NamedTuple):
    """A whole answer."""

    error_code: int
    responses: list[TopicBytes]
    throttle_time_ms: int


def decoded(data: memoryview, version: int) -> BytesAnswer:
    """The answer of one of `QUICK_VERSIONS`. Raises ValueError for anything else."""
    try:
        return _answer(data, version)
    except (IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"no answer of version {version}: {error}") from None


def _answer(view: memoryview, version: int) -> BytesAnswer:
    throttled, error_code, _ = _unpacked(TOP, view, 0)
    count, at = read_unsigned(view, TOP.size)
    topics = []
    for _ in range(count - 1):
        name, id = None, None
        if version >= 13:
            if at + 16 > len(view):
                raise ValueError("the answer is cut off")
            id, at = UUID(bytes=bytes(view[at : at + 16])), at + 16
        else:
            name, at = text(view, at)
        partitions, at = _partitions(view, at)
        topics.append(TopicBytes(name, id, partitions))
    if after_tags(view, at) > len(view):
        raise ValueError("the answer is cut off")
    return BytesAnswer(error_code, topics, throttled)


def _partitions(view: memoryview, at: int) -> tuple[list[PartitionBytes], int]:
    """The partitions of a topic, and where the next one begins."""
    count, at = read_unsigned(view, at)
    partitions = []
    for _ in range(count - 1):
        index, error_code, high_watermark, _, log_start_offset = _unpacked(PARTITION, view, at)
        aborted, at = read_unsigned(view, at + PARTITION.size)
        for _ in range(aborted - 1):
            at = after_tags(view, at + ABORTED)
        size, at = read_unsigned(view, at + 4)  # after the preferred read replica
        end = at + max(size - 1, 0)
        if end > len(view):
            raise ValueError("batches run past the end")
        records = view[at:end] if size else None
        partitions.append(PartitionBytes(index, error_code, high_watermark, log_start_offset, records))
        at = after_tags(view, end)
    return partitions, after_tags(view, at)


def _unpacked(form: Struct, view: memoryview, at: int) -> tuple[int, ...]:
    if at + form.size > len(view):
        raise ValueError("the answer is cut off")
    return form.unpack_from(view, at)


class BytesRequest(FetchRequest):  # type: ignore[misc]
    """Bytes of replicas, as views of the receive buffer for known versions."""

    @classmethod
    def answered(cls, data: memoryview, version: int) -> Any:
        """The decoded answer. Raises ValueError if it does not have the form of the version."""
        return decoded(data, version) if version in QUICK_VERSIONS else super().answered(data, version)
