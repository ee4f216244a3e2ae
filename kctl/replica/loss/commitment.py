"""How much of a loss had been committed, and what proves it.

A high watermark in a checkpoint is a lower bound: everything below was committed on that branch. Upper bounds are
a leader's own log line about its high watermark when it stopped leading, and the log end of an ISR member. From 2.8
to 3.4 a follower took its leader's high watermark before it truncated (KAFKA-14704), so that the checkpoint of a
follower that was about to truncate proves nothing.

A copy may be shorter than its own high watermark: it lost or cut its tail before the checkpoint was rewritten.
The files of a running broker are copied one after the other, so that such a high watermark counts only if the order
of copying cannot explain it: at an older moment, or for a broker that was down.

Consumer groups and tier metadata name committed offsets too. A consumer commits its next offset with the leader
epoch of the last record it read (2.1 and later), and reads nothing above the high watermark; but a client can
commit any number. Only segments below the last stable offset are copied to a tier, and their metadata survives every
truncation.

Source: core/src/main/scala/kafka/coordinator/group/GroupMetadataManager.scala @ 2.1.0;
core/src/main/java/kafka/log/remote/RemoteLogManager.java @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from formats.errors import FormatError
from formats.log_dir.file_names import FolderKind
from formats.messages.remote_log_metadata import (
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    read_remote_log_metadata,
)
from formats.values import Struct, field, replace
from kctl.copies.log_notes import Note
from kctl.copies.moments import Znodes
from kctl.copies.replica_log import Holder
from kctl.copies.scanned import size_of
from kctl.evidence.model import FoundEvidence, Replica
from kctl.evidence.replica_copies import CHECKPOINTS, Moment
from kctl.findings import Finding, Place
from kctl.findings.internal_topics import READ_IN_PART
from kctl.internal_topics.groups import Groups, commit_of, read_group_records
from kctl.internal_topics.reading import copies_to_read, newest_segments, topic_records
from kctl.model import TopicPartition
from kctl.replica.loss.causes import PROMPT_MS, Drop, PartitionFacts, Proof, copy_proof, line_proof
from kctl.replica.loss.log_claims import Claim
from kctl.replica.loss.lost_parts import LostPart
from kctl.replication.epochs import next_epoch


class CommittedUpTo(Struct, frozen=True):
    """All records below the offset were committed on the lost branch; `proof` says why."""

    offset: int
    proof: Proof


class Commitment(Struct):
    """Bounds: committed below `lower`, not committed from `upper` on (None: not known)."""

    lower: int
    upper: int | None = None
    proofs: list[Proof] = field(default_factory=list)


class ExternalOffset(Struct, frozen=True):
    """An offset that was committed outside the log: by a consumer group, or by a remote segment."""

    kind: str
    strength: str
    offset: int
    epoch: int | None
    text: str
    file: str | None = None
    moment: Moment = None
    is_of_before: bool = False
    """Whether it is from a moment before the present one, under another leadership."""

    @property
    def proof(self) -> Proof:
        return Proof(self.kind, self.strength, self.text, file=self.file)


def commitment_of(
    facts: PartitionFacts,
    drop: Drop,
    start: int,
    end: int | None,
    parts: Sequence[LostPart],
    claims: Sequence[Claim],
    external: Sequence[ExternalOffset] = (),
) -> Commitment:
    """How much of the lost range [start, end) was committed."""
    bounds = [
        *_checkpoints(facts, parts, start),
        *_logged_high_watermarks(facts, drop, parts, claims),
        *_isr_presence(facts, parts, start),
        *_isr_of_one(facts, drop, parts, start),
        *_external(facts, drop, external),
    ]
    result = Commitment(start)
    for bound in sorted((bound for bound in bounds if bound.offset > start), key=lambda bound: -bound.offset):
        result.lower = max(result.lower, bound.offset if end is None else min(bound.offset, end))
        if len(result.proofs) < 8:
            result.proofs.append(bound.proof)
    for claim in claims:
        high_watermark = claim.high_watermark
        if high_watermark is not None and high_watermark <= claim.from_offset and result.lower <= start:
            result.upper = high_watermark
            noted_marks = [note for note in claim.notes if note.high_watermark is not None]
            result.proofs += [line_proof("high_watermark_line", note.proof) for note in noted_marks[-1:]]
    survived = _end_of_new_leader(facts, drop)
    if survived is not None and result.upper is None and result.lower <= start:
        result.upper = survived.offset
        result.proofs.append(survived.proof)
    return result


def _end_of_new_leader(facts: PartitionFacts, drop: Drop) -> CommittedUpTo | None:
    """Where the log of a new leader ended that was in the ISR and ran throughout: nothing beyond was committed.

    A high watermark is never above the log end of an ISR member. A member that started or cut its log during the
    leadership before may have had more.
    """
    term = facts.leaders.of(drop.leader_epoch)
    if term is None or term.from_ms is None or drop.leader not in facts.log_notes.starts:
        return None
    assert drop.leader is not None
    isr, complete, is_last, _ = facts.leaders.isr_before(term.leader_epoch)
    terms = (known for known in facts.leaders.before(term.leader_epoch) if known.leader_id is not None)
    before = next(terms, None)
    if not (complete and is_last and drop.leader in (isr or ())) or before is None or before.from_ms is None:
        return None
    if facts.log_notes.started_between(drop.leader, before.from_ms, term.from_ms):
        return None
    cuts = facts.log_notes.of(facts.partition, "cut", "asked_to_cut", "reset", broker_id=drop.leader)
    if any(before.from_ms - PROMPT_MS <= note.time_ms <= term.from_ms for note in cuts):
        return None
    end = next((first for epoch, first in facts.present.recorded if epoch == term.leader_epoch), None)
    if end is None or facts.leaders.is_doubtful:
        return None
    text = f"broker {drop.leader} was in the ISR, ran all along, and had nothing from offset {end} on"
    return CommittedUpTo(end, Proof("isr_member_without", "good", text, drop.leader))


def _checkpoints(facts: PartitionFacts, parts: Sequence[LostPart], start: int) -> Iterator[CommittedUpTo]:
    for part in parts:
        copy = part.holder.copy
        high_watermark = copy.checkpoint("high_watermark")
        if high_watermark is None or high_watermark <= start:
            continue
        state = facts.present.state if copy.moment == facts.present.moment else None
        follows = (
            state is not None
            and state.leader != copy.broker_id
            and facts.present.live is not None
            and copy.broker_id in facts.present.live
        )
        if follows and part.holder.lineage.log_end_offset > part.to_offset:
            continue  # it has fetched from the new leader since: this is the new leader's high watermark
        text = f"{CHECKPOINTS['high_watermark']} of {copy.who} says {high_watermark}"
        proof = copy_proof("high_watermark_checkpoint", "good" if follows else "sure", text, copy)
        yield CommittedUpTo(min(high_watermark, part.to_offset), proof)


def _logged_high_watermarks(
    facts: PartitionFacts, drop: Drop, parts: Sequence[LostPart], claims: Sequence[Claim]
) -> Iterator[CommittedUpTo]:
    """High watermarks that the brokers with the lost records logged before they cut them."""
    broker_ids = {part.holder.copy.broker_id for part in parts} | {claim.broker_id for claim in claims}
    # A log that was cut had more than an earlier copy of it, up to an end that lines may not tell.
    ends: dict[int | None, int] = {part.holder.copy.broker_id: part.to_offset for part in parts}
    for claim in claims:
        if claim.to_offset is None:
            ends.pop(claim.broker_id, None)
        elif claim.broker_id in ends:
            ends[claim.broker_id] = max(ends[claim.broker_id], claim.to_offset)
    term = facts.leaders.of(drop.leader_epoch)
    since = facts.log_notes.began_at(facts.partition)
    for broker_id in broker_ids:
        cut = _first_cut(facts, broker_id, term.from_ms if term else None, claims)
        kinds = ("leader", "follower", "fetching", "shrank", "initial_high_watermark")
        for note in facts.log_notes.of(facts.partition, *kinds, broker_id=broker_id):
            if note.high_watermark is None or note.time_ms < since:
                continue
            if cut is not None and note.time_ms > cut:
                break
            of_later = drop.leader_epoch is not None and (note.leader_epoch or 0) >= drop.leader_epoch
            if note.what == "leader" and of_later:
                continue
            end = min(note.high_watermark, ends.get(broker_id, note.high_watermark))
            yield CommittedUpTo(end, line_proof("high_watermark_line", note.proof))


def _first_cut(
    facts: PartitionFacts, broker_id: int, dropped_ms: int | None, claims: Sequence[Claim]
) -> int | None:
    """When the broker first cut its log after the drop; else when it became a follower; None if never."""
    cuts = [claim.time_ms for claim in claims if claim.broker_id == broker_id]
    notes: list[Note] = facts.log_notes.of(facts.partition, "cut", "reset", broker_id=broker_id)
    cuts += [note.time_ms for note in notes if dropped_ms is not None and note.time_ms >= dropped_ms]
    if cuts:
        return min(cuts)
    roles = facts.log_notes.of(facts.partition, "follower", "fetching", "asked_to_cut", broker_id=broker_id)
    after = [note.time_ms for note in roles if dropped_ms is not None and note.time_ms >= dropped_ms]
    return min(after, default=None)


def _isr_presence(facts: PartitionFacts, parts: Sequence[LostPart], start: int) -> Iterator[CommittedUpTo]:
    """Records that every ISR member of one moment held, the leader of that moment among them."""
    for moment in dict.fromkeys(part.holder.copy.moment for part in parts):
        state = facts.state_at(moment)
        if state is None or state.leader not in state.isr or _is_too_small(facts, state.isr):
            continue
        ends = {
            part.holder.copy.broker_id: part.to_offset
            for part in parts
            if part.holder.copy.moment == moment and part.from_offset <= start
        }
        if not all(broker_id in ends for broker_id in state.isr):
            continue
        end = min(ends[broker_id] for broker_id in state.isr)
        text = f"every member of the ISR {list(state.isr)} held them"
        yield CommittedUpTo(end, Proof("isr_presence", "sure", text, state.leader, moment, state.file))


def _is_too_small(facts: PartitionFacts, isr: Sequence[int]) -> bool:
    """Whether the ISR is known to be below min.insync.replicas; from 3.7 on its high watermark does not advance.

    Brokers from 2.8 on give every topic an id; a topic of ZooKeeper without one shows older brokers (KIP-516).
    """
    topic = facts.partition.topic
    if any(znode.created.get(topic) and topic not in znode.topic_ids for znode in facts.znodes.values()):
        return False
    minimums = (znode.minimum_isr(topic) for znode in facts.znodes.values())
    return len(isr) < max([facts.logged_minimum_isr, *minimums])


def _isr_of_one(
    facts: PartitionFacts, drop: Drop, parts: Sequence[LostPart], start: int
) -> Iterator[CommittedUpTo]:
    """What the only ISR member accepted as leader was committed at once."""
    if drop.leader_epoch is None:
        return
    isr, _, is_last, _ = facts.leaders.isr_before(drop.leader_epoch)
    if isr is None or len(isr) != 1 or not is_last or _is_too_small(facts, isr):
        return
    for part in parts:
        if part.holder.copy.broker_id != isr[0] or part.from_offset > start:
            continue
        for term in facts.leaders.before(drop.leader_epoch):
            if term.leader == isr[0]:
                proof = line_proof("isr_of_one", term.proofs[0] if term.proofs else {}, "good")
                yield CommittedUpTo(part.to_offset, proof)
                break


def _external(
    facts: PartitionFacts, drop: Drop, external: Sequence[ExternalOffset]
) -> Iterator[CommittedUpTo]:
    for offset in external:
        if offset.epoch is not None and drop.leader_epoch is not None and offset.epoch >= drop.leader_epoch:
            continue  # of the present lineage
        if offset.epoch is None and offset.offset <= facts.present.log_end_offset:
            continue  # without an epoch only offsets above the present end prove anything
        yield CommittedUpTo(offset.offset, offset.proof)


def missing_from(external: ExternalOffset, facts: PartitionFacts) -> int | None:
    """From which offset on the present lineage lacks what was committed up to `external`; None if unknown."""
    present = facts.present
    assert present.lineage is not None
    if external.strength == "weak":
        return None
    start = None if external.epoch is None else present.starts_after(external.epoch)
    if start is None and external.offset > present.log_end_offset and external.is_of_before:
        start = present.log_end_offset
    return None if start is None else max(start, present.lineage.log_start_offset)


def marks_beyond(facts: PartitionFacts) -> Iterator[ExternalOffset]:
    """High watermarks above the end of their own copies that were written before the present copy."""
    for holder in facts.holders:
        if holder.log.base_offset is None:
            continue  # a broker keeps a segment in each folder: the copy lost them, not the broker
        kind, high_watermark = "high_watermark_checkpoint", _confirmed_mark(holder, facts)
        if high_watermark > holder.lineage.log_end_offset and _tells_of_lost_records(
            holder, high_watermark, facts
        ):
            epoch = holder.lineage.last_epoch if holder.lineage.epochs else None
            text = f"{CHECKPOINTS['high_watermark']} of {holder.copy.who} says {high_watermark}"
            file = holder.copy.place.file
            yield ExternalOffset(kind, "good", high_watermark, epoch, text, file, is_of_before=True)


def _confirmed_mark(holder: Holder, facts: PartitionFacts) -> int:
    """The high watermark of a copy; if it contradicts its own log, only as far as another copy of its moment reaches.

    No checksum covers a checkpoint. For a broker that is down nothing else tells of a leadership of others.
    """
    copy, high_watermark = holder.copy, holder.copy.checkpoint("high_watermark") or 0
    if copy is not facts.present.copy and not copy.replica.log_dir.is_clean:
        return high_watermark
    others = (holder.copy for holder in facts.holders if holder.copy is not copy)
    marks = [other.checkpoint("high_watermark") for other in others if other.moment == copy.moment]
    return min(high_watermark, max((mark for mark in marks if mark is not None), default=high_watermark))


def _tells_of_lost_records(holder: Holder, high_watermark: int, facts: PartitionFacts) -> bool:
    present, moment = facts.present, holder.copy.moment
    of_then = facts.znodes.get(moment)
    if moment == present.moment:
        # The checkpoint of a running broker may have been copied after its log.
        was_down = of_then is not None and holder.copy.broker_id not in of_then.live
        is_own = holder.copy is present.copy
        is_said = _has_all_copies(facts) if is_own else was_down or holder.copy.replica.log_dir.is_clean
        return is_said and high_watermark > present.log_end_offset
    if not _is_of_older_leadership(facts, moment):
        return False
    if high_watermark > present.log_end_offset:
        return True
    following = next_epoch(present.recorded, holder.lineage.last_epoch) if holder.lineage.epochs else None
    # The high watermark is of the leadership before, since the next one had not begun.
    return following is not None and facts.epoch_then[moment] < following


def _has_all_copies(facts: PartitionFacts) -> bool:
    """Whether the present leader was shut down cleanly and the evidence has the copies of all replicas."""
    present = facts.present
    of_now = {holder.copy.broker_id for holder in facts.holders if holder.copy.moment == present.moment}
    znodes = facts.znodes.get(present.moment)
    if znodes is None or present.state is None or present.state.leader not in (present.copy.broker_id, -1):
        return False
    assigned = {*znodes.replicas.get(facts.partition, ()), *present.state.isr}
    return present.copy.replica.log_dir.is_clean and assigned <= of_now


def _is_of_older_leadership(facts: PartitionFacts, moment: Moment) -> bool:
    """Whether the leadership changed since a moment; within one leadership a shorter copy is only incomplete."""
    then, current = facts.epoch_then.get(moment), facts.present.current_epoch
    if current is None and facts.present.state is not None:
        current = facts.present.state.leader_epoch
    return then is not None and current is not None and then < current


def mark_earlier(
    external: Iterable[ExternalOffset], facts: PartitionFacts, order: Iterable[Moment]
) -> Iterator[ExternalOffset]:
    """The offsets, marked if they are from an earlier moment under another leadership."""
    earlier: set[Moment] = set()
    for moment in order:
        if moment == facts.present.moment:
            break
        if _is_of_older_leadership(facts, moment):
            earlier.add(moment)
    for offset in external:
        yield replace(offset, is_of_before=offset.is_of_before or offset.moment in earlier)


GROUPS, REMOTE = "__consumer_offsets", "__remote_log_metadata"
# Records of these topics are read one by one; more bytes would take longer than everything else.
MOST_BYTES = 256 << 20
HighestOffsets = dict[TopicPartition, dict[tuple[str, int | None, str | None], ExternalOffset]]


def external_offsets(
    evidence: FoundEvidence, znodes: Mapping[str | None, Znodes], left_out: list[Finding]
) -> dict[TopicPartition, list[ExternalOffset]]:
    """The highest offset of each kind and epoch for each partition that these topics name.

    Only the newest segments of a large topic are read; then a finding is added to `left_out`.
    """
    highest: HighestOffsets = {}
    for replica, most in _readable_replicas(evidence, GROUPS, left_out):
        for partition, offset in _committed_by_groups(evidence, replica, znodes, most):
            _keep_highest(highest, partition, offset)
    names = _topic_names(evidence, znodes)
    finished: dict[str, SegmentMetadata] = {}
    segments = (
        (replica, segment)
        for replica, most in _readable_replicas(evidence, REMOTE, left_out)
        for segment in _finished_segments(replica, finished, most)
    )
    for replica, segment in chain(segments, _segments_of_earlier_moments(evidence, finished)):
        topic = names.get(segment.topic_id_partition.topic_id)
        if topic is not None and segment.segment_leader_epochs:
            partition = TopicPartition(topic, segment.topic_id_partition.partition)
            _keep_highest(highest, partition, _of_segment(evidence, replica, segment))
    return {partition: list(offsets.values()) for partition, offsets in highest.items()}


def _readable_replicas(
    evidence: FoundEvidence, topic: str, left_out: list[Finding]
) -> Iterator[tuple[Replica, int | None]]:
    """The copies to read, and how many bytes of each (None: all)."""
    copies = copies_to_read(evidence, topic)
    size = sum(size_of(copy.folder) for copy in copies)
    if size <= MOST_BYTES:
        yield from ((copy, None) for copy in copies)
        return
    most = MOST_BYTES // len(copies)
    read = sum(newest_segments(copy.folder, most)[1] for copy in copies)
    left_out.append(READ_IN_PART.at(Place(topic=topic), topic=topic, size=size, read=read))
    yield from ((copy, most) for copy in copies)


def _keep_highest(highest: HighestOffsets, partition: TopicPartition, offset: ExternalOffset) -> None:
    by_kind = highest.setdefault(partition, {})
    known = by_kind.get((offset.kind, offset.epoch, offset.moment))
    if known is None or known.offset < offset.offset:
        by_kind[offset.kind, offset.epoch, offset.moment] = offset


def _committed_by_groups(
    evidence: FoundEvidence, replica: Replica, znodes: Mapping[str | None, Znodes], most: int | None
) -> Iterator[tuple[TopicPartition, ExternalOffset]]:
    created = {topic: ms for znode in znodes.values() for topic, ms in znode.created_ms.items()}
    file = evidence.place_of(replica.folder, replica.log_dir.root).file
    for record, read in read_group_records(topic_records(replica, most_bytes=most), Groups()):
        commit = commit_of(record, read)
        if commit is None or commit.offset is None:
            continue
        if commit.commit_timestamp is not None and commit.commit_timestamp < created.get(commit.topic, 0):
            continue  # of an earlier topic of that name
        text = f"group {commit.group!r} committed offset {commit.offset}"
        # Without the topic's creation time the commit may be about an earlier topic of that name.
        strength = "good" if commit.topic in created else "weak"
        yield (
            TopicPartition(commit.topic, commit.partition),
            ExternalOffset(
                "consumer_offset", strength, commit.offset, commit.leader_epoch, text, file, replica.moment
            ),
        )


def _finished_segments(
    replica: Replica, started: dict[str, SegmentMetadata], most: int | None
) -> Iterator[SegmentMetadata]:
    """Segments that were copied completely, including those deleted since."""
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


def _segments_of_earlier_moments(
    evidence: FoundEvidence, known: Container[str]
) -> Iterator[tuple[Replica, SegmentMetadata]]:
    """Segments that only the metadata of an earlier moment name, each with a copy of that metadata."""
    copies: dict[str | None, dict[int, Replica]] = {}
    for replica in evidence.replicas:
        if replica.topic == REMOTE and replica.kind is FolderKind.LIVE:
            copies.setdefault(replica.moment, {})[replica.partition] = replica
    if len(copies) < 2:
        return
    from kctl.tier.metadata.forgotten import forgotten_segments
    from kctl.tier.metadata.partitioner import metadata_partition

    for moment, segment in forgotten_segments(evidence, known):
        of = segment.topic_id_partition
        number = metadata_partition(of.topic_id, of.partition)
        yield copies[moment].get(number) or next(iter(copies[moment].values())), segment


def _topic_names(evidence: FoundEvidence, znodes: Mapping[str | None, Znodes]) -> dict[str, str]:
    """Topic names by id; of a topic that was recreated, only the ids of the newest moment."""
    newest: dict[str, set[str]] = {}
    for moment in (None, *evidence.moments):
        topic_ids_then: dict[str, set[str]] = {}  # several if copies disagree
        for replica in evidence.replicas:
            if replica.moment == moment and replica.kind is FolderKind.LIVE and replica.topic_id is not None:
                topic_ids_then.setdefault(replica.topic, set()).add(replica.topic_id)
        if moment in znodes:
            topic_ids_then |= {topic: {topic_id} for topic, topic_id in znodes[moment].topic_ids.items()}
        newest |= topic_ids_then
    return {topic_id: topic for topic, topic_ids in newest.items() for topic_id in topic_ids}


def _of_segment(evidence: FoundEvidence, replica: Replica, segment: SegmentMetadata) -> ExternalOffset:
    epoch = segment.segment_leader_epochs[-1][0]
    text = f"remote segment {segment.remote_log_segment_id} was copied up to offset {segment.end_offset}"
    file = evidence.place_of(replica.folder, replica.log_dir.root).file
    return ExternalOffset("remote_segment", "sure", segment.end_offset + 1, epoch, text, file, replica.moment)
