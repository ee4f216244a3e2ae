"""Brokers' copies of the indexes of remote segments: leftovers of the cache, and copies that differ from the tier.

Source: storage/.../internals/log/RemoteIndexCache.java @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from formats.log_dir.file_names import REMOTE_INDEX_CACHE
from formats.messages.remote_log_metadata import SegmentMetadata
from formats.tier.broker_files import parse_cached_index
from formats.tier.object_names import ObjectKind
from formats.values import Struct, replace
from kctl.evidence.model import FoundEvidence
from kctl.files import open_file
from kctl.findings import Finding, Place
from kctl.findings import remote as codes
from kctl.tier.audit.segment_tasks import NAMES, ExaminedSegment

KINDS = {
    ".index": ObjectKind.OFFSET_INDEX,
    ".timeindex": ObjectKind.TIME_INDEX,
    ".txnindex": ObjectKind.TRANSACTION_INDEX,
}
LARGEST = 64 << 20  # bytes of an index that are compared


class CachedIndexFile(Struct, frozen=True):
    """A file of a broker's index cache."""

    path: Path
    kind: ObjectKind
    place: Place


class IndexCache(Struct, frozen=True):
    """The files of all brokers' index caches by segment id, and findings about leftovers."""

    by_segment: dict[str, list[CachedIndexFile]]
    left_over: list[Finding]

    def against_tier(self, segment: SegmentMetadata, examined: ExaminedSegment) -> Iterator[Finding]:
        """Findings for copies that differ from the segment's index in the tier."""
        for cached in self.by_segment.get(segment.remote_log_segment_id, ()):
            key, stored = examined.indexes.get(cached.kind, (None, None))
            is_doubted = key is not None and any(finding.place.file == key for finding in examined.findings)
            if stored is None or is_doubted:  # what is wrong with the object itself is reported already
                continue
            try:
                with open_file(cached.path) as file:
                    data = file.read(LARGEST)
            except OSError:
                continue
            if data == stored[:LARGEST]:
                continue
            first = next(
                (
                    position
                    for position, pair in enumerate(zip(data, stored, strict=False))
                    if pair[0] != pair[1]
                ),
                None,
            )
            where = segment.topic_id_partition
            yield codes.CACHED_INDEX_DIFFERS.at(
                replace(
                    cached.place,
                    topic=where.topic,
                    partition=where.partition,
                    base_offset=segment.start_offset,
                    last_offset=segment.end_offset,
                ),
                what=NAMES[cached.kind],
                held=len(data),
                stored=len(stored),
                at=min(len(data), len(stored)) if first is None else first,
            )


def read_index_cache(evidence: FoundEvidence) -> IndexCache:
    """The index caches of all log directories that the evidence has whole."""
    by_segment: dict[str, list[CachedIndexFile]] = {}
    left_over: list[Finding] = []
    for log_dir in filter(lambda log_dir: log_dir.is_whole, evidence.log_dirs):
        folder = log_dir.path / REMOTE_INDEX_CACHE
        try:
            names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        except OSError:
            names = []
        for name in names:
            cached = parse_cached_index(name)
            place = replace(
                evidence.place_of(folder / name, log_dir.root),
                broker_id=log_dir.broker_id,
                moment=log_dir.moment,
                remote_log_segment_id=cached.remote_log_segment_id if cached else None,
            )
            if cached is None or cached.left_over:
                left_over.append(codes.CACHE_LEFTOVER.at(place))
            else:
                cached_file = CachedIndexFile(folder / name, KINDS[cached.suffix], place)
                by_segment.setdefault(cached.remote_log_segment_id, []).append(cached_file)
    return IndexCache(by_segment, left_over)
