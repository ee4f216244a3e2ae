"""What others than replicas remember of committed offsets: consumer groups and the metadata of a tier.

A consumer commits where it goes on, with the leader epoch of the last record it read (2.1 and later), and reads
nothing above the high watermark; but a client can commit any number. A segment is copied to a tier only below
the last stable offset, and its metadata survives every truncation.

Source: core/src/main/scala/kafka/coordinator/group/GroupMetadataManager.scala @ 2.1.0;
core/src/main/java/kafka/log/remote/RemoteLogManager.java @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formats.errors import FormatError
from formats.remote_log_metadata import (
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    read_remote_log_metadata,
)
from kctl.evidence.model import Evidence, Replica
from kctl.findings import Finding, Place
from kctl.findings.internal_topics import READ_IN_PART
from kctl.internal_topics.groups import Groups, commit_of, read_group_records
from kctl.internal_topics.reading import copies_to_read, newest_segments, topic_records
from kctl.model import TopicPartition
from kctl.replica.commitment import ExternalOffset
from kctl.replica.moments import Znodes
from kctl.replica.scanned import size_of

GROUPS, REMOTE = "__consumer_offsets", "__remote_log_metadata"
# Of these topics records are read one by one; more of one than this would take longer than all else.
MOST_BYTES = 256 << 20
Found = dict[TopicPartition, dict[tuple[str, int | None, str | None], ExternalOffset]]


def external_offsets(
    evidence: Evidence, znodes: Mapping[str | None, Znodes], left_out: list[Finding]
) -> dict[TopicPartition, list[ExternalOffset]]:
    """The highest offset of each kind and epoch for each partition that these topics name.

    Of a topic with many bytes the newest segments are read, and `left_out` is told.
    """
    found: Found = {}
    for replica, most in _readable(evidence, GROUPS, left_out):
        for partition, one in _commits(evidence, replica, znodes, most):
            _keep(found, partition, one)
    names = _topic_names(evidence, znodes)
    finished: dict[str, SegmentMetadata] = {}
    for replica, most in _readable(evidence, REMOTE, left_out):
        for segment in _finished(replica, finished, most):
            topic = names.get(segment.topic_id_partition.topic_id)
            if topic is not None and segment.segment_leader_epochs:
                partition = TopicPartition(topic, segment.topic_id_partition.partition)
                _keep(found, partition, _of_segment(evidence, replica, segment))
    return {partition: list(ones.values()) for partition, ones in found.items()}


def _readable(
    evidence: Evidence, topic: str, left_out: list[Finding]
) -> Iterator[tuple[Replica, int | None]]:
    """The copies to read, and how many bytes of each."""
    copies = copies_to_read(evidence, topic)
    size = sum(size_of(copy.folder) for copy in copies)
    if size <= MOST_BYTES:
        yield from ((copy, None) for copy in copies)
        return
    most = MOST_BYTES // len(copies)
    read = sum(newest_segments(copy.folder, most)[1] for copy in copies)
    left_out.append(READ_IN_PART.at(Place(topic=topic), topic=topic, size=size, read=read))
    yield from ((copy, most) for copy in copies)


def _keep(found: Found, partition: TopicPartition, one: ExternalOffset) -> None:
    by_kind = found.setdefault(partition, {})
    known = by_kind.get((one.kind, one.epoch, one.moment))
    if known is None or known.offset < one.offset:
        by_kind[one.kind, one.epoch, one.moment] = one


def _commits(
    evidence: Evidence, replica: Replica, znodes: Mapping[str | None, Znodes], most: int | None
) -> Iterator[tuple[TopicPartition, ExternalOffset]]:
    created = {topic: ms for one in znodes.values() for topic, ms in one.created_ms.items()}
    file = evidence.place_of(replica.folder, replica.log_dir.root).file
    for record, read in read_group_records(topic_records(replica, most_bytes=most), Groups()):
        commit = commit_of(record, read)
        if commit is None or commit.offset is None:
            continue
        if commit.commit_timestamp is not None and commit.commit_timestamp < created.get(commit.topic, 0):
            continue  # of an earlier topic of that name
        text = f"group {commit.group!r} committed offset {commit.offset}"
        # Without the time of the topic's creation the commit may be about an earlier topic of that name.
        strength = "good" if commit.topic in created else "weak"
        yield (
            TopicPartition(commit.topic, commit.partition),
            ExternalOffset(
                "consumer_offset",
                strength,
                commit.offset,
                commit.leader_epoch,
                text,
                file,
                replica.moment,
            ),
        )


def _finished(
    replica: Replica, started: dict[str, SegmentMetadata], most: int | None
) -> Iterator[SegmentMetadata]:
    """Segments whose copying finished, also those that were deleted since."""
    for record in topic_records(replica, most_bytes=most):
        if record.value is None:
            continue
        try:
            value = read_remote_log_metadata(record.value)
        except FormatError:
            continue
        if isinstance(value, SegmentMetadata):
            started[value.remote_log_segment_id] = value
        elif isinstance(value, SegmentMetadataUpdate) and value.state is SegmentState.COPY_SEGMENT_FINISHED:
            segment = started.get(value.remote_log_segment_id)
            if segment is not None:
                yield segment


def _topic_names(evidence: Evidence, znodes: Mapping[str | None, Znodes]) -> dict[str, str]:
    names = {topic_id: topic for one in znodes.values() for topic, topic_id in one.topic_ids.items()}
    for replica in evidence.replicas:
        if replica.topic_id is not None:
            names.setdefault(replica.topic_id, replica.topic)
    return names


def _of_segment(evidence: Evidence, replica: Replica, segment: SegmentMetadata) -> ExternalOffset:
    epoch = segment.segment_leader_epochs[-1][0]
    text = f"remote segment {segment.remote_log_segment_id} was copied up to offset {segment.end_offset}"
    file = evidence.place_of(replica.folder, replica.log_dir.root).file
    return ExternalOffset("remote_segment", "sure", segment.end_offset + 1, epoch, text, file, replica.moment)
