"""Epochs that no line tells of, where the states around them and the controller's words leave one way only.

A controller takes brokers that end out of the ISR one after the other. With ZooKeeper each of these writes raises the
leader epoch, and a partition that loses its leader has none until it is elected. A KRaft controller elects the next
replica at once; from metadata version 3.6 an ISR that only shrinks leaves the epoch.

Source: core/src/main/scala/kafka/controller/ReplicaStateMachine.scala @ 2.4.1;
metadata/src/main/java/org/apache/kafka/controller/PartitionChangeBuilder.java @ 3.5.2, 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from kctl.broker_logs.history.leaderships import MISSING, NO_LEADER, Leadership
from kctl.broker_logs.history.words import Word, Words


def fill_gaps(leaderships: Sequence[Leadership], words: Words) -> None:
    """Fill in what is known of missing epochs of a partition; `leaderships` are those of one topic in order."""
    known = [place for place, leadership in enumerate(leaderships) if leadership.cause != MISSING]
    replicas: tuple[int, ...] = ()
    for first, last in pairwise(known):
        before, after = leaderships[first], leaderships[last]
        replicas = before.replicas or replicas
        if last - first == 1:
            continue
        by_zookeeper = _states_between(
            before, after, _offline(before, after, words), (), is_each_an_epoch=True
        )
        ends = _ends(before, after, words) if words.kraft_since is not None and not by_zookeeper else []
        states = by_zookeeper or next(
            (
                filled
                for is_each_an_epoch in (False, True)
                if (
                    filled := _states_between(
                        before, after, ends, replicas, is_each_an_epoch=is_each_an_epoch
                    )
                )
            ),
            [],
        )
        for gap, state in zip(leaderships[first + 1 : last], states, strict=False):
            gap.leader, gap.isr, gap.from_ms, gap.to_ms = state.leader, state.isr, state.from_ms, state.to_ms
            gap.proofs, gap.removed, gap.replicas = state.proofs, state.removed, before.replicas
            gap.cause = ""
            gap.is_exact, gap.last_seen_ms, gap.controller_epoch = True, state.from_ms, after.controller_epoch


def _offline(before: Leadership, after: Leadership, words: Words) -> Iterable[Word]:
    """The replicas that the controller of the state after took for offline since the state before."""
    return (
        word
        for word in words.offline.get(before.topic_partition, ())
        if word.leader_epoch == after.controller_epoch and before.from_ms <= word.time_ms <= after.from_ms
    )


def _ends(before: Leadership, after: Leadership, words: Words) -> list[Word]:
    """The brokers of the ISR that ended since the state before, in the order in which the controller says so."""
    since = max([before.from_ms, *(change.time_ms for change in before.isr_changes)])
    firsts = [
        next(
            (
                word._replace(leader=broker_id)
                for word in words.of_broker(broker_id, since, after.from_ms)
                if str(word.proof["event"])[:1] == "Q"
            ),
            None,
        )
        for broker_id in before.last_isr or ()
    ]
    return sorted(
        (word for word in firsts if word), key=lambda word: (word.time_ms, str(word.proof["line"]).zfill(9))
    )


def _states_between(
    before: Leadership,
    after: Leadership,
    removals: Iterable[Word],
    replicas: Sequence[int],
    *,
    is_each_an_epoch: bool,
) -> list[Leadership]:
    """The states between two states, if removing these brokers leads from one to the other in as many epochs; else none.

    `replicas` are in the order in which they are elected; none: nobody is.
    """
    isr, leader = list(before.last_isr or ()), before.leader
    states: list[Leadership] = []
    for word in removals:
        if word.leader not in isr:
            continue
        is_led_by = leader == word.leader
        # The last one stays in the ISR, without leading.
        isr = [replica for replica in isr if replica != word.leader] or isr
        if is_led_by:
            leader = next(
                (replica for replica in replicas if replica in isr and replica != word.leader), NO_LEADER
            )
        if not is_led_by and not is_each_an_epoch:
            continue
        if states:
            states[-1].to_ms = word.time_ms
        state = Leadership(
            before.topic_partition, before.leader_epoch + len(states) + 1, leader=leader, isr=tuple(isr),
            from_ms=word.time_ms, to_ms=after.from_ms, proofs=[word.proof], removed=word.leader,
        )  # fmt: skip
        states.append(state)
    is_whole = len(states) == after.leader_epoch - before.leader_epoch and leader == after.leader
    is_same_isr = after.isr is None or tuple(isr) == after.isr or (leader == NO_LEADER and bool(replicas))
    return states[:-1] if is_whole and is_same_isr else []
