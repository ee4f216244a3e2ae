"""A remote segment to examine, the result, and checks that read no object."""

from __future__ import annotations

from formats.arrays import Ints
from formats.messages.remote_log_metadata import SegmentMetadata
from formats.tier.object_names import ObjectKind, ObjectLayout
from formats.values import Struct, field
from kctl.findings import Finding, Place
from kctl.findings import remote as codes
from kctl.replication.epochs import Entries, epoch_for_offset
from kctl.scan.options import Level
from kctl.tier.audit.inventory import SegmentObjects

NAMES = {
    ObjectKind.LOG: "the log",
    ObjectKind.OFFSET_INDEX: "the offset index",
    ObjectKind.TIME_INDEX: "the time index",
    ObjectKind.TRANSACTION_INDEX: "the index of aborted transactions",
    ObjectKind.LEADER_EPOCHS: "the leader epochs",
    ObjectKind.PRODUCER_SNAPSHOT: "the producer snapshot",
    ObjectKind.MANIFEST: "the manifest",
    ObjectKind.INDEXES: "the indexes",
}


class SegmentTask(Struct, frozen=True):
    """A segment to examine, and where its objects are."""

    segment: SegmentMetadata
    objects: SegmentObjects
    level: Level = Level.RECORDS


class ExaminedSegment(Struct):
    """The findings about a segment's objects, and what was read of them."""

    findings: list[Finding] = field(default_factory=list)
    base_offsets: list[Ints] = field(default_factory=list)
    crcs: list[Ints] = field(default_factory=list)
    epochs: Entries | None = None  # the leader epochs stored with it
    producers: int | None = None  # in the snapshot stored with it
    max_timestamp: int | None = None  # of a log that has the offsets and size of the metadata
    # Key and bytes of the segment's indexes; no bytes if it rightly has no index of aborted transactions.
    indexes: dict[ObjectKind, tuple[str | None, bytes]] = field(default_factory=dict)


def missing_objects(task: SegmentTask, layout: ObjectLayout) -> list[Finding]:
    """One finding that names every required object that a segment lacks; none if it is complete."""
    lacking = [kind for kind in NAMES if kind in layout.required and kind not in task.objects.by_kind]
    if not lacking:
        return []
    everything = len(lacking) == len(layout.required)
    what = "all objects" if everything else ", ".join(NAMES[kind] for kind in lacking)
    what = what[0].upper() + what[1:]
    plural = everything or len(lacking) > 1 or lacking[0] in (ObjectKind.LEADER_EPOCHS, ObjectKind.INDEXES)
    size = f"{task.segment.size_in_bytes:,}"
    place = segment_place(task.segment)
    return [codes.OBJECT_MISSING.at(place, what=what, are="are" if plural else "is", size=size)]


def segment_place(segment: SegmentMetadata, key: str | None = None) -> Place:
    """The place of a segment or of one of its objects."""
    where = segment.topic_id_partition
    return Place(
        topic=where.topic,
        partition=where.partition,
        file=key,
        remote_log_segment_id=segment.remote_log_segment_id,
        base_offset=segment.start_offset,
        last_offset=segment.end_offset,
    )


def epochs_against_leader(
    examined: ExaminedSegment, segment: SegmentMetadata, leader: Entries, log_start_offset: int
) -> str | None:
    """Where the epochs stored with a segment of the present lineage differ from the leader's; None: nowhere."""
    stored = examined.epochs
    if not stored or not leader:
        return None
    first = max(stored[0][1], leader[0][1], log_start_offset)
    points = {first, *(start for _, start in (*stored, *leader) if first < start <= segment.end_offset)}
    for point in sorted(points):
        if point > segment.end_offset:
            break
        stored_epoch, leader_epoch = epoch_for_offset(stored, point), epoch_for_offset(leader, point)
        if stored_epoch is not None and leader_epoch is not None and stored_epoch != leader_epoch:
            return f"at offset {point} they say epoch {stored_epoch}, the leader says {leader_epoch}"
    return None
