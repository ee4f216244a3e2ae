"""The losses of one partition: ranges, class, cause, evidence, and the copies that still hold the records."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from formats.values import Struct, field, replace
from kctl.broker_logs.history.leaderships import shown_by, where_of
from kctl.copies.leaders import leaders_of
from kctl.copies.log_notes import LogNotes
from kctl.copies.moments import Znodes
from kctl.copies.replica_log import Holder, batches_between
from kctl.copies.spans import Span, common, joined, without
from kctl.evidence.replica_copies import ByMoment, Copy, Moment
from kctl.findings import Finding, Place
from kctl.findings import replica as replica_findings
from kctl.model import TopicPartition
from kctl.replica.loss.causes import (
    Cause,
    Drop,
    PartitionFacts,
    Proof,
    claimed_epoch,
    copy_proof,
    costs_unknown,
    dropping_epoch,
    explain_drop,
    line_proof,
)
from kctl.replica.loss.commitment import (
    Commitment,
    ExternalOffset,
    commitment_of,
    mark_earlier,
    marks_beyond,
    missing_from,
)
from kctl.replica.loss.log_claims import Claim, find_claims
from kctl.replica.loss.lost_parts import LostPart, LostParts, find_lost_parts
from kctl.replica.loss.present_lineage import choose_present
from kctl.replica.loss.unflushed import minimum_isr, unproven
from kctl.scan.pool import Jobs


class Loss(Struct):
    """One range of records that a leader had and the present lineage lacks; no end if it is unknown."""

    partition: TopicPartition
    from_offset: int
    to_offset: int | None
    loss_class: str
    drop: Drop
    replaced: list[Span]
    missing: list[Span]
    evidence: list[Proof]
    parts: list[LostPart]
    topic_id: str | None = None
    incarnation: int | None = None
    is_compacted: bool = False
    """Whether it is of a compacted topic, of whose offsets a cleaner may have removed some before they were lost."""
    is_at_least: bool = False
    """Whether more may be gone: its end is unknown, or every copy of the partition may lack its tail."""

    @property
    def recoverable_from(self) -> list[tuple[Moment, int]]:
        """The copies that hold all of it; if none does, those that hold some of it."""
        if self.to_offset is None:
            return []
        whole = [part for part in self.parts if part.covers(self.from_offset, self.to_offset)]
        return [(part.holder.copy.moment, part.holder.copy.broker_id) for part in whole or self.parts]

    def extent(self) -> tuple[int | None, int | None, int | None]:
        """How many of its records a copy still holds (None if headers do not say), and their first and last timestamp."""
        if not self.parts or self.to_offset is None:
            return None, None, None
        best = max(self.parts, key=lambda part: min(part.to_offset, self.to_offset or 0) - part.from_offset)
        records: int | None = 0
        stamps: list[int] = []
        for _, batches in batches_between(best.holder.copy, self.from_offset, self.to_offset):
            inside = (batches.first_offset >= self.from_offset) & (batches.last_offset < self.to_offset)
            is_known = bool((batches.records >= 0).all() and inside.all())
            records = records + int(batches.records.sum()) if is_known and records is not None else None
            stamps += [int(t) for t in (batches.max_timestamp.min(), batches.max_timestamp.max()) if t >= 0]
        return records, min(stamps, default=None), max(stamps, default=None)


class PartitionLosses(Struct):
    """The losses of one partition, and findings about what could not be decided."""

    partition: TopicPartition
    losses: list[Loss] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    facts: PartitionFacts | None = None


class _DroppedRecords(Struct):
    """Parts and claims dropped by the same leadership."""

    parts: list[LostPart] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)


def losses_of(
    partition: TopicPartition,
    by_moment: ByMoment,
    order: Sequence[Moment],
    znodes: Mapping[Moment, Znodes],
    log_notes: LogNotes,
    *,
    given_leader: int | None = None,
    is_compacted: bool | None = None,
    external: Sequence[ExternalOffset] = (),
    aside: Sequence[Copy] = (),
    jobs: Jobs = None,
) -> PartitionLosses:
    """The losses of a partition; large logs are read by several processes.

    `aside` are the folders that brokers put aside. Copies of another topic of the same name are left out, with a finding.
    """
    result = PartitionLosses(partition)
    if is_deleted(partition, order, znodes):
        return result
    moments = [znodes[moment] for moment in order if moment in znodes]
    leaders = leaders_of(partition, log_notes, moments)
    present = choose_present(partition, by_moment, order, znodes, leaders, given_leader)
    if present is None:
        result.findings.append(
            replica_findings.LEADER_UNKNOWN.at(Place().in_partition(partition), partition=partition)
        )
        return result
    made = znodes[present.moment].created_ms.get(partition.topic) if present.moment in znodes else None
    lost_parts = find_lost_parts(
        partition,
        present,
        by_moment,
        znodes,
        is_compacted=is_compacted,
        made_ms=made or log_notes.began_at(partition) or None,
        is_tiered=any(offset.kind == "remote_segment" for offset in external),
        aside=aside,
        jobs=jobs,
    )
    for holder in lost_parts.holders:
        problems = [*holder.log.problems, *filter(None, [holder.copy.marks_problem])]
        place, broker_id = holder.copy.place, holder.copy.broker_id
        for problem in dict.fromkeys(problems):
            result.findings.append(
                replica_findings.COPY_UNREADABLE.at(place, broker_id=broker_id, reason=problem)
            )
    facts = PartitionFacts(partition, present, leaders, log_notes, lost_parts.holders, znodes)
    result.facts = facts
    claims = list(_without_present(find_claims(partition, log_notes, leaders, present), lost_parts))
    for epoch, group in _groups(facts, lost_parts, claims).items():
        result.losses += _losses_of_group(facts, lost_parts, epoch, group, external)
    other_offsets = [*mark_earlier(external, facts, order), *marks_beyond(facts)]
    result.losses += _losses_from_offsets(facts, lost_parts, other_offsets, result.losses)
    result.findings += lost_parts.findings
    result.findings += costs_unknown(facts, (loss.drop.leader_epoch for loss in result.losses))
    open_tails = list(unproven(facts, minimum=minimum_isr(facts)))
    for loss in result.losses:
        loss.is_at_least |= bool(open_tails) and loss.loss_class != "uncommitted"
    known = {loss.drop.leader_epoch for loss in result.losses if loss.is_at_least}
    result.findings += [tail.finding(facts) for tail in open_tails if tail.term.leader_epoch not in known]
    result.losses.sort(key=lambda loss: (loss.from_offset, loss.drop.leader_epoch or -1))
    return result


def is_deleted(partition: TopicPartition, order: Sequence[Moment], znodes: Mapping[Moment, Znodes]) -> bool:
    """Whether the topic is missing in the znodes of the last moment."""
    last = order[-1] if order else None
    return last in znodes and bool(znodes[last].created) and partition.topic not in znodes[last].created


def _groups(
    facts: PartitionFacts, lost_parts: LostParts, claims: Sequence[Claim]
) -> dict[int | None, _DroppedRecords]:
    groups: dict[int | None, _DroppedRecords] = {}
    for part in lost_parts.parts:
        groups.setdefault(dropping_epoch(facts, part, lost_parts.parts), _DroppedRecords()).parts.append(part)
    for part in groups.pop(None, _DroppedRecords()).parts:
        # Nothing names the leadership for this copy: take the one that dropped the same range of others.
        same = [
            epoch
            for epoch, group in groups.items()
            if epoch is not None and any(p.overlaps(part.from_offset, part.to_offset) for p in group.parts)
        ]
        groups.setdefault(min(same, default=None), _DroppedRecords()).parts.append(part)
    for claim in claims:
        epoch = claimed_epoch(facts, claim.epoch, claim.from_offset, claim.time_ms)
        if epoch not in groups:
            start, end = claim.from_offset, claim.to_offset
            end = start + 1 if end is None else end
            holding = (e for e, group in groups.items() if any(p.covers(start, end) for p in group.parts))
            epoch = next(holding, epoch)
        groups.setdefault(epoch, _DroppedRecords()).claims.append(claim)
    return groups


def first_timestamp(parts: Sequence[LostPart], start: int) -> int | None:
    """The timestamp of the first lost batch, in milliseconds; None if no copy has one."""
    for part in parts:
        for _, batches in batches_between(part.holder.copy, start, start + 1):
            stamp = int(batches.max_timestamp[0])
            return stamp if stamp >= 0 else None
    return None


def _losses_from_offsets(
    facts: PartitionFacts, lost_parts: LostParts, external: Sequence[ExternalOffset], known: Sequence[Loss]
) -> list[Loss]:
    """Losses of committed offsets that the present lineage does not reach and no copy or log line shows."""
    losses: list[Loss] = []
    for committed in sorted(external, key=lambda e: -e.offset):
        start = missing_from(committed, facts)
        if start is None:
            continue
        told = (
            (loss.from_offset, committed.offset if loss.to_offset is None else loss.to_offset)
            for loss in (*known, *losses)
        )
        for first, last in without([(start, committed.offset)], told):
            epoch = claimed_epoch(facts, committed.epoch, first, 0)
            drop = explain_drop(facts, epoch, first, committed.epoch, ())
            proofs = [*drop.proofs, committed.proof]
            losses.append(_loss(facts, lost_parts, first, last, "committed", drop, proofs, ()))
    return losses


def _without_present(claims: Iterable[Claim], lost_parts: LostParts) -> Iterator[Claim]:
    """The claims, reduced to what is lost if a copy from before the cut shows what was cut.

    Producers without an answer sent again what only the leader had, so that it is often in the present log too.
    """
    for claim in claims:
        until = claim.to_offset
        whole = (holder for holder in lost_parts.holders if _is_before_cut(holder, claim, lost_parts))
        before = None if until is None else next(whole, None)
        if before is None or until is None:
            yield claim
            continue
        for part in lost_parts.parts:
            if part.holder is before and part.overlaps(claim.from_offset, until):
                start, end = max(part.from_offset, claim.from_offset), min(part.to_offset, until)
                yield replace(claim, from_offset=start, to_offset=end)


def _is_before_cut(holder: Holder, claim: Claim, lost_parts: LostParts) -> bool:
    """Whether a copy holds everything that a broker cut later; its epochs show that it was not cut yet."""
    lineage, copy, present = holder.lineage, holder.copy, lost_parts.present
    if copy.broker_id != claim.broker_id or copy.moment == present.moment:
        return False
    if holder.is_doubtful or not lineage.epochs:
        return False
    is_whole = (lineage.local_log_start_offset or 0) <= claim.from_offset
    is_whole = is_whole and lineage.log_end_offset >= (claim.to_offset or 0)
    if claim.led_epoch is not None:
        return is_whole and lineage.last_epoch <= claim.led_epoch
    now = present.lineage.epoch_at(claim.from_offset) if present.lineage else None
    return is_whole and now is not None and lineage.last_epoch < now


def _losses_of_group(
    facts: PartitionFacts,
    lost_parts: LostParts,
    epoch: int | None,
    group: _DroppedRecords,
    external: Sequence[ExternalOffset],
) -> list[Loss]:
    losses = []
    for start, end in _ranges_covered(group):
        parts = [p for p in group.parts if p.from_offset < (end or p.from_offset + 1) and p.to_offset > start]
        claims = [c for c in group.claims if c.from_offset >= start and (end is None or c.from_offset < end)]
        broker_ids = [p.holder.copy.broker_id for p in parts] + [c.broker_id for c in claims]
        written = _written_in(start, parts, claims)
        written_ms = first_timestamp(parts, start) if written is None else None
        drop = explain_drop(facts, epoch, start, written, broker_ids, written_ms)
        commitment = commitment_of(facts, drop, start, end, parts, claims, external)
        is_doubtful = bool(parts) and not claims and all(part.holder.is_doubtful for part in parts)
        if drop.is_handover and commitment.lower <= start and not is_doubtful:
            drop.cause, commitment.upper = Cause.HANDOVER, start
            lost_parts.findings.append(_handover(facts, drop, start, parts, claims))
        proofs = _proofs(drop, commitment, parts, claims)
        reached = max((c.reached for c in claims if c.reached is not None), default=0)
        classes = _split_by_commitment(commitment, start, end, reached)
        why = None
        if is_doubtful:
            why = "what holds it may be of an earlier topic of that name"
        elif not all(part.is_searched for part in parts):
            why = "the copies diverge so often that kctl did not check whether producers sent it again"
        if why is not None:
            classes = [(start, end, "unknown")]
            proofs.append(Proof("copy", "weak", why))
        losses += [
            _loss(
                facts,
                lost_parts,
                class_start,
                class_end,
                loss_class,
                _written_from(facts, drop, class_start, parts, claims),
                proofs,
                parts,
                reached,
                is_at_least=end is None and class_end == classes[-1][1],
            )
            for class_start, class_end, loss_class in classes
        ]
    return losses


def _written_in(offset: int, parts: Sequence[LostPart], claims: Sequence[Claim]) -> int | None:
    """The leader epoch of a lost record, as a copy that holds it shows, else of the first that is known."""
    holding = [part.holder.lineage.epoch_at(offset) for part in parts if part.covers(offset, offset + 1)]
    epochs = [*holding, *(part.epoch for part in parts), *(claim.epoch for claim in claims)]
    return next((epoch for epoch in epochs if epoch is not None), None)


def _written_from(
    facts: PartitionFacts, drop: Drop, start: int, parts: Sequence[LostPart], claims: Sequence[Claim]
) -> Drop:
    """The drop, with the writer of the records from an offset on: another leader may have written those."""
    epoch = _written_in(start, parts, claims)
    if epoch is None or epoch == drop.written_in_epoch:
        return drop
    return replace(drop, written_in_epoch=epoch, written_by=facts.leaders.leader_of(epoch))


def _handover(
    facts: PartitionFacts, drop: Drop, start: int, parts: Sequence[LostPart], claims: Sequence[Claim]
) -> Finding:
    """The finding about a tail that only the old leader had when it was told to stop."""
    if parts:
        copy = parts[0].holder.copy
        broker_id, shown = copy.broker_id, shown_by({"file": copy.place.file})
        seen_in = "its copy"
    else:
        proof = claims[0].notes[0].proof
        broker_id, shown = claims[0].broker_id, shown_by(proof)
        seen_in = f"its log, {where_of(proof)}"
    return replica_findings.TAIL_OF_HANDOVER.at(
        Place(broker_id, **shown, base_offset=start).in_partition(facts.partition),
        partition=facts.partition,
        leader=drop.leader or 0,
        epoch=drop.leader_epoch or 0,
        broker_id=broker_id,
        start=start,
        seen_in=seen_in,
    )


def _ranges_covered(group: _DroppedRecords) -> list[tuple[int, int | None]]:
    """The ranges that parts and claims cover; a claim without an end adds one only if no part covers its start."""
    spans: list[tuple[int, int]] = [(p.from_offset, p.to_offset) for p in group.parts]
    spans += [(c.from_offset, c.to_offset) for c in group.claims if c.to_offset is not None]
    merged: list[tuple[int, int | None]] = [*joined(spans)]
    for claim in group.claims:
        inside = any(s <= claim.from_offset and (e is None or claim.from_offset < e) for s, e in merged)
        if claim.to_offset is None and not inside:
            merged.append((claim.from_offset, None))
    return merged


def _split_by_commitment(
    commitment: Commitment, start: int, end: int | None, reached: int
) -> list[tuple[int, int | None, str]]:
    """The range split into committed, uncommitted and unknown; `reached` is where the log ended at least."""
    classes: list[tuple[int, int | None, str]] = []
    if commitment.lower > start:
        classes.append((start, commitment.lower, "committed"))
    rest = max(start, commitment.lower)
    if end is None and rest >= max(start + 1, reached):
        return classes  # nothing says that there was a record behind the committed ones
    if end is None or rest < end:
        uncommitted = commitment.upper is not None and commitment.upper <= rest
        classes.append((rest, end, "uncommitted" if uncommitted else "unknown"))
    return classes


def _proofs(
    drop: Drop, commitment: Commitment, parts: Sequence[LostPart], claims: Sequence[Claim]
) -> list[Proof]:
    proofs = [*drop.proofs, *commitment.proofs]
    for part in parts:
        copy = part.holder.copy
        text = f"{copy.who} holds [{part.from_offset}, {part.to_offset})"
        proofs.append(copy_proof("copy", "sure", text, copy))
    for claim in claims:
        proofs += [line_proof("truncation", note.proof) for note in claim.notes]
    # A line that proves several things is listed once, for the first of them.
    return list(
        {(p.file, p.line) if p.line is not None else (p.text, p.moment): p for p in reversed(proofs)}.values()
    )[::-1]


def _loss(
    facts: PartitionFacts,
    lost_parts: LostParts,
    start: int,
    end: int | None,
    loss_class: str,
    drop: Drop,
    proofs: list[Proof],
    parts: Sequence[LostPart],
    reached: int = 0,
    *,
    is_at_least: bool = False,
) -> Loss:
    present_end = facts.present.log_end_offset
    # Without an end only the first record is certain, and the offsets up to the last known log end.
    until = max(start + 1, reached) if end is None else end
    absent = lost_parts.absent
    first, last = (
        bisect_right(absent, start, key=itemgetter(1)),
        bisect_left(absent, until, key=itemgetter(0)),
    )
    gaps = absent[first:last]
    replaced = without([(start, min(until, present_end))], gaps)
    beyond = joined([(max(start, present_end), until)])
    missing = sorted({*beyond, *common([(start, until)], gaps)})
    holding = [part for part in parts if part.overlaps(start, until)]
    return Loss(
        facts.partition, start, end, loss_class, drop, replaced, missing, proofs, holding,
        facts.topic_id, facts.incarnation, lost_parts.is_compacted, is_at_least or end is None,
    )  # fmt: skip
