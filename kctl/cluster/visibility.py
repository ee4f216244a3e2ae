"""How much of a cluster the user may see: replicas that brokers store and whose topics the metadata leave out.

Brokers leave topics out of the metadata that the user may not describe. They list every replica in their log
directories to a user that may describe the cluster. What a dead broker or a failed directory holds nobody lists: there
the user has to see every topic.

Source: core/src/main/scala/kafka/server/KafkaApis.scala @ 4.1.0 (handleTopicMetadataRequest, handleDescribeLogDirsRequest)
"""

from collections.abc import Collection, Sequence

from kctl.cluster.disks import DENIED, BrokerLogDir
from kctl.cluster.interface import Cluster
from kctl.cluster.reassignment.moves import ids, some
from kctl.cluster.state import ClusterState
from kctl.errors import Refused

GRANT = "run it as a user with Describe and DescribeConfigs on Cluster, and Describe on Topic *"


def brokers_denied(state: ClusterState, log_dirs: Sequence[BrokerLogDir]) -> list[int]:
    """The live brokers that do not list their log directories to this user."""
    refused = {log_dir.broker_id for log_dir in log_dirs if log_dir.path is None and log_dir.error == DENIED}
    return [id for id in state.live_brokers if id in refused]


def unseen(state: ClusterState, log_dirs: Sequence[BrokerLogDir]) -> str:
    """Why the state is a part of the cluster, a clause; nothing if no sign of that is there."""
    if denied := brokers_denied(state, log_dirs):
        return f"Describe on Cluster is missing: the replicas of brokers {ids(denied)} are not listed"
    stored = {replica.partition for log_dir in log_dirs for replica in log_dir.replicas}
    if hidden := sorted(tp for tp in stored if tp.topic not in state.topics):
        return f"Describe on Topic is missing: brokers store {some(hidden)}, which the metadata do not show"
    if problems := [problem for problem in state.problems if problem.silent_broker is None]:
        return "; ".join(f"{problem.place}: {problem.reason}" for problem in problems[:3])
    return ""


def refuse_partial(cluster: Cluster, state: ClusterState, brokers: Collection[int], what: str) -> None:
    """Raise Refused if replicas of these brokers may be hidden from the user."""
    log_dirs = cluster.read_log_dirs(state.live_brokers)
    if log_dirs is None:
        return
    why = unseen(state, log_dirs)
    if not why and not set(brokers) <= listing_all(log_dirs):
        why = cluster.why_topics_may_be_hidden()
    if why:
        raise Refused(f"{what} needs a view of the whole cluster: {why}; nothing was written", GRANT)


def listing_all(log_dirs: Sequence[BrokerLogDir]) -> set[int]:
    """The brokers that list the replicas in each of their directories."""
    silent = {log_dir.broker_id for log_dir in log_dirs if log_dir.error}
    return {log_dir.broker_id for log_dir in log_dirs} - silent
