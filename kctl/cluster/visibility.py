"""How much of a cluster the user may see: replicas that brokers store and whose topics the metadata leave out.

Brokers leave topics out of the metadata that the user may not describe. They list every replica in their log
directories to a user that may describe the cluster.

Source: core/src/main/scala/kafka/server/KafkaApis.scala @ 4.1.0 (handleTopicMetadataRequest, handleDescribeLogDirsRequest)
"""

from collections.abc import Sequence

from kctl.cluster.disks import DENIED, BrokerLogDir
from kctl.cluster.interface import Cluster
from kctl.cluster.reassignment.moves import ids, some
from kctl.cluster.state import ClusterState
from kctl.errors import Refused

GRANT = (
    "run it as a user that may describe the cluster and all its topics (Describe on Cluster and on Topic *)"
)


def brokers_denied(state: ClusterState, log_dirs: Sequence[BrokerLogDir]) -> list[int]:
    """The live brokers that do not list their log directories to this user."""
    refused = {log_dir.broker_id for log_dir in log_dirs if log_dir.path is None and log_dir.error == DENIED}
    return [id for id in state.live_brokers if id in refused]


def unseen(state: ClusterState, log_dirs: Sequence[BrokerLogDir]) -> str:
    """Why the state is a part of the cluster, a clause; nothing if no sign of that is there."""
    if denied := brokers_denied(state, log_dirs):
        return f"Describe on the cluster is missing: the replicas of brokers {ids(denied)} are not listed"
    stored = {replica.partition for log_dir in log_dirs for replica in log_dir.replicas}
    if hidden := sorted(tp for tp in stored if tp.topic not in state.topics):
        return f"Describe on topics is missing: brokers store {some(hidden)}, which the metadata do not show"
    if problems := [problem for problem in state.problems if problem.silent_broker is None]:
        return "; ".join(f"{problem.place}: {problem.reason}" for problem in problems[:3])
    return ""


def refuse_partial(cluster: Cluster, state: ClusterState, what: str) -> None:
    """Raise Refused if the user sees a part of the cluster only; a backend without log directories shows all."""
    log_dirs = cluster.read_log_dirs(state.live_brokers)
    if log_dirs is not None and (why := unseen(state, log_dirs)):
        raise Refused(f"{what} needs a view of the whole cluster: {why}; nothing was written", GRANT)
