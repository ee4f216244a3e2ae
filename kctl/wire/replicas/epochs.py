"""The epochs of a replica, leader or not: read with Fetch, as a follower learns where to truncate.

The answer to a Fetch with a last fetched epoch says where that epoch, or the largest below it, ends in the replica's
log, on any broker; for an epoch above the replica's last one it is OFFSET_OUT_OF_RANGE.

Source: KIP-595; core/src/main/scala/kafka/cluster/Partition.scala, storage/src/main/java/org/apache/kafka/storage/
internals/epoch/LeaderEpochFileCache.java @ 3.9.0
"""

import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from formats.log_dir.checkpoints import EpochEntry
from kctl.cluster.requests import needs
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.operations.unclean import ReplicaEnd, UncleanCandidate, best_of, candidates_of
from kctl.wire.adapter import BrokerError, TooOld, Wire, parse_id
from kctl.wire.protocol.messages import FetchRequest
from kctl.wire.replicas.fetching import CONSUMER, OFFSET_OUT_OF_RANGE
from kctl.wire.rights import failure

FIRST_VERSION, BY_ID = 12, 13  # of Fetch: with epochs (2.7); with ids of topics
BEYOND = 1 << 62  # an offset above any log's end


class ReplicaEpochEnd(NamedTuple):
    """Where an epoch ends in a replica's log."""

    epoch: int
    end_offset: int


Replica = tuple[int, TopicPartition]
Answer = ReplicaEpochEnd | KctlError | None  # None: the epoch is above that of the last record
Questions = Generator[tuple[int, int], Answer, Any]  # asks (broker, epoch)


def epoch_ends(wire: Wire, state: ClusterState, epochs: Mapping[Replica, int]) -> dict[Replica, Answer]:
    """Where an epoch ends in each replica; one request to each broker."""
    version = wire.version_of(FetchRequest) or 0
    if version < FIRST_VERSION:
        raise TooOld(
            f"the brokers are too old: {needs('reading the epochs of replicas')}",
            "examine copies of the log directories with `kctl epoch compare`",
        )
    ids = {tp.topic: parse_id(state.topics[tp.topic].topic_id or "") for _, tp in epochs if version >= BY_ID}
    names = {id: name for name, id in ids.items()}
    by_node: dict[int, dict[str, list[tuple[int, int]]]] = {}
    for (node, tp), epoch in epochs.items():
        by_node.setdefault(node, {}).setdefault(tp.topic, []).append((tp.partition, epoch))
    requests = [(node, _request(topics, ids, version)) for node, topics in by_node.items()]
    answers: dict[Replica, Answer] = dict.fromkeys(epochs, BrokerError("the answer does not include it"))
    for (node, _), answer in zip(requests, wire.send_all(requests), strict=True):
        if isinstance(answer, KctlError):
            answers |= {
                (node, TopicPartition(name, partition)): answer
                for name, pairs in by_node[node].items()
                for partition, _ in pairs
            }
            continue
        for topic in answer.responses:
            name = names[topic.topic_id] if ids else str(topic.topic)
            for partition in topic.partitions:
                answers[node, TopicPartition(name, int(partition.partition_index))] = _answer(
                    wire, name, partition, node
                )
    return answers


def _answer(wire: Wire, topic: str, partition: Any, node: int) -> Answer:
    if partition.error_code == OFFSET_OUT_OF_RANGE:
        return None
    if partition.error_code:
        return failure(wire, f"broker {node}", "Fetch", partition.error_code, topic)
    diverging = partition.diverging_epoch
    if diverging is None or (diverging.epoch < 0 and diverging.end_offset < 0):
        return BrokerError(f"broker {node} does not report where its epochs end")
    return ReplicaEpochEnd(int(diverging.epoch), int(diverging.end_offset))


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
                    for partition, epoch in pairs
                ],
            )
            for name, pairs in topics.items()
        ],
        forgotten_topics_data=[],
        rack_id="",
        min_version=FIRST_VERSION,
        max_version=version,
        **reader,
    )


# --- what each replica has ----------------------------------------------------------------------------


def last_record(broker: int, highest: int) -> Questions:
    """Search for the last epoch, which is `highest` or below; returns a ReplicaEnd, or the error."""
    low, high, step = -1, highest + 1, 1  # low is in the log (or no epoch), high is above it
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


def common_end(broker: int, best: int, ends: Mapping[int, ReplicaEnd]) -> Questions:
    """Search where the histories of two replicas diverge; returns the first offset that is not common, or the error."""
    (epoch, end), target = ends[broker], best
    if broker == best:
        return end
    while epoch >= 0:
        answer = yield target, epoch
        if not isinstance(answer, ReplicaEpochEnd):
            return answer or BrokerError(f"broker {target} has no epoch {epoch}")
        if answer.epoch == epoch:
            return min(end, answer.end_offset)
        epoch, end = answer
        target = broker if target == best else best
    return 0


def all_epochs(broker: int, highest: int, log_start_offset: int) -> Questions:
    """Search for every epoch with its first offset, ascending; returns a list of EpochEntry, or the error."""
    end = yield from last_record(broker, highest)
    if isinstance(end, KctlError):
        return end
    entries: list[EpochEntry] = []
    epoch = end.leader_epoch
    while epoch > 0:
        answer = yield broker, epoch - 1
        if not isinstance(answer, ReplicaEpochEnd):
            return answer or BrokerError(f"broker {broker} has no epoch {epoch - 1}")
        if answer.epoch >= epoch:
            return BrokerError(f"broker {broker} says that epoch {answer.epoch} ends before epoch {epoch}")
        if entries and entries[-1].start_offset == answer.end_offset:
            break  # of an epoch below its first a broker says that it ends where the first begins
        entries.append(EpochEntry(epoch, answer.end_offset))
        if answer.end_offset <= log_start_offset:
            break
        epoch = answer.epoch
    else:
        if epoch == 0:
            entries.append(EpochEntry(0, log_start_offset))
    return entries[::-1]


def replica_epochs(
    wire: Wire, state: ClusterState, log_starts: Mapping[Replica, int]
) -> dict[Replica, list[EpochEntry] | KctlError]:
    """The epochs of replicas, each with its first offset, or why a broker does not tell them. Raises TooOld."""

    def ask(epochs: Mapping[Replica, int]) -> Mapping[Replica, Answer]:
        return epoch_ends(wire, state, epochs)

    def last_epoch(tp: TopicPartition) -> int:
        known = state.partition_states.get(tp)
        return known.leader_epoch if known else 0

    return ask_all(
        ask, {(node, tp): all_epochs(node, last_epoch(tp), start) for (node, tp), start in log_starts.items()}
    )


def ask_all(
    ask: Callable[[Mapping[Replica, int]], Mapping[Replica, Answer]],
    questions: Mapping[Replica, Questions],
) -> dict[Replica, Any]:
    """The result of each search; their questions go out together, in rounds."""
    results: dict[Replica, Any] = {}
    waiting: dict[Replica, tuple[int, int]] = {}

    def go_on(replica: Replica, answer: Answer, *, is_first: bool = False) -> None:
        try:
            waiting[replica] = next(questions[replica]) if is_first else questions[replica].send(answer)
        except StopIteration as stop:
            waiting.pop(replica, None)
            results[replica] = stop.value

    for replica in questions:
        go_on(replica, None, is_first=True)
    while waiting:
        epochs: dict[Replica, int] = {}
        served: dict[Replica, Replica] = {}
        for replica, (broker, epoch) in waiting.items():
            target = broker, replica[1]
            if epochs.setdefault(target, epoch) == epoch:  # a request holds one epoch of a partition
                served[replica] = target
        answers = ask(epochs)
        for replica, target in served.items():
            go_on(replica, answers[target])
    return results


def read_candidates(
    wire: Wire, state: ClusterState, partitions: Iterable[TopicPartition], to: int | None = None
) -> list[UncleanCandidate]:
    """The replicas of leaderless partitions and what it would cost to let each lead; see `candidates_of`."""

    def ask(epochs: Mapping[Replica, int]) -> Mapping[Replica, Answer]:
        return epoch_ends(wire, state, epochs)

    chosen = list(partitions)
    questions: dict[Replica, Questions] = {}
    for tp in chosen:
        partition_state = state.partition_states.get(tp)
        for broker in state.replicas(tp) or ():
            if state.is_replica_alive(tp, broker):
                questions[broker, tp] = last_record(
                    broker, partition_state.leader_epoch if partition_state else 0
                )
    ends: dict[TopicPartition, dict[int, ReplicaEnd]] = {tp: {} for tp in chosen}
    for (broker, tp), end in ask_all(ask, questions).items():
        if isinstance(end, ReplicaEnd):
            ends[tp][broker] = end
    partings: dict[Replica, Questions] = {
        (broker, tp): common_end(broker, best, ends[tp])
        for tp in chosen
        if (best := best_of(ends[tp])) is not None
        for broker in ends[tp]
    }
    common: dict[TopicPartition, dict[int, int]] = {tp: {} for tp in chosen}
    for (broker, tp), offset in ask_all(ask, partings).items():
        if isinstance(offset, int):
            common[tp][broker] = offset
    return [candidate for tp in chosen for candidate in candidates_of(tp, state, ends[tp], common[tp], to)]


def lost_records(
    wire: Wire, state: ClusterState, candidates: Sequence[UncleanCandidate]
) -> dict[TopicPartition, int]:
    """Records of the best replica of each partition that its leader now lacks; unknown ones are left out."""
    best: dict[TopicPartition, ReplicaEnd] = {}
    for candidate in candidates:
        if candidate.end is not None:
            best[candidate.partition] = max(best.get(candidate.partition, candidate.end), candidate.end)
    leading = {
        candidate.partition: candidate
        for candidate in candidates
        if (now := state.partition_states.get(candidate.partition)) is not None
        and now.leader == candidate.broker_id
    }
    lost = {tp: 0 for tp in leading if tp in best}  # of empty replicas nothing
    epochs = {(leading[tp].broker_id, tp): best[tp].leader_epoch for tp in lost if best[tp].leader_epoch >= 0}
    for (_, tp), answer in epoch_ends(wire, state, epochs).items():
        shared_end = leading[tp].common_end_offset
        if isinstance(answer, ReplicaEpochEnd) and shared_end is not None:
            if answer.epoch == best[tp].leader_epoch:
                shared_end = best[tp].log_end_offset
            lost[tp] = max(0, best[tp].log_end_offset - min(shared_end, answer.end_offset))
        else:
            del lost[tp]
    return lost
