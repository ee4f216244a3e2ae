"""Groups of decompressed bodies: no record is left out, and none holds much more than it should."""

import numpy as np
import pytest

from benchmarks.in_memory import InMemory
from formats.compression import Codec
from formats.log.columns.headers import PADDING, gather, walk
from formats.log.record_batch import Record, write_batch
from kctl.scan.block import SourceBlock
from kctl.scan.record_groups import GROUP_BYTES, ROOM, batch_groups


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("size", [60_000, 700_000])
def test_what_grows_a_thousandfold_comes_in_small_groups(codec: Codec, size: int) -> None:
    batch = write_batch([Record(0, 0, None, b"a" * size, ())] * 2, codec=codec)
    count = 3 * GROUP_BYTES // size
    data = np.frombuffer(batch * count + bytes(PADDING), np.uint8)
    block = SourceBlock(InMemory(data), len(data))
    block.load(0, len(data) - PADDING)
    headers = gather(data, walk(data, 0, len(data) - PADDING).positions)
    groups = []
    for group in batch_groups(headers, block):
        assert len(group.data) <= GROUP_BYTES + 5 * ROOM
        assert (group.fields.value_size == size).all()
        groups.append((group.first, group.after, len(group.fields.position)))
    assert sum(records for _, _, records in groups) == 2 * count
    assert [first for first, _, _ in groups] == [0, *(after for _, after, _ in groups[:-1])]
    assert groups[-1][1] == count
