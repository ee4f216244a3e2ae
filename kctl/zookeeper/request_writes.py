"""The writes that ask the controller for something: reassignments and preferred elections.

The controller checks nothing of what it finds in these znodes, and each wrong entry wedges it in its own way,
so everything is checked here: replicas non-empty, unique, alive; partitions known, with a leader once elected;
no request under way. The znode is created and never edited, because only its creation is an event.
"""

from collections.abc import Mapping

from formats.errors import FormatError
from formats.znode_requests import Requested, format_election, format_reassignment, parse_reassignment
from formats.znodes import PartitionStateZnode, TopicZnode, format_topic, parse_partition_state
from kctl.changes.intents import ElectPreferred, Reassign, ReplaceStuckReassignment
from kctl.changes.plan import Write
from kctl.cluster.interface import Conflict
from kctl.cluster.state import Replicas
from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition
from kctl.zookeeper.store import LARGEST_REQUEST, Znode
from kctl.zookeeper.writes import (
    ELECTION,
    REASSIGNMENT,
    Desk,
    alter_configs,
    existing_topic,
    parse_existing,
    refuse_migration,
    topic_paths,
)

CHECKED_TOPICS = 300  # so many version checks go into one transaction


def reassign(desk: Desk, intent: Reassign) -> list[Write]:
    """Throttles, and the request, in one transaction that fails where a topic has changed since it was read."""
    _refuse_under_way(desk, REASSIGNMENT, "reassignment")
    checks = _check_moves(desk, intent.targets, intent.origins)
    own = {check.target for check in checks}
    configs = alter_configs(desk, intent.config_changes)
    # The same version check twice in one transaction is legal but says nothing more.
    configs = [w for w in configs if not (w.action == "check" and w.target in own)]
    return [
        *checks,
        *configs,
        Write(action="create", target=REASSIGNMENT, after=reassignment_data(intent.targets)),
    ]


def reassignment_data(targets: Mapping[TopicPartition, Replicas]) -> bytes:
    """The request's content: topic, partition and replicas, and nothing else."""
    return format_reassignment(Requested(tp.topic, tp.partition, r) for tp, r in sorted(targets.items()))


def _refuse_under_way(desk: Desk, path: str, what: str) -> None:
    (node,) = desk.get(path)
    if node is not None:
        raise Refused(
            f"another {what} is under way: {path} exists since {_moment(node.stat.ctime)} "
            f"({len(node.data):,} bytes); nothing was written",
            "wait for it; deleting the znode cancels nothing",
        )


def _moment(milliseconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _check_moves(
    desk: Desk, targets: Mapping[TopicPartition, Replicas], origins: Mapping[TopicPartition, Replicas]
) -> list[Write]:
    live = desk.live_brokers()
    topics: dict[str, tuple[Znode, TopicZnode]] = {}
    names = sorted({tp.topic for tp in targets})
    desk.get(*(path for name in names for path in topic_paths(name)))
    for name in names:
        node = existing_topic(desk, name)
        topics[name] = node, parse_existing(f"/brokers/topics/{name}", node)
    for tp, target in sorted(targets.items()):
        check_target(tp, target, live)
        topic = topics[tp.topic][1]
        present = topic.partitions.get(tp.partition)
        if present is None:
            raise KctlError(f"no partition {tp}")
        if topic.adding_replicas.get(tp.partition) or topic.removing_replicas.get(tp.partition):
            raise Refused(f"{tp} is being reassigned already; nothing was written")
        if tp in origins and present != tuple(origins[tp]):
            raise Conflict(
                f"{tp} is on {list(present)}, not on {list(origins[tp])} as it was planned; nothing was written"
            )
    _refuse_leaderless(desk, targets)
    _refuse_oversize(topics, targets)
    checked = list(topics.items())[:CHECKED_TOPICS]
    return [
        Write(action="check", target=f"/brokers/topics/{name}", version=node.stat.version)
        for name, (node, _) in checked
    ]


def check_target(tp: TopicPartition, target: Replicas, live: set[int]) -> None:
    """Refuse what would lose data, wedge the request or wait for ever. Raises Refused with the reason."""
    if not target:
        raise Refused(f"{tp} would have no replicas; nothing was written")
    if len(set(target)) < len(target):
        raise Refused(f"{tp} would have a broker twice: {list(target)}; nothing was written")
    if min(target) < 0:
        raise Refused(f"{tp} would be on broker {min(target)}, which cannot be; nothing was written")
    dead = sorted(set(target) - live)
    if dead:
        raise Refused(f"{tp} would be on {_brokers(dead)}, not alive; nothing was written")


def _brokers(ids: list[int]) -> str:
    return f"broker{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"


def _states(desk: Desk, partitions: list[TopicPartition]) -> dict[TopicPartition, PartitionStateZnode]:
    paths = [f"/brokers/topics/{tp.topic}/partitions/{tp.partition}/state" for tp in partitions]
    found = {}
    for tp, node in zip(partitions, desk.get(*paths), strict=True):
        if node is not None:
            try:
                found[tp] = parse_partition_state(node.data)
            except FormatError as error:
                raise Refused(
                    f"the state of {tp} cannot be read ({error.what}); nothing was written"
                ) from error
    return found


def _refuse_leaderless(desk: Desk, targets: Mapping[TopicPartition, Replicas]) -> None:
    states = _states(desk, sorted(targets))
    without = [str(tp) for tp in sorted(targets) if tp not in states]
    if without:
        raise Refused(
            f"{', '.join(without[:5])} never had a leader, and a controller cannot move such a partition; "
            "nothing was written"
        )


def _refuse_oversize(
    topics: Mapping[str, tuple[Znode, TopicZnode]], targets: Mapping[TopicPartition, Replicas]
) -> None:
    """While partitions move, a topic's znode holds old and new replicas, adding and removing ones."""
    by_topic: dict[str, dict[int, Replicas]] = {}
    for tp, target in targets.items():
        by_topic.setdefault(tp.topic, {})[tp.partition] = target
    for name, (_, topic) in topics.items():
        moving = by_topic[name]
        union = {
            p: (*moving.get(p, ()), *(b for b in r if b not in moving.get(p, ())))
            for p, r in topic.partitions.items()
        }
        adding = {p: tuple(b for b in r if b not in topic.partitions[p]) for p, r in moving.items()}
        removing = {p: tuple(b for b in topic.partitions[p] if b not in r) for p, r in moving.items()}
        form = TopicZnode(
            version=3, partitions=union, adding_replicas=adding, removing_replicas=removing, topic_id="A" * 22
        )
        size = len(format_topic(form))
        if size > LARGEST_REQUEST:
            raise Refused(
                f"/brokers/topics/{name} would grow to {size:,} bytes while its partitions move, "
                f"above ZooKeeper's limit; nothing was written",
                "move fewer of its partitions at a time",
            )


def elect_preferred(desk: Desk, intent: ElectPreferred) -> list[Write]:
    """The election request, with only partitions that can be elected: any other would wedge the controller."""
    _refuse_under_way(desk, ELECTION, "preferred election")
    live = desk.live_brokers()
    partitions = sorted(intent.partitions)
    states = _states(desk, partitions)
    names = sorted({tp.topic for tp in partitions})
    desk.get(*(path for name in names for path in topic_paths(name)))
    topics = {name: parse_existing(f"/brokers/topics/{name}", existing_topic(desk, name)) for name in names}
    for tp in partitions:
        replicas = topics[tp.topic].partitions.get(tp.partition)
        if not replicas:
            raise KctlError(f"no partition {tp}" if replicas is None else f"{tp} has no replicas")
        if tp not in states:
            raise Refused(f"{tp} never had a leader, and would wedge the election; nothing was written")
        if replicas[0] not in live or replicas[0] not in states[tp].isr:
            why = "alive" if replicas[0] not in live else "in the ISR"
            raise Refused(
                f"broker {replicas[0]}, the preferred leader of {tp}, is not {why}; nothing was written"
            )
    data = format_election(Requested(tp.topic, tp.partition) for tp in partitions)
    return [Write(action="create", target=ELECTION, after=data)]


def replace_stuck_reassignment(desk: Desk, intent: ReplaceStuckReassignment) -> list[Write]:
    """Put the origin in the place of a request that never ends, and make another broker controller, at once.

    In one transaction, so that the old controller cannot act in between; the new one reads the request as it
    starts. Refused unless the request is still the stuck one and every broker to go back to is alive.
    """
    node, controller, migration = desk.get(REASSIGNMENT, "/controller", "/migration")
    refuse_migration(controller, migration)
    if node is None:
        raise Conflict("no reassignment waits any more; nothing was written")
    try:
        waiting = {
            TopicPartition(r.topic, r.partition): r.replicas for r in parse_reassignment(node.data).partitions
        }
    except FormatError:
        waiting = {}
    if waiting != {tp: tuple(r) for tp, r in intent.stuck.items()}:
        raise Conflict(f"{REASSIGNMENT} is not what it was when the change was planned; nothing was written")
    live = desk.live_brokers()
    for tp, target in sorted(intent.targets.items()):
        check_target(tp, target, live)
    if controller is None:
        raise Refused("there is no controller that could be moved; nothing was written")
    return [
        Write(action="delete", target=REASSIGNMENT, before=node.data, version=node.stat.version),
        Write(action="create", target=REASSIGNMENT, after=reassignment_data(intent.targets)),
        Write(action="delete", target="/controller", before=controller.data, version=controller.stat.version),
    ]
