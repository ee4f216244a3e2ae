"""How much of a cluster the user may see: replicas that brokers store and whose topics the metadata leave out.

Brokers leave topics out of the metadata that the user may not describe. They list every replica in their log
directories to a user that may describe the cluster. What a dead broker or a failed directory holds nobody lists: there
the user has to see every topic.

Source: core/src/main/scala/kafka/server/KafkaApis.scala @ 4.1.0 (handleTopicMetadataRequest, handleDescribeLogDirsRequest)
"""

from collections.abc import Collection, Iterable, Sequence

from formats.values import replace
from kctl.cluster.disks import BrokerLogDir
from kctl.cluster.interface import Cluster
from kctl.cluster.moves import ids
from kctl.cluster.rights import CREDENTIALS, TOPIC, UNKNOWN_PRINCIPAL, Right, grant, missing
from kctl.cluster.state import ClusterState, Problem
from kctl.errors import Refused
from kctl.model import some

WHOLE = (Right("Describe"), Right("DescribeConfigs"), Right("Describe", TOPIC, "*"))


def grant_all(state: ClusterState) -> str:
    """What gives a view of the whole cluster."""
    if state.can.name_all_topics:
        return CREDENTIALS
    return f"it takes {', '.join(map(str, WHOLE[:-1]))} and {WHOLE[-1]}; {grant(WHOLE, state.principal)}"


def brokers_denied(state: ClusterState, log_dirs: Sequence[BrokerLogDir]) -> list[int]:
    """The live brokers that do not list their log directories to this user."""
    refused = {log_dir.broker_id for log_dir in log_dirs if log_dir.is_denied}
    return [id for id in state.live_brokers if id in refused]


def unseen(state: ClusterState, log_dirs: Sequence[BrokerLogDir]) -> str:
    """Why the state is a part of the cluster, a clause; nothing if no sign of that is there."""
    if state.hidden:
        return state.hidden
    if denied := brokers_denied(state, log_dirs):
        lacking = missing(Right("Describe"), state.principal or UNKNOWN_PRINCIPAL)
        return f"{lacking}: the replicas of brokers {ids(denied)} are not listed"
    stored = {replica.partition for log_dir in log_dirs for replica in log_dir.replicas}
    if hidden := sorted(tp for tp in stored if tp.topic not in state.topics):
        lacking = missing(Right("Describe", TOPIC), state.principal or UNKNOWN_PRINCIPAL)
        return f"{lacking}: brokers store {some(hidden)}, which the metadata do not show"
    if problems := [problem for problem in state.problems if problem.silent_broker is None]:
        return "; ".join(f"{problem.place}: {problem.reason}" for problem in problems[:3])
    return ""


def grouped(problems: Iterable[Problem]) -> list[tuple[str, str]]:
    """Sentence and hint of each problem; those that lack the same operation on the same kind of resource are one."""
    texts: list[tuple[str, str]] = []
    lacking: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems:
        if problem.right is None:
            texts.append((f"{problem.place}: {problem.reason}", problem.hint))
        else:
            lacking.setdefault((*problem.right[:2], problem.principal), []).append(problem)
    for (operation, resource, principal), alike in lacking.items():
        rights = list(dict.fromkeys(problem.right for problem in alike if problem.right is not None))
        names = some([right.name for right in rights if right.name])
        what = f"{operation} on {resource}{names and f' {names}'}"
        text = f"{_together([problem.place for problem in alike])}: {missing(what, principal)}"
        texts.append((text, grant(rights, principal)))
    return texts


def _together(places: Sequence[str]) -> str:
    """`configuration of broker 1, 2, 3; reassignments`: what begins alike is said once."""
    names: dict[str, list[str]] = {}
    for place in places:
        begin, _, name = place.rpartition(" ")
        names.setdefault(begin, []).append(name)
    return "; ".join(f"{begin}{begin and ' '}{some(listed)}" for begin, listed in names.items())


def refuse_partial(cluster: Cluster, state: ClusterState, brokers: Collection[int], what: str) -> None:
    """Raise Refused if replicas of these brokers may be hidden from the user."""
    log_dirs = cluster.read_log_dirs(state.live_brokers)
    if log_dirs is None:
        return
    why = unseen(state, log_dirs)
    if not why and not set(brokers) <= listing_all(log_dirs):
        why = "; ".join(filter(None, cluster.visibility()))
    if why:
        raise Refused(
            f"{what} needs a view of the whole cluster: {why}; nothing was written",
            grant_all(state),
        )


def listing_all(log_dirs: Sequence[BrokerLogDir]) -> set[int]:
    """The brokers that list the replicas in each of their directories."""
    silent = {log_dir.broker_id for log_dir in log_dirs if log_dir.error}
    return {log_dir.broker_id for log_dir in log_dirs} - silent


def with_hidden_topics(cluster: Cluster, topics: Iterable[str], state: ClusterState) -> ClusterState:
    """The state with a problem for each of the topics that is there, or may be, and that brokers do not list to the user."""
    missing = sorted(set(topics) - set(state.topic_names))
    if not missing or state.can.name_all_topics:
        return state
    named = cluster.read_state(missing, partition_states=False, recent=True)
    return replace(state, problems=(*state.problems, *named.problems))
