"""Rows about a cluster as a whole, and how they look on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from commands.render import Page, Row, table

if TYPE_CHECKING:
    from kctl.cluster.health import Result
    from kctl.cluster.prediction import Prediction
    from kctl.cluster.state import ClusterState

STATUS_STYLES = {"good": "good", "info": "info", "warning": "warning", "error": "error"}


def cluster_row(state: ClusterState, backend: str) -> Row:
    """The cluster in one row."""
    from kctl.cluster.partition_health import health_of
    from kctl.rows.cluster_wide import CLUSTER

    healths = [health_of(tp, state) for tp in state.partitions()]
    return CLUSTER(
        cluster_id=state.cluster_id,
        kafka_version=str(state.kafka_version),
        backend=backend,
        brokers=len(state.live_brokers),
        controller=state.controller.broker_id if state.controller else None,
        controller_epoch=state.controller.epoch if state.controller else None,
        topics=len(state.topic_names),
        partitions=len(healths),
        replicas=sum(len(one.replicas) for one in healths),
        offline_partitions=sum(one.is_offline for one in healths),
        under_replicated_partitions=sum(one.is_under_replicated for one in healths),
        under_min_isr_partitions=sum(one.is_under_min_isr for one in healths),
        non_preferred_leaders=sum(not one.is_leader_preferred for one in healths),
        reassigning_partitions=sum(state.is_reassigning(one.partition) for one in healths),
        is_migrating=state.is_migrating,
    )


def quorum_rows(state: ClusterState) -> Iterator[Row]:
    """The members of the KRaft quorum and the features; nothing of a cluster with ZooKeeper."""
    from kctl.rows.cluster_wide import FEATURE, QUORUM_MEMBER

    quorum = state.quorum
    members = sorted(quorum.members, key=lambda one: (not one.is_voter, one.node_id)) if quorum else []
    newest = max((one.log_end_offset for one in members), default=0)
    for one in members:
        yield QUORUM_MEMBER(
            node_id=one.node_id,
            is_voter=one.is_voter,
            is_leader=quorum is not None and one.node_id == quorum.leader_id,
            log_end_offset=one.log_end_offset,
            lag=newest - one.log_end_offset,
            last_caught_up_timestamp=one.last_caught_up_at,
        )
    for name, level in sorted(state.features.items()):
        yield FEATURE(feature=name, level=level)


def broker_rows(state: ClusterState) -> Iterator[Row]:
    """Every broker that is alive or holds a replica, by id."""
    from kctl.cluster.election_rules import leader_imbalance
    from kctl.rows.cluster_wide import BROKER

    replicas: dict[int, int] = {}
    leaders: dict[int, int] = {}
    prefer: dict[object, tuple[tuple[int, ...], int]] = {}
    for tp in state.partitions():
        ids = state.topics[tp.topic].partitions[tp.partition]
        found = state.partition_states.get(tp)
        for member in ids:
            replicas[member] = replicas.get(member, 0) + 1
        if found is not None and found.leader >= 0:
            leaders[found.leader] = leaders.get(found.leader, 0) + 1
        prefer[tp] = ids, found.leader if found else -1
    imbalance = leader_imbalance(prefer)
    for id in sorted(set(state.brokers) | set(replicas)):
        broker, preferred = state.brokers.get(id), imbalance.get(id)
        endpoints = broker.endpoints if broker else ()
        yield BROKER(
            broker_id=id,
            is_alive=state.is_alive(id),
            is_controller=state.controller is not None and state.controller.broker_id == id,
            host=broker.host if broker else None,
            port=broker.port if broker else None,
            rack=broker.rack if broker else None,
            endpoints=[f"{one.listener}://{one.host}:{one.port}" for one in endpoints],
            broker_epoch=broker.broker_epoch if broker else None,
            registered_at=broker.registered_at if broker else None,
            replicas=replicas.get(id, 0),
            leaders=leaders.get(id, 0),
            preferred_leaders=preferred.total if preferred else 0,
            imbalance=100 * preferred.not_led // preferred.total if preferred else None,
        )


def brokers_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a broker. What else the rows have is for programs."""
    shown: list[Row] = []
    for row in rows:
        state = "alive" if row["is_alive"] else "DEAD"
        of = row["preferred_leaders"]
        imbalance = None if row["imbalance"] is None else f"{row['imbalance']} % of {of}"
        shown.append(
            {
                "kind": "broker",
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
    """The controller; with no broker id where there is none."""
    from kctl.rows.cluster_wide import CONTROLLER

    found = state.controller
    broker = state.brokers.get(found.broker_id) if found and found.broker_id is not None else None
    return CONTROLLER(
        broker_id=found.broker_id if found else None,
        controller_epoch=found.epoch if found else None,
        is_alive=bool(found) and (broker is not None or (found is not None and found.is_kraft)),
        is_kraft=found.is_kraft if found else False,
        elected_at=found.elected_at if found else None,
        host=broker.host if broker else None,
        port=broker.port if broker else None,
    )


def health_row(one: Result) -> Row:
    """The row of one check."""
    from kctl.rows.cluster_wide import HEALTH

    return HEALTH(
        check=one.check,
        status=one.status,
        count=one.count,
        message=one.meaning,
        examples=list(one.examples),
    )


def health_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """What is wrong with its examples; what is good in one line at the end."""
    good = 0
    for row in rows:
        status, examples = str(row["status"]), row["examples"]
        if status == "good":
            good += 1
            continue
        yield f"{page.style(f'{status:<7}', STATUS_STYLES[status])}  {row['check']}  {row['count']}  {row['message']}"
        if isinstance(examples, list):
            yield from (f"    {example}" for example in examples)
    yield page.style(f"{good} checks found nothing", "good")


def prediction_row(one: Prediction) -> Row:
    """The row of one partition's fate."""
    from kctl.rows.cluster_wide import PREDICTION

    return PREDICTION(
        topic=one.partition.topic,
        partition=one.partition.partition,
        outcome=one.outcome,
        replicas=list(one.replicas),
        leader_before=one.leader_before,
        leader=one.leader,
        isr_before=list(one.isr_before),
        isr=list(one.isr),
        eligible_leaders=list(one.eligible),
        min_insync_replicas=one.min_insync_replicas,
        is_under_min_isr=one.is_under_min_isr,
    )


def prediction_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Partitions in columns, then how many fare how."""
    listed = list(rows)
    yield from table(
        [
            {
                "kind": "prediction",
                "partition": f"{row['topic']}-{row['partition']}",
                "outcome": str(row["outcome"]).replace("_", " "),
                "leader": f"{row['leader_before']} -> {'none' if row['leader'] == -1 else row['leader']}",
                "isr": f"{_ids(row['isr_before'])} -> {_ids(row['isr'])}",
                "eligible": _ids(row["eligible_leaders"]) or None,
                "": "under min ISR" if row["is_under_min_isr"] else None,
            }
            for row in listed
        ],
        page,
    )
    count: dict[str, int] = {}
    for row in listed:
        count[str(row["outcome"])] = count.get(str(row["outcome"]), 0) + 1
    told = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(count.items()))
    yield page.style(told or "nothing happens to any partition", "bold")


def _ids(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else ""
