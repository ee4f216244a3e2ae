"""Leaderships as the metadata log of a KRaft cluster has them, in the place of what brokers print.

A record of the log is the decision itself: leader, epoch, ISR, and whether the election was unclean. Lines of logs stay
where they say more: who asked for it, and where to read on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType

from kctl.broker_logs.history.leaderships import IsrChange, Leadership, join_ends
from kctl.internal_topics.decisions import Decided, Decision
from kctl.model import TopicPartition

LIFE = attrgetter("cluster", "incarnation")


def how_it_began(decided: str, logged: str) -> str:
    """How a leadership began: by its decision, and by the logs where that does not tell."""
    return logged if decided == "unknown" else decided


def settle(
    leaderships: dict[TopicPartition, list[Leadership]],
    decided: Decided,
    is_wanted: Callable[[TopicPartition], bool] = lambda partition: True,
    since_ms: int | None = None,
    until_ms: int | None = None,
    ahead: Mapping[int, int] = MappingProxyType({}),
) -> dict[TopicPartition, list[Leadership]]:
    """The leaderships with every decision in them, those of a topic before those of its successor of the same name.

    `since_ms` and `until_ms` leave out what began or ended outside. `ahead` are clocks that are off, see `Merge.ahead`.
    """
    decided.correct(ahead)
    by_partition = dict(leaderships)
    ordered = sorted(
        decided.decisions, key=lambda decision: decision.topic_partition
    )  # stable: in the order of the log
    for partition, group in groupby(ordered, key=lambda decision: decision.topic_partition):
        if not is_wanted(partition):
            continue
        lives = [list(life) for _, life in groupby(leaderships.get(partition, ()), LIFE)]
        for topic_id, decisions in _by_topic(group):
            decided_ones = _made(partition, decisions, decided.removed.get(topic_id), ahead)
            decided_ones = [
                leadership
                for leadership in decided_ones
                if (since_ms is None or leadership.to_ms is None or leadership.to_ms >= since_ms)
                and (until_ms is None or leadership.from_ms <= until_ms)
            ]
            if not decided_ones:
                continue
            place = _place(lives, topic_id, decided_ones)
            logged = lives.pop(place) if place is not None else []
            lives.insert(len(lives) if place is None else place, _merged(logged, decided_ones))
        lives.sort(key=lambda life: life[0].from_ms)
        for incarnation, life in enumerate(lives, 1):
            for leadership in life:
                leadership.incarnation = incarnation
        by_partition[partition] = [leadership for life in lives for leadership in life]
    return {
        partition: by_partition[partition] for partition in sorted(by_partition) if by_partition[partition]
    }


def _by_topic(decisions: Iterable[Decision]) -> Iterator[tuple[str, list[Decision]]]:
    by_topic: dict[str, list[Decision]] = {}
    for decision in decisions:
        by_topic.setdefault(decision.topic_id, []).append(decision)
    yield from by_topic.items()


def _place(
    lives: Sequence[Sequence[Leadership]], topic_id: str, from_decisions: Sequence[Leadership]
) -> int | None:
    """Which of the lives in the logs is that of a topic: the one of its id, else one of the same time."""
    for number, life in enumerate(lives):
        if any(leadership.topic_id == topic_id for leadership in life):
            return number
    for number, life in enumerate(lives):
        is_other = any(leadership.topic_id is not None for leadership in life)
        ended = life[-1].to_ms
        if (
            not is_other
            and (from_decisions[-1].to_ms is None or life[0].from_ms <= from_decisions[-1].to_ms)
            and (ended is None or ended >= from_decisions[0].from_ms)
        ):
            return number
    return None


def _made(
    partition: TopicPartition, decisions: Sequence[Decision], removed_ms: int | None, ahead: Mapping[int, int]
) -> list[Leadership]:
    leaderships: list[Leadership] = []
    for decision in decisions:
        if leaderships and leaderships[-1].leader_epoch == decision.leader_epoch:
            if decision.isr != leaderships[-1].last_isr:
                leaderships[-1].isr_changes.append(
                    IsrChange(
                        decision.time_ms,
                        decision.isr,
                        decision.partition_epoch,
                        decision.file,
                        None,
                        decision.offset,
                    )
                )
            leaderships[-1].last_seen_ms = decision.time_ms
            continue
        if leaderships:
            leaderships[-1].to_ms = decision.time_ms
        leaderships.append(
            Leadership(
                partition, decision.leader_epoch, decision.leader, isr=decision.isr, from_ms=decision.time_ms,
                last_seen_ms=decision.time_ms, how=decision.how, cause=decision.cause, replicas=decision.replicas,
                proofs=[decision.proof()], began_before=decision.how == "unknown" and not leaderships,
                topic_id=decision.topic_id, is_decided=decision.how != "unknown",
                clock_offset_ms=None if decision.writer is None else ahead.get(decision.writer),
            )
        )  # fmt: skip
    if leaderships:
        leaderships[-1].to_ms = removed_ms
    return leaderships


def _merged(logged: Sequence[Leadership], from_decisions: Sequence[Leadership]) -> list[Leadership]:
    """All leaderships of a topic; those that were decided with what logs add to them."""
    by_epoch = {leadership.leader_epoch: leadership for leadership in logged}
    for leadership in from_decisions:
        in_logs = by_epoch.get(leadership.leader_epoch)
        by_epoch[leadership.leader_epoch] = leadership
        if in_logs is None or (in_logs.leader is None and not in_logs.proofs):
            continue
        if not leadership.is_decided:
            leadership.how, leadership.cause = in_logs.how, in_logs.cause
            leadership.strength, leadership.began_before = in_logs.strength, in_logs.began_before
            leadership.from_ms = min(in_logs.from_ms, leadership.from_ms)
            leadership.clock_offset_ms = leadership.clock_offset_ms or in_logs.clock_offset_ms
        elif leadership.how == in_logs.how:
            leadership.cause = leadership.cause or in_logs.cause
        leadership.cluster = in_logs.cluster
        leadership.proofs = [*leadership.proofs, *in_logs.proofs]
        printed = {(change.version, change.isr): change for change in in_logs.isr_changes}
        leadership.isr_changes = [
            change._replace(file=line.file, line=line.line)
            if (line := printed.get((change.version, change.isr)))
            else change
            for change in leadership.isr_changes
        ]
    ordered = [by_epoch[epoch] for epoch in sorted(by_epoch)]
    join_ends(ordered)
    return ordered
