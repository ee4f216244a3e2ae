"""Removing the registration of a broker from a KRaft cluster. The controller checks nothing, so this module does.

A live broker that is unregistered disappears at once; its process runs on without registering again, and
no longer stops on a signal. A broker with replicas stays in their lists.

Source: KIP-631 (UnregisterBroker); metadata/src/main/java/org/apache/kafka/controller/ClusterControlManager.java @ 3.9.0
"""

from collections.abc import Iterator

from formats.words import counted
from kctl.changes.kinds.quorum import UnregisterBroker
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.interface import Cluster, no_quorum
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import V4_0
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import TopicPartition, some


def plan_unregistering(cluster: Cluster, state: ClusterState, broker_id: int) -> Plan:
    """The plan. Raises BadValue for a broker known not to exist, Refused if it is in use."""
    if state.not_quorum is not None:
        raise no_quorum(state)
    if state.quorum is None:
        raise KctlError(
            "only KRaft clusters have registrations of brokers",
            "with ZooKeeper a broker that is stopped is gone: there is nothing to unregister",
        )
    refuse_used(state, broker_id)
    if is_unregistered(broker_id, state):
        known = ", ".join(map(str, sorted(state.brokers)))
        raise BadValue(f"no broker {broker_id}", f"there are {known}")
    return plan_of([UnregisterBroker(broker_id=broker_id)], cluster, state)


def is_unregistered(broker_id: int, state: ClusterState) -> bool:
    """Whether the broker is known not to be registered. Before 4.0 dead brokers are not listed."""
    return broker_id not in state.brokers and state.kafka_version >= V4_0


def refuse_used(state: ClusterState, broker_id: int) -> None:
    """Raise Refused if the broker is alive, hosts replicas, or a reassignment names it."""
    if state.is_alive(broker_id):
        raise Refused(
            f"broker {broker_id} is alive; nothing was written", "stop it, and wait until it is fenced"
        )
    if hosted := list(_hosted(state, broker_id)):
        raise Refused(
            f"broker {broker_id} is assigned {counted(len(hosted), 'replica')}: {some(hosted)}; nothing was written",
            f"`kctl reassign plan --drain {broker_id} --to FILE` plans to move them away",
        )


def _hosted(state: ClusterState, broker_id: int) -> Iterator[TopicPartition]:
    """Partitions with a replica there, those that a reassignment adds or removes included."""
    for tp in state.partitions():
        if broker_id in state.topics[tp.topic].partitions[tp.partition]:
            yield tp
