"""Remote segments that the metadata of an earlier moment name and those of the newest do not.

Kafka never deletes a record of `__remote_log_metadata`: where one is gone, a disk with the last copy of the metadata
partition was lost, or the topic was made again. The objects are still in the tier, and nobody reads them any more.
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
    """The finished copies of earlier moments whose ids are not known, each with the newest moment that names it."""
    moments_with_metadata = {
        replica.moment for replica in evidence.replicas if replica.topic == METADATA_TOPIC
    }
    newer_ids: set[str] = set()
    for moment in reversed([moment for moment in evidence.moments if moment in moments_with_metadata][:-1]):
        metadata = find_metadata(evidence, moment=moment)
        for segment in folded(metadata.chunks(), lambda finding: None).segments():
            segment_id = segment.metadata.remote_log_segment_id
            if segment.metadata.state is not SegmentState.COPY_SEGMENT_FINISHED or segment_id in newer_ids:
                continue
            newer_ids.add(segment_id)
            if segment_id not in known:
                yield moment, segment.metadata
