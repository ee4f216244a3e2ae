"""Remote segments that the metadata of an earlier moment name and the newest metadata do not.

Kafka never deletes a record of `__remote_log_metadata`: if one is missing, the disk with the last copy of the metadata
partition was lost, or the topic was created again. The objects are still in the tier, but no broker reads them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from formats.messages.remote_log_metadata import SegmentMetadata, SegmentState
from kctl.evidence.model import FoundEvidence
from kctl.tier.metadata.fold import folded
from kctl.tier.metadata.log import METADATA_TOPIC, find_metadata


def forgotten_segments(
    evidence: FoundEvidence, known: Container[str]
) -> Iterator[tuple[str, SegmentMetadata]]:
    """Finished segments that only earlier moments name and `known` lacks, each with the newest moment that names it."""
    with_metadata = {replica.moment for replica in evidence.replicas if replica.topic == METADATA_TOPIC}
    newer_ids: set[str] = set()
    for moment in reversed([moment for moment in evidence.moments if moment in with_metadata][:-1]):
        metadata = find_metadata(evidence, moment=moment)
        for segment in folded(metadata.chunks(), lambda finding: None).segments():
            segment_id = segment.metadata.remote_log_segment_id
            if segment.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED or segment_id in newer_ids:
                continue
            newer_ids.add(segment_id)
            if segment_id not in known:
                yield moment, segment.metadata
