"""Voters of the KRaft quorum: adding and removing one, refused if no majority would be alive.

A leader uses the new set of voters as soon as it has written it, and acknowledges a removal that then cannot be
committed. So the answering voters of the new set are counted here first.

Source: KIP-853; raft/src/main/java/org/apache/kafka/raft/internals/{AddVoterHandler,RemoveVoterHandler}.java @ 3.9.0
"""

from collections.abc import Mapping, Sequence

from formats.words import counted
from kctl.changes.kinds.quorum import AddVoter, RemoveVoter
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.interface import Cluster, no_quorum
from kctl.cluster.requests import needs
from kctl.cluster.state import ClusterState, Endpoint, Quorum, QuorumMember, is_majority
from kctl.cluster.versions import V3_9
from kctl.errors import BadValue, KctlError, Refused

KRAFT_VERSION = "kraft.version"  # 1: voters can be changed


def counted_voters(quorum: Quorum) -> str:
    """`2 of 3 voters answer`."""
    return f"{len(quorum.voters - quorum.dead_voters)} of {counted(len(quorum.voters), 'voter')} answer"


def changeable_quorum(state: ClusterState) -> Quorum:
    """The quorum. Raises KctlError or Refused if its voters cannot be changed."""
    if state.quorum is None:
        raise no_quorum(state)
    if state.kafka_version < V3_9:
        raise KctlError(
            f"{needs('changing voters')}; nothing was written",
            "upgrade the controllers, or change controller.quorum.voters in their files and restart them",
        )
    if not state.features.get(KRAFT_VERSION):
        raise Refused(
            "the voters are set by controller.quorum.voters in the files of all nodes (kraft.version 0); nothing was written",
            "`kctl feature upgrade kraft.version=1` makes them changeable; it cannot be undone (KIP-853)",
        )
    return state.quorum


def directory_gone(voter: QuorumMember, now: QuorumMember) -> str:
    """What happened to a voter whose node runs with another directory, in words."""
    return (
        f"voter {voter.node_id} is directory {voter.directory_id}, which is gone; "
        f"node {now.node_id} is an observer with directory {now.directory_id}"
    )


def plan_adding(
    cluster: Cluster, state: ClusterState, nodes: Sequence[int], endpoints: Mapping[int, Endpoint]
) -> Plan:
    """The plan that adds observers to the voters, one after the other; empty if all of them vote already.

    `endpoints`: where controllers listen. Raises KctlError for a node that is no observer, Refused if it does not
    answer or no majority of the new set would.
    """
    quorum = changeable_quorum(state)
    for voter, now in quorum.replaced_voters:
        if voter.node_id in nodes:
            raise Refused(
                f"{directory_gone(voter, now)}; nothing was written",
                f"`kctl quorum remove {voter.node_id}`, then `kctl quorum add {voter.node_id}`",
            )
    new_voters = [node for node in dict.fromkeys(nodes) if node not in quorum.voters]
    title = f"add {_nodes(new_voters or nodes)} to the voters"
    intents = []
    for node in new_voters:
        observer = quorum.member(node)
        if observer is None:
            raise KctlError(
                f"node {node} is not an observer of the quorum; nothing was written",
                "start it, formatted with `kafka-storage format --no-initial-controllers`",
            )
        if observer.directory_id is None:
            raise KctlError(
                f"node {node} does not report its directory id; nothing was written",
                "start it, and try again when `kctl quorum describe` lists it",
            )
        if node not in endpoints:
            if node in state.brokers:
                raise Refused(
                    f"node {node} is a broker, not a controller; nothing was written",
                    "name a node that has the role controller in process.roles",
                )
            raise Refused(
                f"the listener of controller {node} is unknown; nothing was written",
                "give --endpoint LISTENER://HOST:PORT",
            )
        at = endpoints[node]
        listeners = {at.listener or listener_of(quorum): f"{at.host}:{at.port}"}
        intent = AddVoter(node_id=node, directory_id=observer.directory_id, listeners=listeners)
        refuse_minority(quorum, intent)
        intents.append(intent)
    return plan_of(intents, cluster, state, title=title, warnings=_evenness(quorum, len(new_voters)))


def plan_removing(cluster: Cluster, state: ClusterState, node: int) -> Plan:
    """The plan that removes a voter. Raises BadValue for a node that does not vote, Refused without a majority."""
    quorum = changeable_quorum(state)
    voter = quorum.member(node)
    if voter is None or not voter.is_voter or voter.directory_id is None:
        voters = ", ".join(map(str, sorted(quorum.voters)))
        raise BadValue(f"node {node} is not a voter", f"the voters are {voters}")
    intent = RemoveVoter(
        node_id=node,
        directory_id=voter.directory_id,
        listeners={at.listener: f"{at.host}:{at.port}" for at in voter.endpoints},
    )
    refuse_minority(quorum, intent)
    return plan_of([intent], cluster, state, warnings=_evenness(quorum, -1))


def refuse_minority(quorum: Quorum, intent: AddVoter | RemoveVoter) -> None:
    """Raise Refused if a new voter does not answer, or no majority of the voters after the change does."""
    node = intent.node_id
    member = quorum.member(node)
    if isinstance(intent, AddVoter):
        if member is None or not member.is_answering:
            raise Refused(
                f"node {node} has not fetched from the leader for 2 s; nothing was written",
                "start it, and try again when `kctl quorum describe` shows no lag",
            )
        after = quorum.voters | {node}
    else:
        after = quorum.voters - {node}
    alive = {id for id in after if (voter := quorum.member(id)) is None or voter.is_answering is not False}
    if not after or not is_majority(alive, after):
        raise Refused(
            f"{len(alive)} of {counted(len(after), 'voter')} after the change are alive, which is no majority: the cluster "
            "would accept no more changes; nothing was written",
            f"now {counted_voters(quorum)}: start those that are not alive ({_dead(quorum)})"
            if quorum.dead_voters
            else "add another voter first",
        )


def listener_of(quorum: Quorum) -> str:
    """The name of the listener that voters use for each other."""
    names = [at.listener for member in quorum.members for at in member.endpoints]
    return names[0] if names else "CONTROLLER"


def _nodes(nodes: Sequence[int]) -> str:
    return f"node{'' if len(nodes) == 1 else 's'} {', '.join(map(str, nodes))}"


def _dead(quorum: Quorum) -> str:
    return ", ".join(map(str, sorted(quorum.dead_voters)))


def _evenness(quorum: Quorum, more: int) -> tuple[str, ...]:
    """The warning that an even number of voters is no safer than one less."""
    after = len(quorum.voters) + more
    if not more or after % 2:
        return ()
    return (f"of {after} voters {after // 2 + 1} must answer: no more may fail than of {after - 1}",)
