"""Which runs of a scan have nothing out of the ordinary, so that columns can stand for their rows."""

import numpy as np

from kctl.dump.wanted import Wanted
from kctl.scan.options import Chunk
from kctl.scan.records import Records

EVERYTHING = Wanted()


def has_plain_batches(chunk: Chunk) -> bool:
    """Whether all of it is sound batches of magic 2."""
    headers = chunk.headers
    return not chunk.damage and bool((headers.magic == 2).all() and headers.crc_valid.all())


def is_plain(chunk: Chunk, records: Records, wanted: Wanted = EVERYTHING) -> bool:
    """Whether all records of all batches are there, and all of them are wanted."""
    headers = chunk.headers
    if not len(records) or not has_plain_batches(chunk):
        return False
    if int(headers.records_count.sum(dtype=np.int64)) != len(records) or wanted.key is not None:
        return False
    if not wanted.is_filtered:
        return True
    return all(
        wanted.offset_is_in(int(offset)) and wanted.time_is_in(int(timestamp))
        for offset, timestamp in (
            (records.offset.min(), records.timestamp.min()),
            (records.offset.max(), records.timestamp.max()),
        )
    ) and bool((headers.records_count > 0).all())
