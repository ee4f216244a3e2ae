"""A partition's copies of one moment: lineages, differences, verdict, and the copy to trust."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from kctl.findings import Finding, Place
from kctl.findings import replica as say
from kctl.model import TopicPartition
from kctl.replica.best_source import BestSource, Choice, best_source
from kctl.replica.copies import Copy
from kctl.replica.lineage import Lineage
from kctl.replica.moments import INTERNAL_COMPACTED
from kctl.replica.pairs import Pair, compare_pairs
from kctl.replica.replica_log import ReplicaLog
from kctl.scan.pool import Jobs


@dataclass(frozen=True, slots=True)
class Divergence:
    """Offsets at which two brokers hold different records, and the epochs of each side there."""

    broker_ids: tuple[int, int]
    from_offset: int
    to_offset: int
    epochs: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass
class PartitionComparison:
    """What is known of one partition at one moment."""

    partition: TopicPartition
    moment: str | None
    copies: dict[int, Copy]
    logs: dict[int, ReplicaLog] = field(default_factory=dict)
    lineages: dict[int, Lineage] = field(default_factory=dict)
    divergences: list[Divergence] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    best: BestSource | None = None
    best_source: int | None = None
    verdict: str = "unknown"
    reason: str = ""
    behind: tuple[int, ...] = ()

    @property
    def place(self) -> Place:
        """Where findings about the partition are."""
        return Place(topic=self.partition.topic, partition=self.partition.partition, moment=self.moment)


def compare_partition(
    partition: TopicPartition,
    moment: str | None,
    copies: Mapping[int, Copy],
    assigned: Sequence[int] = (),
    *,
    is_compacted: bool | None = None,
    running: Container[int] = (),
    jobs: Jobs = None,
) -> PartitionComparison:
    """The comparison of these copies; `is_compacted` None leaves it to what the logs show.

    `assigned` are the replicas that znodes name, `running` the brokers that ran while they were copied. Large logs are read by `jobs` processes.
    """
    found = PartitionComparison(partition, moment, dict(sorted(copies.items())))
    comparable = _same_topic(found)
    logs = [ReplicaLog(copy) for copy in found.copies.values()]
    indexes = list(combinations(range(len(logs)), 2)) if comparable else []
    pairs = compare_pairs(logs, indexes, jobs)
    found.logs = dict(zip(found.copies, logs, strict=True))
    found.lineages = {broker_id: log.lineage() for broker_id, log in found.logs.items()}
    _note_problems(found, running)
    _note_missing(found, assigned)
    compacted = is_compacted if is_compacted is not None else _looks_compacted(found)
    if comparable:
        _judge(found, pairs, logs, compacted)
    return found


def _same_topic(found: PartitionComparison) -> bool:
    """Whether the copies can be of one log; says why not."""
    clusters = {c.replica.log_dir.cluster_id for c in found.copies.values()} - {None}
    if len(clusters) > 1:
        ids = ", ".join(sorted(map(str, clusters)))
        found.findings.append(say.CLUSTERS_MIXED.at(found.place, partition=found.partition, ids=ids))
        found.reason = "the copies are from different clusters"
        return False
    topics = {c.replica.topic_id for c in found.copies.values()} - {None}
    if len(topics) > 1:
        ids = ", ".join(
            f"{copy.replica.topic_id} on broker {broker_id}"
            for broker_id, copy in found.copies.items()
            if copy.replica.topic_id
        )
        found.findings.append(say.TOPIC_RECREATED.at(found.place, partition=found.partition, ids=ids))
        found.reason = "the copies are of different topics of this name"
        return False
    return True


def _note_problems(found: PartitionComparison, running: Container[int]) -> None:
    for broker_id, log in found.logs.items():
        for problem in dict.fromkeys(log.problems):
            finding = say.COPY_UNREADABLE.at(log.copy.place, broker_id=broker_id, reason=problem)
            found.findings.append(finding)
        for what, name in (("recovery_point", "recovery point"), ("high_watermark", "high watermark")):
            said = log.copy.checkpoint(what)
            if broker_id in running:
                break  # its checkpoints may have been copied after its log
            if said is not None and said > log.next_offset and log.base_offset is not None:
                found.findings.append(
                    say.INCOMPLETE_COPY.at(
                        log.copy.place, broker_id=broker_id, end=log.next_offset, checkpoint=name, said=said
                    )
                )
                break


def _note_missing(found: PartitionComparison, assigned: Sequence[int]) -> None:
    for broker_id in assigned:
        if broker_id not in found.copies:
            finding = say.COPY_MISSING.at(
                replace(found.place, broker_id=broker_id), broker_id=broker_id, partition=found.partition
            )
            found.findings.append(finding)


def _looks_compacted(found: PartitionComparison) -> bool:
    """Kafka's own topics are; else a cleaner's checkpoint or offsets missing inside batches say so."""
    return found.partition.topic in INTERNAL_COMPACTED or any(
        log.has_gaps_inside or log.copy.checkpoint("cleaner") is not None for log in found.logs.values()
    )


def _judge(
    found: PartitionComparison, pairs: Sequence[Pair], logs: Sequence[ReplicaLog], compacted: bool
) -> None:
    ids = list(found.copies)
    contradictions = set()
    holed: set[int] = set()
    for pair in pairs:
        one, other = ids[pair.first], ids[pair.second]
        if pair.contradict:
            contradictions.add((one, other))
        _note_pair(found, pair, one, other)
        if not compacted:
            holed |= _note_holes(found, pair, logs, ids)
    damaged = _note_damage(found, ids)
    found.best = best_source(found.lineages, contradictions)
    _name_best_source(found, damaged | holed)
    _name_verdict(found, bool(contradictions), damaged, bool(holed))


def _note_pair(found: PartitionComparison, pair: Pair, one: int, other: int) -> None:
    lineages = found.lineages
    for start, end in pair.different.found:
        epochs = (_epochs_in(lineages[one], start, end), _epochs_in(lineages[other], start, end))
        found.divergences.append(Divergence((one, other), start, end, epochs))
    for start, end in pair.same_payload.found:
        found.findings.append(say.SAME_PAYLOAD.at(found.place, one=one, other=other, start=start, end=end))
    if pair.other_bytes:
        found.findings.append(
            say.OTHER_BYTES_SAME_RECORDS.at(found.place, one=one, other=other, count=pair.other_bytes)
        )
    first, second = lineages[one], lineages[other]
    start = max(first.local_log_start_offset or 0, second.local_log_start_offset or 0)
    if start > min(first.log_end_offset, second.log_end_offset):
        found.findings.append(say.NO_COMMON_RANGE.at(found.place, one=one, other=other))


def _epochs_in(lineage: Lineage, start: int, end: int) -> tuple[int, ...]:
    inside = [epoch for epoch, first in lineage.epochs if start < first < end]
    at_start = lineage.epoch_at(start)
    return tuple(inside if at_start is None else [at_start, *inside])


def _note_holes(
    found: PartitionComparison, pair: Pair, logs: Sequence[ReplicaLog], ids: Sequence[int]
) -> set[int]:
    """Say what each side lacks that damage does not explain; the brokers that lack anything."""
    sides = ((pair.first, pair.second, pair.lacking[0]), (pair.second, pair.first, pair.lacking[1]))
    holed = set()
    for lacking, holding, ranges in sides:
        for start, end in ranges.found:
            explained = any(
                one.from_offset < end and (one.to_offset is None or one.to_offset > start)
                for one in logs[lacking].damage
            )
            if explained:
                continue
            holed.add(ids[lacking])
            place = replace(logs[lacking].copy.place, base_offset=start, last_offset=end - 1)
            finding = say.HOLE.at(place, broker_id=ids[lacking], other=ids[holding], start=start, end=end)
            found.findings.append(finding)
    return holed


def _note_damage(found: PartitionComparison, ids: Sequence[int]) -> set[int]:
    """Say which copies are damaged where, and which others hold the range; the brokers whose copies are."""
    damaged = set()
    for broker_id in ids:
        log = found.logs[broker_id]
        for one in log.damage:
            damaged.add(broker_id)
            end = one.to_offset if one.to_offset is not None else one.from_offset
            whole = [
                b
                for b, other in found.logs.items()
                if b != broker_id and other.next_offset >= end and not other.damage
            ]
            others = f"whole on broker {', '.join(map(str, whole))}" if whole else "no other copy holds them"
            file = "/".join(filter(None, (log.copy.place.file, one.file.name)))
            place = replace(
                log.copy.place,
                file=file,
                position=one.position,
                size_in_bytes=one.size_in_bytes,
                base_offset=one.from_offset,
                last_offset=end - 1 if end > one.from_offset else None,
            )
            found.findings.append(
                say.DAMAGED_COPY.at(place, broker_id=broker_id, start=one.from_offset, end=end, others=others)
            )
    return damaged


def _name_best_source(found: PartitionComparison, flawed: set[int]) -> None:
    """The longest copy without damage or holes of the branch to take; None where a person must choose."""
    best = found.best
    if best is None or best.choice is Choice.OPERATOR_MUST_CHOOSE:
        return
    branch = next(b for b in best.branches if best.current_lineage in b.replicas)
    lineages = found.lineages
    found.best_source = min(
        branch.replicas,
        key=lambda b: (b in flawed, -lineages[b].log_end_offset, lineages[b].log_start_offset, b),
    )


def _name_verdict(found: PartitionComparison, diverged: bool, damaged: set[int], has_holes: bool) -> None:
    ends = {b: lineage.log_end_offset for b, lineage in found.lineages.items()}
    for branch in found.best.branches if found.best else ():
        found.behind += tuple(b for b in branch.replicas if ends[b] < branch.log_end_offset)
    unreadable = any(log.problems for log in found.logs.values())
    incomplete = {f.place.broker_id for f in found.findings if f.code == say.INCOMPLETE_COPY.code}
    if diverged:
        found.verdict, found.reason = "diverged", "records differ at the same offsets"
    elif len(found.copies) < 2:
        found.reason = "there is one copy only; another broker's would settle it"
    elif damaged:
        found.verdict, found.reason = "damaged", "a batch of one copy is damaged"
    elif has_holes:
        found.verdict, found.reason = "hole", "batches are missing in the middle of a log"
    elif any(f.code == say.NO_COMMON_RANGE.code for f in found.findings):
        found.reason = "no offset is in all copies; older copies or remote segments would settle it"
    elif unreadable or incomplete:
        found.reason = "a copy is not whole; a complete one would settle it"
    elif found.behind:
        found.verdict, found.reason = "behind", "every shorter copy is the front of the longest"
    else:
        found.verdict, found.reason = "equal", "the same batches, byte for byte, on the shared range"
