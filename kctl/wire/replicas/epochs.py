"""The epochs of a replica, whoever leads: by Fetch, as a follower learns where to truncate.

A Fetch that names an epoch of its last record is answered with where that epoch, or the largest below it, ends in the
replica's log, wherever the replica is; for an epoch above its last one it is out of range.

Source: KIP-595; core/src/main/scala/kafka/cluster/Partition.scala, storage/src/main/java/org/apache/kafka/storage/
internals/epoch/LeaderEpochFileCache.java @ 3.9.0
"""

import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.protocol.consumer.fetch import FetchRequest

from kctl.cluster.state import ClusterState
from kctl.cluster.unclean import Candidate, ReplicaEnd, best_of, candidates_of
from kctl.cluster.versions import needs
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import BrokerError, Wire, error_name, parse_id
from kctl.wire.replicas.fetching import CONSUMER, OFFSET_OUT_OF_RANGE

FIRST_VERSION, BY_ID = 12, 13  # of Fetch: with epochs (2.7); with ids of topics
BEYOND = 1 << 62  # an offset above any log's end


class EpochEnd(NamedTuple):
    """Where an epoch ends in a replica's log."""

    epoch: int
    end_offset: int


Replica = tuple[int, TopicPartition]
Answer = EpochEnd | KctlError | None  # None: the epoch is above that of the last record
Questions = Generator[tuple[int, int], Answer, Any]  # asks (broker, epoch)


def epoch_ends(wire: Wire, state: ClusterState, asked: Mapping[Replica, int]) -> dict[Replica, Answer]:
    """Where an epoch ends in each replica; each broker is asked once."""
    version = wire.version_of(FetchRequest) or 0
    if version < FIRST_VERSION:
        raise KctlError(
            f"the brokers are too old: {needs('reading the epochs of replicas')}",
            "examine copies of the log directories with `kctl epoch compare`",
        )
    ids = {tp.topic: parse_id(state.topics[tp.topic].topic_id or "") for _, tp in asked if version >= BY_ID}
    names = {id: name for name, id in ids.items()}
    by_node: dict[int, dict[str, list[tuple[int, int]]]] = {}
    for (node, tp), epoch in asked.items():
        by_node.setdefault(node, {}).setdefault(tp.topic, []).append((tp.partition, epoch))
    requests = [(node, _request(topics, ids, version)) for node, topics in by_node.items()]
    found: dict[Replica, Answer] = dict.fromkeys(asked, BrokerError("the answer does not include it"))
    for (node, _), answer in zip(requests, wire.send_all(requests), strict=True):
        if isinstance(answer, KctlError):
            found |= {
                (node, TopicPartition(name, p)): answer
                for name, some in by_node[node].items()
                for p, _ in some
            }
            continue
        for topic in answer.responses:
            name = names[topic.topic_id] if ids else str(topic.topic)
            for p in topic.partitions:
                found[node, TopicPartition(name, int(p.partition_index))] = _answer(p, node)
    return found


def _answer(p: Any, node: int) -> Answer:
    if p.error_code == OFFSET_OUT_OF_RANGE:
        return None
    if p.error_code:
        return BrokerError(f"broker {node} answered {error_name(p.error_code)}")
    parting = p.diverging_epoch
    if parting is None or (parting.epoch < 0 and parting.end_offset < 0):
        return BrokerError(f"broker {node} does not report where its epochs end")
    return EpochEnd(int(parting.epoch), int(parting.end_offset))


def _request(
    topics: Mapping[str, Sequence[tuple[int, int]]], ids: Mapping[str, uuid.UUID], version: int
) -> FetchRequest:
    kind = FetchRequest.FetchTopic
    reader: dict[str, object] = (
        {"replica_state": FetchRequest.ReplicaState(replica_id=CONSUMER, replica_epoch=-1)}
        if version >= 15
        else {"replica_id": CONSUMER}
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[
            kind(
                topic=name,
                topic_id=ids.get(name, uuid.UUID(int=0)),
                partitions=[
                    kind.FetchPartition(
                        partition=partition,
                        current_leader_epoch=-1,
                        fetch_offset=BEYOND,
                        last_fetched_epoch=epoch,
                        log_start_offset=-1,
                        partition_max_bytes=1,
                    )
                    for partition, epoch in some
                ],
            )
            for name, some in topics.items()
        ],
        forgotten_topics_data=[],
        rack_id="",
        min_version=FIRST_VERSION,
        max_version=version,
        **reader,
    )


# --- what each replica has ----------------------------------------------------------------------------


def last_record(broker: int, highest: int) -> Questions:
    """Asks for the last epoch, which is `highest` or below; gives a ReplicaEnd, or the error."""
    low, high, step = -1, highest + 1, 1  # low is answered (or no epoch at all), high is not
    end = ReplicaEnd(-1, 0)
    while high - low > 1:
        epoch = max(high - step, low + 1) if low < 0 else (low + high) // 2
        answer = yield broker, epoch
        if isinstance(answer, KctlError):
            return answer
        if answer is None:
            high, step = epoch, step * 2
        else:
            low, end = epoch, ReplicaEnd(*answer)
    return end


def parting(broker: int, best: int, ends: Mapping[int, ReplicaEnd]) -> Questions:
    """Asks where the histories of two replicas part; gives the first offset that is not common, or the error."""
    (epoch, end), asked = ends[broker], best
    if broker == best:
        return end
    while epoch >= 0:
        answer = yield asked, epoch
        if not isinstance(answer, EpochEnd):
            return answer or BrokerError(f"broker {asked} has no epoch {epoch}")
        if answer.epoch == epoch:
            return min(end, answer.end_offset)
        epoch, end = answer
        asked = broker if asked == best else best
    return 0


def answered(
    ask: Callable[[Mapping[Replica, int]], Mapping[Replica, Answer]],
    questions: Mapping[Replica, Questions],
) -> dict[Replica, Any]:
    """What each of the questions gives; in every round all are asked at once."""
    results: dict[Replica, Any] = {}
    waiting: dict[Replica, tuple[int, int]] = {}

    def go_on(of: Replica, answer: Answer, *, is_first: bool = False) -> None:
        try:
            waiting[of] = next(questions[of]) if is_first else questions[of].send(answer)
        except StopIteration as stop:
            waiting.pop(of, None)
            results[of] = stop.value

    for of in questions:
        go_on(of, None, is_first=True)
    while waiting:
        round: dict[Replica, int] = {}
        served: dict[Replica, Replica] = {}
        for of, (broker, epoch) in waiting.items():
            to = broker, of[1]
            if round.setdefault(to, epoch) == epoch:  # a request holds one epoch of a partition
                served[of] = to
        answers = ask(round)
        for of, to in served.items():
            go_on(of, answers[to])
    return results


def read_candidates(
    wire: Wire, state: ClusterState, partitions: Iterable[TopicPartition], to: int | None = None
) -> list[Candidate]:
    """The replicas of leaderless partitions and what it would cost to let each lead; see `candidates_of`."""

    def ask(asked: Mapping[Replica, int]) -> Mapping[Replica, Answer]:
        return epoch_ends(wire, state, asked)

    chosen = list(partitions)
    questions: dict[Replica, Questions] = {}
    for tp in chosen:
        found = state.partition_states.get(tp)
        for broker in state.replicas(tp) or ():
            if state.is_replica_alive(tp, broker):
                questions[broker, tp] = last_record(broker, found.leader_epoch if found else 0)
    ends: dict[TopicPartition, dict[int, ReplicaEnd]] = {tp: {} for tp in chosen}
    for (broker, tp), end in answered(ask, questions).items():
        if isinstance(end, ReplicaEnd):
            ends[tp][broker] = end
    partings: dict[Replica, Questions] = {
        (broker, tp): parting(broker, best, ends[tp])
        for tp in chosen
        if (best := best_of(ends[tp])) is not None
        for broker in ends[tp]
    }
    common: dict[TopicPartition, dict[int, int]] = {tp: {} for tp in chosen}
    for (broker, tp), offset in answered(ask, partings).items():
        if isinstance(offset, int):
            common[tp][broker] = offset
    return [one for tp in chosen for one in candidates_of(tp, state, ends[tp], common[tp], to)]


def really_lost(wire: Wire, state: ClusterState, found: Sequence[Candidate]) -> dict[TopicPartition, int]:
    """Records that the best replica of each partition had, and its leader now has not; left out where it is not told."""
    best: dict[TopicPartition, ReplicaEnd] = {}
    for one in found:
        if one.end is not None:
            best[one.partition] = max(best.get(one.partition, one.end), one.end)
    leading = {
        one.partition: one
        for one in found
        if (now := state.partition_states.get(one.partition)) is not None and now.leader == one.broker_id
    }
    lost = {tp: 0 for tp in leading if tp in best}  # of empty replicas nothing
    asked = {(leading[tp].broker_id, tp): best[tp].leader_epoch for tp in lost if best[tp].leader_epoch >= 0}
    for (_, tp), answer in epoch_ends(wire, state, asked).items():
        kept = leading[tp].common_end_offset
        if isinstance(answer, EpochEnd) and kept is not None:
            if answer.epoch == best[tp].leader_epoch:
                kept = best[tp].log_end_offset
            lost[tp] = max(0, best[tp].log_end_offset - min(kept, answer.end_offset))
        else:
            del lost[tp]
    return lost
