"""Names in `remote-log-index-cache`, a broker's local copies of the indexes of remote segments.

A name is `<start offset, not padded>_<segment id><suffix>`; a segment id may hold `_` itself. A copy under way
ends with `.tmp`, one being removed with `.deleted`; both stay for ever after a crash.

Source: storage/.../internals/log/RemoteIndexCache.java @ 3.9.0-rc3
"""

import re
from typing import NamedTuple

FOLDER = "remote-log-index-cache"
SUFFIXES = (".index", ".timeindex", ".txnindex")
_NAME = re.compile(r"(\d{1,20})_([A-Za-z0-9_-]{22})(\.index|\.timeindex|\.txnindex)((?:\.tmp|\.deleted)?)")


class CachedIndex(NamedTuple):
    """A file of the index cache."""

    start_offset: int
    remote_log_segment_id: str
    suffix: str
    left_over: str = ""  # ".tmp" or ".deleted"


def parse_cached_index(name: str) -> CachedIndex | None:
    """What a file of the cache is; None for any other name."""
    match = _NAME.fullmatch(name)
    return CachedIndex(int(match[1]), match[2], match[3], match[4]) if match else None


def format_cached_index(index: CachedIndex) -> str:
    """The name of a file of the cache."""
    return f"{index.start_offset}_{index.remote_log_segment_id}{index.suffix}{index.left_over}"
