"""Leaderships as the metadata log of a KRaft cluster has them, in the place of what brokers print.

A record of the log is the decision itself: leader, epoch, ISR, and whether the election was unclean. Lines of logs stay
where they say more: who asked for it, and where to read on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from kctl.broker_logs.history.leaderships import IsrChange, Leadership
from kctl.internal_topics.decisions import Decided, Decision
from kctl.model import TopicPartition

# What a record tells for sure; else the words of logs are nearer to the cause.
SURE = ("unclean", "creation", "none")


def how_it_began(decided: str, said: str) -> str:
    """How a leadership began, by its decision and by the logs: these may name a cause, and decide nothing."""
    return decided if decided in SURE or said in (*SURE, "unknown") else said


def settle(
    leaderships: dict[TopicPartition, list[Leadership]],
    decided: Decided,
    wanted: Callable[[TopicPartition], bool] = lambda partition: True,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> dict[TopicPartition, list[Leadership]]:
    """The leaderships with every decision in them, those of a topic before those of its successor of the same name.

    `since_ms` and `until_ms` leave out what began or ended outside.
    """
    found = dict(leaderships)
    ordered = sorted(
        decided.decisions, key=lambda one: one.topic_partition
    )  # stable: in the order of the log
    for partition, group in groupby(ordered, key=lambda one: one.topic_partition):
        if not wanted(partition):
            continue
        lives = list(_lives(leaderships.get(partition, ())))
        for topic_id, decisions in _by_topic(group):
            made = _made(partition, decisions, decided.removed.get(topic_id))
            made = [
                one
                for one in made
                if (since_ms is None or one.to_ms is None or one.to_ms >= since_ms)
                and (until_ms is None or one.from_ms <= until_ms)
            ]
            if not made:
                continue
            place = _place(lives, topic_id, made)
            logged = lives.pop(place) if place is not None else []
            lives.insert(len(lives) if place is None else place, _merged(logged, made))
        lives.sort(key=lambda life: life[0].from_ms)
        found[partition] = [one for life in lives for one in life]
    return {partition: found[partition] for partition in sorted(found) if found[partition]}


def _lives(leaderships: Sequence[Leadership]) -> Iterator[list[Leadership]]:
    """The leaderships of each topic of the name."""
    life: list[Leadership] = []
    for one in leaderships:
        if life and one.leader_epoch <= life[-1].leader_epoch:
            yield life
            life = []
        life.append(one)
    if life:
        yield life


def _by_topic(decisions: Iterable[Decision]) -> Iterator[tuple[str, list[Decision]]]:
    found: dict[str, list[Decision]] = {}
    for one in decisions:
        found.setdefault(one.topic_id, []).append(one)
    yield from found.items()


def _place(lives: Sequence[Sequence[Leadership]], topic_id: str, made: Sequence[Leadership]) -> int | None:
    """Which of the lives in the logs is that of a topic: the one of its id, else one of the same time."""
    for number, life in enumerate(lives):
        if any(one.topic_id == topic_id for one in life):
            return number
    for number, life in enumerate(lives):
        is_other = any(one.topic_id is not None for one in life)
        ended = life[-1].to_ms
        if (
            not is_other
            and (made[-1].to_ms is None or life[0].from_ms <= made[-1].to_ms)
            and (ended is None or ended >= made[0].from_ms)
        ):
            return number
    return None


def _made(
    partition: TopicPartition, decisions: Sequence[Decision], removed_ms: int | None
) -> list[Leadership]:
    made: list[Leadership] = []
    for decision in decisions:
        if made and made[-1].leader_epoch == decision.leader_epoch:
            if decision.isr != made[-1].last_isr:
                made[-1].isr_changes.append(
                    IsrChange(
                        decision.time_ms,
                        decision.isr,
                        decision.partition_epoch,
                        decision.file,
                        None,
                        decision.offset,
                    )
                )
            made[-1].last_seen_ms = decision.time_ms
            continue
        if made:
            made[-1].to_ms = decision.time_ms
        made.append(
            Leadership(
                partition, decision.leader_epoch, decision.leader, isr=decision.isr, from_ms=decision.time_ms,
                last_seen_ms=decision.time_ms, how=decision.how, cause=decision.cause, replicas=decision.replicas,
                proofs=[decision.proof()], began_before=decision.how == "unknown" and not made,
                topic_id=decision.topic_id, is_decided=decision.how != "unknown",
            )
        )  # fmt: skip
    if made:
        made[-1].to_ms = removed_ms
    return made


def _merged(logged: Sequence[Leadership], made: Sequence[Leadership]) -> list[Leadership]:
    """All leaderships of a topic; those that were decided with what logs add to them."""
    found = {one.leader_epoch: one for one in logged}
    for one in made:
        said = found.get(one.leader_epoch)
        found[one.leader_epoch] = one
        if said is None or (said.leader is None and not said.proofs):
            continue
        if not one.is_decided:
            one.how, one.cause, one.from_ms = said.how, said.cause, min(said.from_ms, one.from_ms)
            one.began_before = said.began_before
        how = how_it_began(one.how, said.how)
        if how == said.how and not (how in SURE and one.cause):
            one.cause = said.cause or one.cause
        one.how, one.cluster = how, said.cluster
        one.proofs = [*one.proofs, *said.proofs]
        printed = {(change.version, change.isr): change for change in said.isr_changes}
        one.isr_changes = [printed.get((change.version, change.isr), change) for change in one.isr_changes]
    ordered = [found[epoch] for epoch in sorted(found)]
    for one, following in pairwise(ordered):
        if following.is_decided and not one.is_decided:
            one.to_ms = min(one.to_ms or following.from_ms, following.from_ms)
    return ordered
