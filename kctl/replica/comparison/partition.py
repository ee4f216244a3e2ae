"""A partition's copies of one moment: lineages, differences, verdict, and the copy to trust."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import combinations

from formats.values import Struct, field, replace
from kctl.copies.lineage import Lineage
from kctl.copies.moments import INTERNAL_COMPACTED
from kctl.copies.replica_log import ReplicaLog
from kctl.evidence.replica_copies import Copy
from kctl.findings import Finding, Place, Severity
from kctl.findings import replica as codes
from kctl.model import TopicPartition
from kctl.replica.comparison.best_source import BestSource, Choice, best_source
from kctl.replica.comparison.pairs import Pair, compare_pairs
from kctl.scan.pool import Jobs

DIFFERS = "records differ at the same offsets"
SENT_AGAIN = "the same records lie under different leader epochs"
CONTRADICTS = "one copy goes on in an older epoch behind a newer epoch of another: no log holds both"


class Divergence(Struct, frozen=True):
    """Offsets at which two brokers hold different records, and the epochs of each side there."""

    broker_ids: tuple[int, int]
    from_offset: int
    to_offset: int
    epochs: tuple[tuple[int, ...], tuple[int, ...]]


class PartitionComparison(Struct):
    """The comparison of one partition's copies at one moment."""

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
    running: Container[int] = ()

    @property
    def place(self) -> Place:
        return Place(topic=self.partition.topic, partition=self.partition.partition, moment=self.moment)

    def compare(
        self, assigned: Sequence[int], is_compacted: bool | None, running: Container[int], jobs: Jobs
    ) -> None:
        """Read the copies side by side and judge them; see `compare_partition`."""
        self.running = running
        comparable = self._same_cluster()
        logs = [ReplicaLog(copy) for copy in self.copies.values()]
        indexes = list(combinations(range(len(logs)), 2)) if comparable else []
        pairs = compare_pairs(logs, indexes, jobs)
        self.logs = dict(zip(self.copies, logs, strict=True))
        self.lineages = {broker_id: log.lineage() for broker_id, log in self.logs.items()}
        comparable = comparable and self._same_topic(pairs)
        self._note_problems()
        self._note_missing(assigned)
        if comparable:
            compacted = self._looks_compacted() if is_compacted is None else is_compacted
            self._judge(pairs, logs, compacted)

    @property
    def _last(self) -> Copy:
        """The copy of the last broker, used as the place of findings about all copies."""
        return next(reversed(self.copies.values()))

    def _same_cluster(self) -> bool:
        """Whether the copies can be of one cluster; if not, adds a finding."""
        clusters = {c.replica.log_dir.cluster_id for c in self.copies.values()} - {None}
        if len(clusters) > 1:
            ids = ", ".join(sorted(map(str, clusters)))
            self.findings.append(codes.CLUSTERS_MIXED.at(self._last.place, partition=self.partition, ids=ids))
            self.reason = "the copies are from different clusters"
            return False
        return True

    def _same_topic(self, pairs: Sequence[Pair]) -> bool:
        """Whether the copies can be of one log, by topic id, else by what they hold; adds a finding of different ids."""
        topics = {c.replica.topic_id for c in self.copies.values()} - {None}
        if len(topics) > 1:
            ids = ", ".join(
                f"{copy.replica.topic_id} on broker {broker_id}"
                for broker_id, copy in self.copies.items()
                if copy.replica.topic_id
            )
            if self._hold_the_same(pairs):
                end = min(lineage.log_end_offset for lineage in self.lineages.values())
                self.findings.append(
                    codes.SAME_UNDER_TWO_IDS.at(self._last.place, partition=self.partition, ids=ids, end=end)
                )
                return True
            self.findings.append(
                codes.TOPIC_RECREATED.at(self._last.place, partition=self.partition, ids=ids)
            )
            self.reason = "the copies are of different topics of this name"
            return False
        return True

    def _hold_the_same(self, pairs: Sequence[Pair]) -> bool:
        """Whether every two copies share offsets, and hold the same batches at all of them."""
        lineages = list(self.lineages.values())
        return all(
            not pair.contradict
            and not any(ranges.spans for ranges in (*pair.lacking, pair.unmatched))
            and max(lineages[i].local_log_start_offset or 0 for i in (pair.first, pair.second))
            < min(lineages[i].log_end_offset for i in (pair.first, pair.second))
            for pair in pairs
        )

    def _note_problems(self) -> None:
        for broker_id, log in self.logs.items():
            for problem in dict.fromkeys(log.problems):
                finding = codes.COPY_UNREADABLE.at(log.copy.place, broker_id=broker_id, reason=problem)
                self.findings.append(finding)
            for what, name in (("recovery_point", "recovery point"), ("high_watermark", "high watermark")):
                checkpointed = log.copy.checkpoint(what)
                if broker_id in self.running:
                    break  # its checkpoints may have been copied after its log
                if (checkpointed or 0) > log.next_offset and log.base_offset is not None:
                    place, end = log.copy.place, log.next_offset
                    finding = codes.INCOMPLETE_COPY.at(
                        place, broker_id=broker_id, end=end, checkpoint=name, said=checkpointed or 0
                    )
                    self.findings.append(finding)
                    break

    def _note_missing(self, assigned: Sequence[int]) -> None:
        if assigned and not self.copies.keys() & set(assigned):
            return  # the copies lie under other broker ids: a finding about the evidence
        for broker_id in assigned:
            if broker_id not in self.copies:
                finding = codes.COPY_MISSING.at(
                    replace(self.place, broker_id=broker_id), broker_id=broker_id, partition=self.partition
                )
                self.findings.append(finding)

    def _looks_compacted(self) -> bool:
        """Whether the topic is compacted: Kafka's own topics by name, others by a cleaner checkpoint or gaps inside batches."""
        is_internal = self.partition.topic in INTERNAL_COMPACTED
        return is_internal or any(log.looks_compacted for log in self.logs.values())

    def _judge(self, pairs: Sequence[Pair], logs: Sequence[ReplicaLog], compacted: bool) -> None:
        ids = list(self.copies)
        contradictions = set()
        holed: set[int] = set()
        for pair in pairs:
            first, second = ids[pair.first], ids[pair.second]
            if pair.contradict or self._note_epochs(first, second):
                contradictions.add((first, second))
            self._note_pair(pair, first, second)
            if not compacted:
                holed |= self._note_holes(pair, logs, ids)
        damaged = self._note_damage(ids)
        self.best = best_source(self.lineages, contradictions)
        self._name_best_source(damaged | holed)
        self._name_verdict(bool(contradictions), damaged, bool(holed))

    def _note_pair(self, pair: Pair, first: int, second: int) -> None:
        lineages = self.lineages
        for start, end in pair.different.spans:
            epochs = (_epochs_in(lineages[first], start, end), _epochs_in(lineages[second], start, end))
            self.divergences.append(Divergence((first, second), start, end, epochs))
        for start, end in pair.same_payload.spans:
            place = replace(self.copies[first].place, base_offset=start, last_offset=end - 1)
            self.findings.append(codes.SAME_PAYLOAD.at(place, one=first, other=second, start=start, end=end))
        if pair.other_bytes:
            self.findings.append(
                codes.OTHER_BYTES_SAME_RECORDS.at(self.place, one=first, other=second, count=pair.other_bytes)
            )
        starts = {broker: lineages[broker].local_log_start_offset or 0 for broker in (first, second)}
        later = max(starts, key=lambda broker_id: starts[broker_id])
        earlier = second if later == first else first
        end = lineages[earlier].log_end_offset
        if starts[later] > end:
            place = replace(self.copies[later].place, base_offset=starts[later])
            finding = codes.NO_COMMON_RANGE.at(
                place, one=first, other=second, earlier=earlier, end=end, later=later, start=starts[later]
            )
            if (
                earlier in self.running
            ):  # its log went on, until retention took what the other copy begins behind
                finding = replace(finding, severity=Severity.INFO)
            self.findings.append(finding)

    def _note_epochs(self, first: int, second: int) -> bool:
        """Add a finding where one copy has a batch of an older epoch behind one of a newer epoch of the other.

        Epochs only grow along a log. A cleaner may have taken the records at the offsets that both copies had.
        """
        for older, newer in ((first, second), (second, first)):
            log, entries = self.logs[older], self.logs[older].rebuilt
            for index, (epoch, start) in enumerate(entries):
                last = log.next_offset - 1 if index + 1 == len(entries) else start
                for newer_epoch, begins in self.logs[newer].rebuilt:
                    if newer_epoch > epoch and begins <= last:
                        self.findings.append(
                            codes.EPOCHS_CONTRADICT.at(
                                replace(self.copies[older].place, base_offset=begins, last_offset=last),
                                one=first,
                                other=second,
                                older=older,
                                older_epoch=epoch,
                                last=last,
                                newer=newer,
                                newer_epoch=newer_epoch,
                                first=begins,
                            )
                        )
                        return True
        return False

    def _note_holes(self, pair: Pair, logs: Sequence[ReplicaLog], ids: Sequence[int]) -> set[int]:
        """Add a finding for each gap that damage does not explain; return the brokers with gaps."""
        sides = ((pair.first, pair.second, pair.lacking[0]), (pair.second, pair.first, pair.lacking[1]))
        holed = set()
        for lacking, holding, ranges in sides:
            for start, end in ranges.spans:
                explained = any(
                    damaged_range.from_offset < end
                    and (damaged_range.to_offset is None or damaged_range.to_offset > start)
                    for damaged_range in logs[lacking].damage
                )
                if explained:
                    continue
                holed.add(ids[lacking])
                place = replace(logs[lacking].copy.place, base_offset=start, last_offset=end - 1)
                finding = codes.HOLE.at(
                    place, broker_id=ids[lacking], other=ids[holding], start=start, end=end
                )
                self.findings.append(finding)
        return holed

    def _note_damage(self, ids: Sequence[int]) -> set[int]:
        """Add a finding for each damaged range and the copies that are whole there; return the brokers with damage."""
        damaged = set()
        for broker_id in ids:
            log = self.logs[broker_id]
            for damaged_range in log.damage:
                damaged.add(broker_id)
                end = (
                    damaged_range.to_offset
                    if damaged_range.to_offset is not None
                    else damaged_range.from_offset
                )
                whole = [
                    b
                    for b, other in self.logs.items()
                    if b != broker_id and other.next_offset >= end and not other.damage
                ]
                others = (
                    f"whole on broker {', '.join(map(str, whole))}" if whole else "no other copy holds them"
                )
                self.findings.append(damaged_range.finding(log.copy, others))
        return damaged

    def _name_best_source(self, flawed: set[int]) -> None:
        """Choose the longest copy of the current branch without damage or gaps; none if an operator must choose."""
        best = self.best
        if best is None or best.choice is Choice.OPERATOR_MUST_CHOOSE:
            return
        branch = next(b for b in best.branches if best.current_lineage in b.replicas)
        lineages = self.lineages
        self.best_source = min(
            branch.replicas,
            key=lambda b: (b in flawed, -lineages[b].log_end_offset, lineages[b].log_start_offset, b),
        )

    @property
    def recover_from(self) -> list[int]:
        """Brokers whose copies hold records below their own high watermark that the newest branch lacks."""
        if self.best is None:
            return []
        current = next(b.replicas for b in self.best.branches if self.best.current_lineage in b.replicas)
        broker_ids = set()
        for divergence in self.divergences:
            for broker_id, other in (divergence.broker_ids, divergence.broker_ids[::-1]):
                is_aside = broker_id not in current and other in current
                if is_aside and divergence.from_offset < self.lineages[broker_id].committed_end:
                    broker_ids.add(broker_id)
        return sorted(broker_ids)

    @property
    def incomplete(self) -> list[int]:
        """Brokers whose copies end before their own checkpoints."""
        broker_ids = {f.place.broker_id for f in self.findings if f.code == codes.INCOMPLETE_COPY.code}
        return sorted(broker_id for broker_id in broker_ids if broker_id is not None)

    def _name_verdict(self, diverged: bool, damaged: set[int], has_holes: bool) -> None:
        ends = {b: lineage.log_end_offset for b, lineage in self.lineages.items()}
        for branch in self.best.branches if self.best else ():
            self.behind += tuple(b for b in branch.replicas if ends[b] < branch.log_end_offset)
        unreadable = any(log.problems for log in self.logs.values())
        if diverged:
            said = {f.code for f in self.findings}
            self.verdict, self.reason = "diverged", DIFFERS
            if not self.divergences and codes.EPOCHS_CONTRADICT.code in said:
                self.reason = CONTRADICTS
            elif not self.divergences and codes.SAME_PAYLOAD.code in said:
                self.reason = SENT_AGAIN
        elif len(self.copies) < 2:
            self.reason = "there is one copy only; another broker's would settle it"
        elif damaged:
            self.verdict, self.reason = "damaged", "a batch of one copy is damaged"
        elif has_holes:
            self.verdict, self.reason = "hole", "batches are missing in the middle of a log"
        elif any(f.code == codes.NO_COMMON_RANGE.code for f in self.findings):
            self.reason = "no offset is in all copies; older copies or remote segments would settle it"
        elif unreadable or self.incomplete:
            self.reason = "a copy is not whole; a complete one would settle it"
        elif self.behind:
            self.verdict, self.reason = "behind", "shorter copies agree with the longest as far as they go"
        else:
            self.verdict, self.reason = ("equal", "the same batches, byte for byte, on the shared range")


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
    """The comparison of these copies; if `is_compacted` is None, the logs decide.

    `assigned` are the replicas in the znodes, `running` the brokers that ran while they were copied. `jobs` processes read large logs.
    """
    comparison = PartitionComparison(partition, moment, dict(sorted(copies.items())))
    comparison.compare(assigned, is_compacted, running, jobs)
    return comparison


def _epochs_in(lineage: Lineage, start: int, end: int) -> tuple[int, ...]:
    inside = [epoch for epoch, first in lineage.epochs if start < first < end]
    at_start = lineage.epoch_at(start)
    return tuple(inside if at_start is None else [at_start, *inside])
