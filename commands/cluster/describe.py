"""`kctl cluster`: describe, brokers, disks, controller, health, predict, rolling, unregister."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import click

from commands.cli import completing
from commands.cli.answer import with_answer
from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, open_for_change, reads
from commands.cli.frame import Frame, command
from commands.cli.options import TOPICS, OrderedBrokers, flag, option
from commands.cli.render import Outcome, Page, Row, folding, ids, size, table
from commands.cluster.quorum import member_rows, members_text, quorum_row
from commands.topic import READ_STATUS, note_hidden, note_problems, note_unknown_moves
from formats.words import counted
from kctl.cluster.rights import TOPIC, MissingRight, Right, grant
from kctl.cluster.state import CONFIGS, CONTROLLER_EPOCH, MOVES, QUORUM
from kctl.errors import BadValue, KctlError, Refused
from kctl.rows.cluster_wide import BROKER, CLUSTER, CONTROLLER, HEALTH, LOG_DIR, PREDICTION, RESTART

if TYPE_CHECKING:
    from kctl.cluster.disks import BrokerLogDir
    from kctl.cluster.interface import Cluster
    from kctl.cluster.partition_health import PartitionHealth
    from kctl.cluster.state import ClusterState, Quorum


DESCRIBE = Right("Describe")


def cluster_row(state: ClusterState, backend: str) -> Row:
    """The cluster in one row."""
    from kctl.cluster.partition_health import health_of

    healths = [health_of(tp, state) for tp in state.partitions()]
    why, not_moves = state.why_partial, state.why_not_read(MOVES)
    not_min_isr = None if state.knows_min_isr else state.why_not_read(CONFIGS)

    def count(of: Callable[[PartitionHealth], object], *unread: str | None) -> int | None:
        return None if any((why, *unread)) else sum(map(bool, map(of, healths)))

    return CLUSTER(
        cluster_id=state.cluster_id,
        kafka_version=str(state.kafka_version),
        backend=backend,
        brokers=len(state.live_brokers),
        controller=state.controller.broker_id if state.controller else None,
        controller_epoch=state.controller.epoch if state.controller else None,
        topics=None if why else len(state.topic_names),
        partitions=None if why else len(healths),
        replicas=None if why else sum(len(health.replicas) for health in healths),
        offline_partitions=count(lambda health: health.is_offline),
        under_replicated_partitions=count(lambda health: health.is_under_replicated),
        under_min_isr_partitions=count(lambda health: health.is_under_min_isr, not_min_isr),
        non_preferred_leaders=count(lambda health: not health.is_leader_preferred),
        reassigning_partitions=count(lambda health: state.is_reassigning(health.partition), not_moves),
        is_migrating=state.is_migrating,
        why=joined(why, state.why_not_read(QUORUM), not_min_isr, not_moves),
    )


def joined(*reasons: str | None) -> str | None:
    """Why values of a row are null."""
    return "; ".join(dict.fromkeys(filter(None, reasons))) or None


def feature_rows(state: ClusterState) -> Iterator[Row]:
    """The features of a KRaft cluster and their levels."""
    from kctl.rows.kraft import FEATURE

    for name, level in sorted(state.features.items()):
        yield FEATURE(feature=name, level=level)


def broker_rows(state: ClusterState) -> Iterator[Row]:
    """Every broker that is alive or holds a replica, by id."""
    from kctl.cluster.election_rules import leader_imbalance

    replicas: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    prefer: dict[object, tuple[tuple[int, ...], int]] = {}
    for tp in state.partitions():
        assigned = state.topics[tp.topic].partitions[tp.partition]
        stored = state.partition_states.get(tp)
        replicas.update(assigned)
        if stored is not None and stored.leader >= 0:
            leaders[stored.leader] += 1
        prefer[tp] = assigned, stored.leader if stored else -1
    imbalance = leader_imbalance(prefer)
    why, not_quorum = state.why_partial, state.why_not_read(QUORUM)
    for id in sorted(set(state.brokers) | set(replicas)):
        broker, preferred = state.brokers.get(id), imbalance.get(id)
        endpoints = broker.endpoints if broker else ()
        yield BROKER(
            broker_id=id,
            is_alive=state.is_alive(id),
            is_controller=None
            if not_quorum
            else state.controller is not None and state.controller.broker_id == id,
            host=broker.host if broker else None,
            port=broker.port if broker else None,
            rack=broker.rack if broker else None,
            endpoints=[f"{point.listener}://{point.host}:{point.port}" for point in endpoints],
            broker_epoch=broker.broker_epoch if broker else None,
            registered_at=broker.registered_at if broker else None,
            replicas=None if why else replicas[id],
            leaders=None if why else leaders[id],
            preferred_leaders=None if why else preferred.total if preferred else 0,
            imbalance=100 * preferred.not_led // preferred.total if preferred and not why else None,
            why=joined(why, not_quorum),
        )


def brokers_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line for each broker, with the keys that matter most."""
    shown: list[Row] = []
    for row in rows:
        state = "alive" if row["is_alive"] else "DEAD"
        imbalance = (
            None if row["imbalance"] is None else f"{row['imbalance']} % of {row['preferred_leaders']}"
        )
        shown.append(
            {
                "broker": row["broker_id"],
                "state": f"{state}, controller" if row["is_controller"] else state,
                "address": None if row["host"] is None else f"{row['host']}:{row['port']}",
                "rack": row["rack"],
                "replicas": row["replicas"],
                "leads": row["leaders"],
                "imbalance": imbalance,
            }
        )
    yield from table(shown, page)


def controller_row(state: ClusterState) -> Row:
    """The controller; without a broker id if there is none."""
    controller = state.controller
    broker = (
        state.brokers.get(controller.broker_id) if controller and controller.broker_id is not None else None
    )
    why = state.why_not_read(QUORUM)
    is_epoch_unread = controller is not None and controller.epoch is None
    return CONTROLLER(
        broker_id=controller.broker_id if controller else None,
        controller_epoch=controller.epoch if controller else None,
        is_alive=None
        if why
        else state.has_controller
        and (broker is not None or (controller is not None and controller.is_kraft)),
        is_kraft=controller.is_kraft if controller else why is not None,
        why=why or (state.why_not_read(CONTROLLER_EPOCH) if is_epoch_unread else None),
        elected_at=controller.elected_at if controller else None,
        host=broker.host if broker else None,
        port=broker.port if broker else None,
    )


def health_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Problems with examples, then the number of good checks."""
    good = 0
    for row in rows:
        status, examples = str(row["status"]), row["examples"]
        if status == "good":
            good += 1
            continue
        yield f"{page.style(f'{status:<7}', status)}  {row['check']}  {row['count']}  {row['message']}"
        if isinstance(examples, list):
            yield from (f"    {example}" for example in examples)
    yield page.style(f"{good} checks found no problem", "good")


def prediction_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Partitions in columns, then the number of each outcome."""
    listed: list[Row] = []
    for row in rows:
        if row["kind"] == "quorum":
            yield page.style(str(row["message"]), "good" if row["has_majority"] else "error")
        else:
            listed.append(row)
    yield from table(
        [
            {
                "partition": f"{row['topic']}-{row['partition']}",
                "outcome": str(row["outcome"]).replace("_", " "),
                "leader": f"{row['leader_before']} -> {'none' if row['leader'] == -1 else row['leader']}",
                "isr": f"{ids(row['isr_before'])} -> {ids(row['isr'])}",
                "eligible": ids(row["eligible_leaders"]) or None,
                "": "under min ISR" if row["is_under_min_isr"] else None,
            }
            for row in listed
        ],
        page,
    )
    counts = sorted(Counter(str(row["outcome"]).replace("_", " ") for row in listed).items())
    summary = ", ".join(f"{number} {outcome}" for outcome, number in counts)
    yield page.style(summary or "no partition is affected", "bold")


def describe_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The cluster in lines, then a line for each member of the quorum and each feature."""
    for kind, some in groupby(rows, key=lambda row: str(row["kind"])):
        yield from (members_text if kind == "quorum_member" else table)(list(some), page)


@command("describe", paged=True, status=READ_STATUS)
@reads
def describe(frame: Frame, at: At) -> Outcome:
    """Describe the cluster: version, controller, counts, KRaft quorum and features.

    $ kctl cluster describe
    $ kctl cluster describe --snapshot znodes.jsonl --output json
    """
    with at.open(frame) as cluster:
        state = cluster.read_state(configs=("topics", "brokers"), kafka_version=at.version, visibility=True)
        backend = cluster.backend
    note_problems(frame, state.all_problems)
    note_hidden(frame, state)
    note_unknown_moves(frame, state)
    rows = [cluster_row(state, backend), *member_rows(state.quorum), *feature_rows(state)]
    return Outcome(rows, text=describe_text)


@command("brokers", paged=True, status=READ_STATUS)
@reads
def brokers(frame: Frame, at: At) -> Outcome:
    """List brokers with their replicas and leaders.

    Includes dead brokers that have replicas assigned.

    $ kctl cluster brokers
    $ kctl cluster brokers --output jsonl
    """
    with at.open(frame) as cluster:
        state = cluster.read_state(kafka_version=at.version, visibility=True)
    note_problems(frame, state.all_problems)
    note_hidden(frame, state)
    return Outcome(broker_rows(state), text=brokers_text)


def log_dir_row(log_dir: BrokerLogDir) -> Row:
    """The row of a log directory; what nobody tells of one that failed is null."""
    is_told = log_dir.path is not None and log_dir.error is None
    is_denied = log_dir.is_denied
    return LOG_DIR.of(
        log_dir,
        state=None if is_denied else log_dir.state,
        why=f"{DESCRIBE} is missing" if is_denied else None,
        log_dir=log_dir.path,
        size_in_bytes=log_dir.size_in_bytes if is_told else None,
        partitions=len({replica.partition for replica in log_dir.replicas}) if is_told else None,
        future_partitions=sum(replica.is_future for replica in log_dir.replicas) if is_told else None,
    )


def disks_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line for each log directory, those that are not online last in words."""
    shown = [
        {
            "broker": row["broker_id"],
            "log directory": row["log_dir"] or "?",
            "state": row["state"] or "unknown",
            "replicas": None if row["partitions"] is None else f"{row['partitions']:,}",
            "future": row["future_partitions"] or None,
            "size": None if row["size_in_bytes"] is None else size(row["size_in_bytes"]),
            "usable": None if row["usable_bytes"] is None else size(row["usable_bytes"]),
            "of": None if row["total_bytes"] is None else size(row["total_bytes"]),
            "": row["why"] or row["error"],
        }
        for row in rows
    ]
    yield from table(shown, page)


@command(
    "disks",
    paged=True,
    status="0 every directory is in use · 2 no such broker · 3 failed · 5 one has failed, or a broker does not answer",
)
@reads
@click.argument("brokers", nargs=-1, type=int, metavar="[BROKER]...", shell_complete=completing.brokers)
def disks(frame: Frame, at: At, brokers: tuple[int, ...]) -> Outcome:
    """Show the log directories of brokers: state, bytes, replicas.

    Without BROKER, shows all brokers, including dead ones that have replicas assigned. Brokers do not report which
    replicas a failed directory holds; `kctl topic describe` lists them as offline replicas.

    $ kctl cluster disks
    $ kctl cluster disks 2 3 --output jsonl
    """
    with at.open(frame) as cluster:
        state = cluster.read_state(kafka_version=at.version)
        assigned = {id for tp in state.partitions() for id in state.topics[tp.topic].partitions[tp.partition]}
        known = assigned | set(state.brokers)
        if strangers := sorted(set(brokers) - known):
            raise BadValue(f"no broker {', '.join(map(str, strangers))}", f"there are {ids(sorted(known))}")
        log_dirs = cluster.read_log_dirs(brokers or known)
    if log_dirs is None:
        raise KctlError("ZooKeeper has no data about the disks of brokers", "give --bootstrap-server HOSTS")
    if any(log_dir.state in ("failed", "unreachable") and not log_dir.is_denied for log_dir in log_dirs):
        frame.raise_status(5)
    if denied := [log_dir.broker_id for log_dir in log_dirs if log_dir.is_denied]:
        place = f"log directories of brokers {ids(denied)}"
        frame.report(MissingRight(DESCRIBE, cluster.principal, place))
    return Outcome(map(log_dir_row, log_dirs), text=disks_text)


@command("controller", status="0 there is a controller · 3 failed · 5 there is none, or it is not alive")
@reads
def controller(frame: Frame, at: At) -> Outcome:
    """Show the controller, its epoch and when it was elected.

    $ kctl cluster controller
    $ kctl cluster controller --output jsonl
    """
    with at.open(frame) as cluster:
        state = cluster.read_state((), partition_states=False, kafka_version=at.version)
    note_problems(frame, [p for p in state.all_problems if p.place in (QUORUM, CONTROLLER_EPOCH)])
    row = controller_row(state)
    if row["is_alive"] is False:
        frame.raise_status(5)
    return Outcome([row])


@command(
    "health",
    has_metrics=True,
    every="",
    status="0 nothing is wrong · 3 failed · 5 a check found a warning or an error",
)
@reads
@option(
    "--watch SECONDS",
    "Watch the controller epoch for SECONDS to find repeated elections.",
    type=click.FloatRange(0),
    default=0,
    show_default=False,
)
def health(frame: Frame, at: At, watch: float) -> Outcome:
    """Check the health of the cluster, one row per check.

    $ kctl cluster health
    $ kctl cluster health --watch 10
    $ kctl cluster health --every 30s
    $ kctl cluster health --snapshot znodes.jsonl --output jsonl
    $ kctl cluster health --output openmetrics > kctl.prom.tmp; mv kctl.prom.tmp kctl.prom
    """
    from commands.cli.openmetrics import as_metrics, health_metrics

    with at.open(frame) as cluster:
        growth = _epoch_growth(cluster, watch) if watch and at.snapshot is None else 0
        state = cluster.read_state(configs=("topics", "brokers"), kafka_version=at.version, visibility=True)
        rows = health_rows(frame, cluster, state, at, growth)
    if any(row["status"] == "unknown" for row in rows):
        note_rights(frame, state)
    encoded = as_metrics(frame, "cluster health", rows, health_metrics)
    return Outcome(rows, text=folding(health_text), encoded=encoded)


def health_rows(frame: Frame, cluster: Cluster, state: ClusterState, at: At, growth: int = 0) -> list[Row]:
    """A row for each check; the exit status becomes 5 where one finds something."""
    from kctl.operations.health import HealthFacts, check_health

    now = int(time.time() * 1000)
    if at.snapshot is not None:
        now = max([b.registered_at or 0 for b in state.brokers.values()], default=0)
    results = list(check_health(HealthFacts(state, cluster.read_oddities(state, now), now, growth)))
    if any(result.status in ("warning", "error") for result in results):
        frame.raise_status(5)
    if any(result.status == "unknown" for result in results):
        frame.raise_status(3)
    return [HEALTH.of(result, message=result.meaning) for result in results]


def note_rights(frame: Frame, state: ClusterState) -> None:
    """Say how the rights are granted for what was not read, where that is why."""
    lacking = [problem.right for problem in state.problems if problem.right is not None]
    if state.hidden and state.can.ask_brokers:
        lacking.append(Right("Describe", TOPIC, "*"))
    if lacking:
        frame.note(grant(list(dict.fromkeys(lacking)), state.principal))


def _epoch_growth(cluster: Cluster, seconds: float) -> int:
    """The growth of the controller epoch in a number of seconds."""
    first = cluster.read_state((), partition_states=False).controller
    time.sleep(seconds)
    last = cluster.read_state((), partition_states=False).controller
    if first is None or last is None or first.epoch is None or last.epoch is None:
        return 0
    return last.epoch - first.epoch


@command(
    "predict",
    status="0 nothing goes offline or under min ISR · 2 a broker is not alive · 3 failed · 5 a partition does",
)
@reads
@option("--stop IDS", "Brokers, or KRaft controllers, to stop.", type=OrderedBrokers(), required=True)
@option(
    "--how",
    "Stop all at once, or shut down one after the other in the order given.",
    type=click.Choice(("crash", "controlled")),
    default="crash",
)
@TOPICS
@option(
    "--unclean/--no-unclean",
    "Value of unclean.leader.election.enable in the brokers' files.  [default: the default of the version]",
    default=None,
)
@flag("--all", "Include partitions that are not affected.", into="everything")
def predict(
    frame: Frame,
    at: At,
    stop: tuple[int, ...],
    how: str,
    topics: frozenset[str] | None,
    unclean: bool | None,
    everything: bool,
) -> Outcome:
    """Predict the leader of each partition if brokers stopped.

    In a KRaft cluster, voters that do not answer now count as dead. Without a majority of voters no leader is elected;
    a row of kind `quorum` says so.

    $ kctl cluster predict --stop 3
    $ kctl cluster predict --stop 3,5 --how controlled --topics orders
    $ kctl cluster predict --stop 1,2 --unclean --snapshot znodes.jsonl
    """
    from kctl.cluster.names import refuse_absent
    from kctl.cluster.prediction import has_majority_after
    from kctl.cluster.prediction import predict as predicted

    with at.open(frame) as cluster:
        state = cluster.read_state(
            topics, configs=("topics", "brokers"), kafka_version=at.version, visibility=topics is None
        )
    refuse_absent(topics, state)
    note_problems(frame, state.all_problems)
    note_hidden(frame, state)
    predictions = list(predicted(state, stop, how=how, unclean=unclean))
    affected = [prediction for prediction in predictions if prediction.outcome != "unaffected"]
    if any(p.outcome in ("offline", "unclean") or p.is_under_min_isr for p in affected):
        frame.raise_status(5)
    rows = [
        PREDICTION.of(p, eligible_leaders=list(p.eligible)) for p in (predictions if everything else affected)
    ]
    if state.quorum is not None and state.quorum.voters & set(stop):
        has_majority = has_majority_after(state, stop)
        if not has_majority:
            frame.raise_status(5)
        rows.append(_quorum_after(state.quorum, stop, has_majority))
    # Records that only the stopped brokers have: their next start may cut them.
    following = (
        ["kctl log-dir start LOG_DIR"] if {p.outcome for p in affected} & {"offline", "unclean"} else []
    )
    return Outcome(rows, text=with_answer(prediction_text, following))


def _quorum_after(quorum: Quorum, stopped: tuple[int, ...], has_majority: bool) -> Row:
    """The quorum without the voters that stop; who leads then nobody knows where the leader is among them."""
    dead = quorum.dead_voters | quorum.voters & set(stopped)
    count = f"{len(quorum.voters - dead)} of {counted(len(quorum.voters), 'voter')} would answer"
    leads_on = has_majority and quorum.leader_id not in stopped
    return {
        **quorum_row(quorum),
        "leader_id": quorum.leader_id if leads_on else None,
        "leader_epoch": quorum.leader_epoch if leads_on else None,
        "has_majority": has_majority,
        "dead_voters": sorted(dead),
        "message": count if has_majority else f"no active controller: {count}",
    }


@command(
    "rolling",
    status="0 a node can be stopped now, with --watch the first one · 2 no such node · 3 failed · 5 none can, with --watch the first one",
)
@reads
@click.argument("nodes", nargs=-1, type=int, metavar="[BROKER]...", shell_complete=completing.brokers)
@flag("--watch", "Exit with status 5 if the first node cannot be stopped safely now, whatever others can.")
def rolling(frame: Frame, at: At, nodes: tuple[int, ...], watch: bool) -> Outcome:
    """Show the order of a rolling restart, and whether the next one can be stopped now.

    The order goes rack by rack, with the active controller last. BROKER limits the list, for example to the nodes that
    are not restarted yet. A node is safe to stop when no partition would go offline or below min.insync.replicas, all
    other replicas are in sync, no replica is being moved, all other nodes are alive, and a majority of voters remains.

    $ kctl cluster rolling
    $ kctl cluster rolling --watch 3
    $ kctl cluster rolling 1 2 --output jsonl
    """
    from kctl.cluster.rolling import rolling_restart
    from kctl.cluster.visibility import grant_all

    with at.open(frame) as cluster:
        state = cluster.read_state(configs=("topics", "brokers"), kafka_version=at.version, visibility=True)
        silent = {problem.silent_broker for problem in state.problems}
        answering = [broker for broker in state.live_brokers if broker not in silent]
        order = rolling_restart(state, cluster.read_log_dirs(answering) or ())
    if strangers := sorted(set(nodes) - {restart.broker_id for restart in order}):
        raise BadValue(
            f"no broker or controller {', '.join(map(str, strangers))}",
            "`kctl cluster brokers` and `kctl quorum describe` list them",
        )
    if nodes:
        order = [restart for restart in order if restart.broker_id in nodes]
    asked = order[:1] if watch else order
    if why := next((restart.why for restart in order if restart.why), None):
        frame.fail(f"a part of the cluster decides that could not be read: {why}", grant_all(state))
    if asked and all(restart.is_safe_now is False for restart in asked):
        frame.raise_status(5)
    rows = (RESTART.of(restart, place=place) for place, restart in enumerate(order, 1))
    return Outcome(rows, text=folding(rolling_text))


def rolling_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line for each node, with all that it waits for below."""
    for row in rows:
        roles = row["roles"]
        assert isinstance(roles, list)
        leads = ", active controller" if row["is_leader"] else ""
        style, says = ("good", "can be stopped now") if row["is_safe_now"] else ("warning", "waits for")
        if row["is_safe_now"] is None:
            says = f"unknown: {row['why']}"
        yield f"{row['place']:>3}  {row['broker_id']} ({', '.join(roles)}{leads})  {page.style(says, style)}"
        waits_for = row["waits_for"]
        assert isinstance(waits_for, list)
        yield from (f"       {line}" for line in waits_for)


@command("unregister", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("broker", type=int, metavar="BROKER", shell_complete=completing.brokers)
def unregister(frame: Frame, how: How, broker: int) -> Outcome:
    """Remove the registration of a broker that is gone for good.

    kctl refuses while the broker is alive, accepts connections, or has replicas assigned. Kafka itself does not check
    this and would remove even a live leader. The change cannot be undone; a broker registers again when it starts.

    $ kctl cluster unregister 3
    $ kctl cluster unregister 3 --dry-run
    """
    from kctl.cluster.visibility import refuse_partial
    from kctl.operations.kraft.unregistering import plan_unregistering

    with open_for_change(frame) as cluster:
        state = cluster.read_state(kafka_version=how.version)
        _refuse_running(state, broker)
        refuse_partial(cluster, state, [broker], "unregistering a broker")
        return carry_out(frame, how, cluster, plan_unregistering(cluster, state, broker))


def _refuse_running(state: ClusterState, broker_id: int) -> None:
    """Raise Refused where something listens at the address of a broker that is not alive: it is starting, or hangs."""
    broker = state.brokers.get(broker_id)
    if broker is None or broker.host is None or not broker.is_fenced:
        return
    from kctl.cluster.state import Endpoint
    from kctl.wire.quorum import listening

    if listening({Endpoint("", broker.host, broker.port)}, 3.0):
        raise Refused(
            f"broker {broker_id} is fenced but accepts connections at {broker.host}:{broker.port}; nothing was written",
            "stop its process first: it would neither register again nor shut down on request",
        )
