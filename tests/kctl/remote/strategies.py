"""Metadata records that a broker may have written."""

from __future__ import annotations

from hypothesis import strategies as st

from formats.messages.remote_log_metadata import (
    PartitionDelete,
    PartitionDeleteState,
    RecordLayout,
    RemoteLogMetadata,
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
)
from formats.messages.schema import uuid_text

# Few enough that records meet.
ids = st.integers(0, 5).map(
    lambda n: uuid_text((n * 0x9E3779B97F4A7C15F39CC0605CEDC834 % (1 << 128)).to_bytes(16))
)
partitions = st.builds(
    TopicIdPartition, ids, st.sampled_from(["orders", "a", "überlang" * 12, "x.y-z"]), st.integers(0, 3)
)
int64s = st.integers(-(1 << 63), (1 << 63) - 1)
int32s = st.integers(-(1 << 31), (1 << 31) - 1)
customs = st.none() | st.binary(max_size=140)


@st.composite
def metadata_records(draw: st.DrawFn) -> RemoteLogMetadata:
    """A record of any type and layout."""
    where, segment_id = draw(partitions), draw(ids)
    broker, time = draw(int32s), draw(int64s)
    layout = draw(st.sampled_from(RecordLayout))
    custom = draw(customs) if layout is RecordLayout.WITH_CUSTOM_METADATA else None
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return PartitionDelete(where, broker, time, draw(st.sampled_from(PartitionDeleteState)))
    state = draw(st.sampled_from(SegmentState))
    if kind < 3:
        start = draw(st.integers(0, 1 << 62))
        end = draw(st.integers(start, (1 << 63) - 1))
        epochs = draw(st.dictionaries(int32s, int64s, min_size=1, max_size=4))
        size = draw(int32s)
        return SegmentMetadata(
            where, segment_id, start, end, broker, draw(int64s), time, tuple(sorted(epochs.items())), size,
            custom, state, layout,
        )  # fmt: skip
    return SegmentMetadataUpdate(where, segment_id, broker, time, custom, state, layout)
