"""Leaders elected: the preferred ones, and unclean ones where nobody leads.

Source: clients/src/main/resources/common/message/ElectLeadersRequest.json @ 4.3.0 (KIP-460)
"""

from collections.abc import Iterator

from formats.values import Struct
from kctl.changes.kinds.elections import ElectPreferred, ElectUnclean
from kctl.cluster.interface import Conflict
from kctl.cluster.preflight import check_preferred
from kctl.cluster.state import NO_LEADER, ClusterState, Replicas
from kctl.model import TopicPartition
from kctl.wire.adapter import Wire
from kctl.wire.protocol.messages import ElectLeadersRequest
from kctl.wire.writes.moves import by_topic, ordered
from kctl.wire.writes.present import existing_replicas
from kctl.wire.writes.requests import PartitionRow, Request, RequestItem, ask, milliseconds

PREFERRED, UNCLEAN = "preferred", "unclean"
ELECTIONS = {PREFERRED: 0, UNCLEAN: 1}
ELECTION_NOT_NEEDED = 84


class Election(PartitionRow, frozen=True):
    """The leader that a partition is to get, the preferred one or an unclean one (`to`), and the one that it has."""

    preferred: int | None = None
    leader: int | None = None
    to: int | None = None


class Leaderless(Struct, frozen=True):
    """The partitions that had no leader when a request was computed."""

    leaderless: tuple[PartitionRow, ...]


class ElectLeaders(Request, frozen=True, kw_only=True):
    """The elections of partitions."""

    expected: Leaderless | None = None
    election: str
    partitions: tuple[Election, ...]

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        topics = [
            ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[row.partition for row in rows])
            for topic, rows in by_topic(self.partitions).items()
        ]
        request = ElectLeadersRequest(
            election_type=ELECTIONS[self.election], topic_partitions=topics, timeout_ms=milliseconds(wire)
        )
        answer = ask(wire, request)
        if answer.error_code:
            yield RequestItem("the election", answer.error_code, None)
        for topic in answer.replica_election_results:
            for result in topic.partition_result:
                if result.error_code != ELECTION_NOT_NEEDED:
                    tp = TopicPartition(str(topic.topic), int(result.partition_id))
                    yield RequestItem(str(tp), result.error_code, result.error_message, *tp)

    def refuse_other_state(self, state: ClusterState) -> None:
        for row in self.expected.leaderless if self.expected else ():
            partition_state = state.partition_states.get(row.tp)
            if partition_state is None or state.is_alive(partition_state.leader):
                raise Conflict(f"{row.tp} has a leader by now; nothing was written")

    def is_shown(self, state: ClusterState) -> bool:
        states = [(row, state.partition_states.get(row.tp)) for row in self.partitions]
        return all(
            found is not None and found.leader == (row.to if row.preferred is None else row.preferred)
            for row, found in states
        )


# --- requests of intents ------------------------------------------------------------------------------


def elect_preferred(fresh: ClusterState, intent: ElectPreferred, _: ClusterState) -> list[Request]:
    """The election of partitions whose first replica can lead."""
    rows = []
    for tp in sorted(intent.partitions):
        replicas, partition_state = existing_replicas(fresh, tp), fresh.partition_states.get(tp)
        if partition_state is not None and partition_state.leader == replicas[0]:
            continue
        isr = () if partition_state is None else partition_state.isr
        check_preferred(tp, replicas[0], isr, fresh.is_alive)
        leader = NO_LEADER if partition_state is None else partition_state.leader
        rows.append(Election(*tp, preferred=replicas[0], leader=leader))
    if not rows:
        return []
    return [ElectLeaders(about=f"{PREFERRED} {len(rows)}", election=PREFERRED, partitions=tuple(rows))]


def elect_unclean(fresh: ClusterState, intent: ElectUnclean, _: ClusterState) -> list[Request]:
    """Put the chosen replica first if the controller would take another, elect, and restore the order."""
    put_first: dict[TopicPartition, Replicas] = {}
    elections: list[Election] = []
    restored: dict[TopicPartition, Replicas] = {}
    for tp, (broker,) in sorted(intent.chosen.items()):
        present, partition_state = existing_replicas(fresh, tp), fresh.partition_states.get(tp)
        leader = NO_LEADER if partition_state is None else partition_state.leader
        if sorted(present) != sorted(intent.origins[tp]):
            raise Conflict(f"{tp} is on {list(present)} by now; nothing was written")
        if leader != broker and fresh.is_alive(leader):
            raise Conflict(f"broker {leader} leads {tp} by now; nothing was written")
        if leader != broker:
            if next((b for b in present if fresh.is_replica_alive(tp, b)), None) != broker:
                put_first[tp] = (broker, *(b for b in present if b != broker))
            elections.append(Election(*tp, to=broker))
        if tp in put_first or present != intent.origins[tp]:
            restored[tp] = tuple(intent.origins[tp])
    requests = [ordered("first", put_first)] if put_first else []
    if elections:
        elected = ElectLeaders(
            about=f"{UNCLEAN} {len(elections)}",
            expected=Leaderless(tuple(PartitionRow(*row.tp) for row in elections)),
            election=UNCLEAN,
            partitions=tuple(elections),
        )
        requests.append(elected)
    return [*requests, ordered("order", restored)] if restored else requests
