"""Rows about leader epochs of replicas: as recorded, as rebuilt from batches, and how a broker would use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from kctl.copies.lineage import Lineage, Relation, compare_lineages
from kctl.copies.replica_log import ReplicaLog
from kctl.evidence.model import FoundEvidence
from kctl.evidence.replica_copies import Copy
from kctl.judging.divergence import judge_divergence
from kctl.judging.judgement import Judgement
from kctl.model import Row, TopicPartition
from kctl.replication.epochs import EpochEndOffset, end_offset_for
from kctl.replication.rules import ReplicationRules
from kctl.replication.truncation import (
    OUT_OF_RANGE,
    Algorithm,
    FollowerTruncation,
    ReplicaState,
    TruncationRound,
    after_out_of_range,
    out_of_range,
    truncate,
)
from kctl.rows.replica import DIVERGENCE, END_OFFSET, EPOCH_DIFFERENCE, LINEAGE, TRUNCATION, VERDICT

VERDICTS = {
    Relation.EQUAL: "equal",
    Relation.FIRST_BEHIND: "behind",
    Relation.SECOND_BEHIND: "behind",
    Relation.DIVERGED: "diverged",
    Relation.NO_COMMON_RANGE: "unknown",
}


def read_log(copy: Copy) -> tuple[ReplicaLog, Lineage]:
    """A copy's log after reading all of it, and its lineage."""
    log = ReplicaLog(copy)
    for _ in log.batches():
        pass
    return log, log.lineage()


def _whose(copy: Copy) -> Row:
    return {
        "topic": copy.partition.topic,
        "partition": copy.partition.partition,
        "broker_id": copy.place.broker_id,
        "moment": copy.moment,
    }


def lineage_row(log: ReplicaLog, lineage: Lineage) -> Row:
    copy = log.copy
    recorded = copy.recorded_epochs
    return LINEAGE(
        **_whose(copy),
        epochs=[list(entry) for entry in lineage.epochs],
        log_start_offset=lineage.log_start_offset,
        log_end_offset=lineage.log_end_offset,
        high_watermark=lineage.high_watermark,
        recorded=None if recorded is None else [list(entry) for entry in recorded],
        rebuilt=[list(entry) for entry in log.rebuilt],
        local_log_start_offset=log.local_log_start_offset,
        topic_id=copy.replica.topic_id,
        folder=copy.place.file or "",
        evidence=copy.place.evidence,
    )


def show_rows(copies: Iterable[Copy]) -> Iterator[Row]:
    """Each replica's lineage, and the epochs on which its checkpoint and its batches disagree."""
    for copy in copies:
        log, lineage = read_log(copy)
        yield lineage_row(log, lineage)
        if copy.recorded_epochs is not None:
            yield from _differences(copy, log)


def _differences(copy: Copy, log: ReplicaLog) -> Iterator[Row]:
    recorded, rebuilt = dict(copy.recorded_epochs or ()), dict(log.rebuilt)
    for epoch in sorted(recorded.keys() | rebuilt.keys()):
        recorded_start, rebuilt_start = recorded.get(epoch), rebuilt.get(epoch)
        if recorded_start == rebuilt_start:
            continue
        yield EPOCH_DIFFERENCE(
            **_whose(copy),
            epoch=epoch,
            recorded_start=recorded_start,
            rebuilt_start=rebuilt_start,
            meaning=_meaning(recorded_start, rebuilt_start, log),
        )


def _meaning(recorded_start: int | None, rebuilt_start: int | None, log: ReplicaLog) -> str:
    if recorded_start is None:
        return "the checkpoint lacks an epoch that batches have"
    if rebuilt_start is None:
        if recorded_start >= log.next_offset:
            return "nothing was written in it yet, or the log was cut since"
        return "no batch of it is here: an election that wrote nothing, retention, compaction or a tier"
    if recorded_start < rebuilt_start:
        return "its first batches are gone: retention or compaction"
    return "a batch of this epoch begins before the recorded start"


def end_offset_rows(copies: Iterable[Copy], epoch: int, rules: ReplicationRules) -> Iterator[Row]:
    """What each replica, as a leader of this version, would answer to OffsetsForLeaderEpoch."""
    for copy in copies:
        _, lineage = read_log(copy)
        log = lineage.state()
        answer = end_offset_for(log.epochs, log.log_end_offset, epoch, rules.answers)
        yield END_OFFSET(
            **_whose(copy),
            requested_epoch=epoch,
            kafka_version=rules.kafka_version,
            leader_epoch=answer.leader_epoch,
            end_offset=answer.end_offset,
        )


def answer_difference(row: Row, leader_epoch: int, end_offset: int) -> str | None:
    """How a running leader's answer differs from an end-offset row that was made from its batches; None if equal.

    A copy ends at the high watermark of when it was made; the running leader answers with its log end for the last epoch.
    """
    row_epoch, row_end = row["leader_epoch"], row["end_offset"]
    assert isinstance(row_end, int)
    if (leader_epoch, end_offset) == (row_epoch, row_end):
        return None
    if leader_epoch == row_epoch and end_offset > row_end:
        return f"its log goes on to {end_offset}: the copy ends at {row_end}, the high watermark when it was made"
    if row_epoch == -1 or row_end == -1:
        return "no batch of this epoch is there, and the leader remembers the epoch"
    if leader_epoch == -1:
        return f"it does not know the epoch, which its batches end at {row_end}"
    return f"it says epoch {leader_epoch} ends at {end_offset}, its batches say epoch {row_epoch} ends at {row_end}"


def truncation_rows(
    followers: Iterable[Copy], leaders: Iterable[Copy], rules: ReplicationRules
) -> Iterator[Row]:
    """To which offset each follower would truncate under the leader's copy of the same partition."""
    leading: Mapping[TopicPartition, Copy] = {copy.partition: copy for copy in leaders}
    for copy in followers:
        leader = leading.get(copy.partition)
        if leader is None or leader.folder == copy.folder:
            continue
        follower, leading_log = read_log(copy)[1].state(), read_log(leader)[1].state()
        truncation = _truncation(follower, leading_log, rules)
        cut = truncation.follower.log_end_offset
        offsets_held = follower.log_end_offset - follower.log_start_offset
        yield TRUNCATION(
            **_whose(copy),
            leader=leader.place.broker_id,
            kafka_version=rules.kafka_version,
            algorithm=str(rules.algorithm),
            truncate_to=cut,
            offsets_dropped=min(max(0, follower.log_end_offset - cut), offsets_held)
            if cut <= follower.log_end_offset
            else offsets_held,
            below_own_high_watermark=cut < follower.high_watermark,
            rounds=[_round(round_) for round_ in truncation.rounds],
        )


def _truncation(follower: ReplicaState, leader: ReplicaState, rules: ReplicationRules) -> FollowerTruncation:
    """The truncation at the role change, and that of the first fetch if it sends no epochs."""
    truncation = truncate(follower, leader, rules.algorithm, rules.answers)
    if rules.algorithm in (Algorithm.FETCH, Algorithm.KIP_279):
        return truncation
    end = truncation.follower.log_end_offset
    if leader.log_start_offset <= end <= leader.log_end_offset:
        return truncation
    step = out_of_range(end, leader.log_start_offset, leader.log_end_offset)
    round_ = TruncationRound(None, end, OUT_OF_RANGE, step.truncate_to, mode=step.action)
    return FollowerTruncation((*truncation.rounds, round_), after_out_of_range(truncation.follower, step))


def _round(round_: TruncationRound) -> Row:
    answer = round_.answer._asdict() if isinstance(round_.answer, EpochEndOffset) else round_.answer
    reason = None if round_.reason is None else str(round_.reason)
    return {**round_._asdict(), "answer": answer, "reason": reason}


def compare_rows(
    copies: Iterable[Copy], assigned: Mapping[TopicPartition, Sequence[int]], evidence: FoundEvidence
) -> Iterator[Row | Judgement]:
    """Lineages of each partition, a divergence row for each pair that diverges by epochs, and a judgement."""
    by_partition: dict[TopicPartition, list[Copy]] = {}
    for copy in copies:
        by_partition.setdefault(copy.partition, []).append(copy)
    for partition, of_partition in by_partition.items():
        logs = [(copy, *read_log(copy)) for copy in of_partition]
        for _, log, lineage in logs:
            yield lineage_row(log, lineage)
        worst: Row = {"verdict": "unknown", "reason": ""}
        for (first_copy, _, first), (second_copy, _, second) in combinations(logs, 2):
            for row in _pair_rows(partition, first_copy, first, second_copy, second):
                yield row
                if row["kind"] == VERDICT.kind and _badness(row) > _badness(worst):
                    worst = row
        yield judge_divergence(
            partition,
            None,
            {copy.broker_id for copy in of_partition},
            assigned.get(partition, ()),
            evidence.replica_brokers(),
            str(worst["verdict"]),
            f"by leader epochs alone: {worst['reason']}",
            [(copy.broker_id, "; ".join(log.problems)) for copy, log, _ in logs if log.problems],
            unopened=evidence.unopened_for(partition),
            agreement="have the same leader epochs at every shared offset; their records were not compared",
        )


def _badness(row: Row) -> int:
    """The rank of a verdict on a pair; the worst one counts for the partition; -1 for none."""
    if not row["reason"]:
        return -1
    return ("equal", "behind", "unknown", "diverged").index(str(row["verdict"]))


def _pair_rows(
    partition: TopicPartition, first_copy: Copy, first: Lineage, second_copy: Copy, second: Lineage
) -> Iterator[Row]:
    compared = compare_lineages(first, second)
    moment = first_copy.moment if first_copy.moment == second_copy.moment else None
    ids = [first_copy.broker_id, second_copy.broker_id]
    moments = None if first_copy.moment == second_copy.moment else [first_copy.moment, second_copy.moment]
    whose: Row = {
        "topic": partition.topic,
        "partition": partition.partition,
        "moment": moment,
        "moments": moments,
    }
    point = compared.first_divergent_offset
    if point is not None and compared.common_range is not None:
        end = compared.common_range.to_offset
        assert end is not None
        for start, until in _different(first, second, point, end):
            yield DIVERGENCE(
                **whose,
                broker_ids=ids,
                from_offset=start,
                to_offset=until,
                epochs=[[first.epoch_at(start)], [second.epoch_at(start)]],
            )
    yield VERDICT(
        **whose,
        verdict=VERDICTS[compared.relation],
        best_source=None,
        reason=_reason(compared.relation, point),
        broker_ids=ids,
        branches=[],
        behind=[
            ids[0] if compared.relation is Relation.FIRST_BEHIND else ids[1]
        ] if VERDICTS[compared.relation] == "behind" else [],
        branch_point=point,
    )  # fmt: skip


def _different(first: Lineage, second: Lineage, point: int, end: int) -> Iterator[tuple[int, int]]:
    """The ranges in which two lineages have different epochs."""
    start: int | None = point
    for offset in sorted(
        {start_offset for _, start_offset in (*first.epochs, *second.epochs) if point < start_offset < end}
    ):
        first_epoch, second_epoch = first.epoch_at(offset), second.epoch_at(offset)
        if start is None and None not in (first_epoch, second_epoch) and first_epoch != second_epoch:
            start = offset
        elif start is not None and first_epoch == second_epoch:
            yield start, offset
            start = None
    if start is not None:
        yield start, end


def _reason(relation: Relation, point: int | None) -> str:
    if relation is Relation.DIVERGED:
        return f"the lineages part at offset {point}"
    if relation is Relation.NO_COMMON_RANGE:
        return "no offset is in both logs"
    return "the same epochs on the shared range; bytes were not compared"
