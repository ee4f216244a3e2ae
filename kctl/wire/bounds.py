"""Where the comparison of each partition's replicas begins and where it ends, and which of them take part."""

from collections.abc import Mapping, Sequence

from kctl.cluster.state import ClusterState
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.adapter import Wire
from kctl.wire.fetching import CONSUMER, LATEST, list_offsets, local_starts
from kctl.wire.verified import Verified

COMPACTED = ("__consumer_offsets", "__transaction_state")  # whatever their configuration says


def bounded(
    wire: Wire, state: ClusterState, partitions: Sequence[TopicPartition], begin: Mapping[TopicPartition, int]
) -> list[Verified]:
    """The partitions, to be compared from where all replicas have them up to the leader's high watermark.

    Where that is not to be had they end with the shortest log, whose last part may not be committed. Those in `begin`
    are compared from that offset on, unless it lies behind the end: what was compared up to there is gone.
    """
    found = [_with_replicas(state, tp) for tp in partitions]
    wanted = [(b, one.partition) for one in found for b in one.compared]
    starts = local_starts(wire, wanted)
    ends = list_offsets(wire, wanted, LATEST)
    # Of a partition that is being moved the leader may be one of those that are added, and not compared.
    leaders = [(one.leader, one.partition) for one in found if state.is_alive(one.leader)]
    watermarks = list_offsets(wire, leaders, LATEST, replica_id=CONSUMER)
    for one in found:
        first = []
        for broker_id in list(one.compared):
            start, end = starts[broker_id, one.partition], ends[broker_id, one.partition]
            if isinstance(start, KctlError) or isinstance(end, KctlError):
                one.drop(broker_id, str(start if isinstance(start, KctlError) else end))
            else:
                first.append(start)
                one.ends[broker_id] = end
        until = watermarks.get((one.leader, one.partition))
        if until is None:
            one.worsen("unknown", "no leader says what is committed")
        one.ends_at_watermark = isinstance(until, int)
        one.to_offset = until if isinstance(until, int) else min(one.ends.values(), default=0)
        resumed = begin.get(one.partition, 0)
        one.from_offset = max([*first, resumed if resumed <= one.to_offset else 0], default=0)
        one.offset = one.from_offset
    return found


def _with_replicas(state: ClusterState, tp: TopicPartition) -> Verified:
    """The leader first; without brokers that are not alive."""
    known = state.partition_states.get(tp)
    leader = known.leader if known else -1
    replicas = state.topics[tp.topic].origin_replicas(tp.partition)
    policy = state.config("topics", tp.topic).get("cleanup.policy", "")
    one = Verified(
        partition=tp,
        replicas=replicas,
        leader=leader,
        is_compacted="compact" in policy or tp.topic in COMPACTED,
        compared=sorted(replicas, key=lambda broker_id: broker_id != leader),
    )
    for broker_id in [b for b in replicas if not state.is_alive(b)]:
        one.drop(broker_id, "the broker is not alive")
    return one
