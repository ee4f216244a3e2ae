"""Rows of topics and partitions, and how they look on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from commands.render import Page, Row, table

if TYPE_CHECKING:
    from kctl.cluster.partition_health import PartitionHealth
    from kctl.cluster.state import ClusterState


def topic_row(name: str, state: ClusterState, *, with_configs: bool) -> Row:
    """The row of a topic; its counts are null where its znode could not be read."""
    from formats.znode_secrets import REDACTED, is_secret_key
    from kctl.cluster.names import is_internal
    from kctl.rows.cluster import TOPIC

    topic = state.topics.get(name)
    partitions = topic.partitions if topic else {}
    first = min(partitions, default=None)
    configs = {
        key: REDACTED if is_secret_key(key) else value for key, value in state.config("topics", name).items()
    }
    return TOPIC(
        topic=name,
        topic_id=topic.topic_id if topic else None,
        partition_count=len(partitions) if topic else None,
        replication_factor=len(topic.origin_replicas(first)) if topic and first is not None else None,
        is_internal=is_internal(name),
        is_marked_for_deletion=name in state.deleting,
        configs=dict(sorted(configs.items())) if with_configs else None,
    )


def partition_row(health: PartitionHealth, state: ClusterState) -> Row:
    """The row of a partition."""
    from kctl.rows.cluster import PARTITION

    tp = health.partition
    topic = state.topics[tp.topic]
    found = state.partition_states.get(tp)
    return PARTITION(
        topic=tp.topic,
        partition=tp.partition,
        leader=health.leader,
        leader_epoch=found.leader_epoch if found else None,
        replicas=list(health.replicas),
        isr=list(health.isr),
        adding_replicas=list(topic.adding_replicas.get(tp.partition, ())),
        removing_replicas=list(topic.removing_replicas.get(tp.partition, ())),
        controller_epoch=found.controller_epoch if found else None,
        partition_epoch=found.partition_epoch if found else None,
        is_under_replicated=health.is_under_replicated,
        is_offline=health.is_offline,
        is_under_min_isr=health.is_under_min_isr,
        is_leader_preferred=health.is_leader_preferred,
    )


def describe_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A heading a topic, its partitions in columns below, what is wrong said in a word."""
    partitions: list[Row] = []
    for row in rows:
        if row["kind"] == "topic":
            yield from _partitions(partitions, page)
            partitions = []
            yield page.style(f"{row['topic']}", "bold") + _about(row)
        else:
            partitions.append(row)
    yield from _partitions(partitions, page)


def _about(row: Row) -> str:
    parts = [f"{row['partition_count']} partitions", f"replication factor {row['replication_factor']}"]
    if row["topic_id"]:
        parts.append(f"id {row['topic_id']}")
    if row["is_marked_for_deletion"]:
        parts.append("marked for deletion")
    configs = row["configs"]
    if isinstance(configs, dict):
        parts += [f"{key}={value}" for key, value in configs.items()]
    return "   " + ", ".join(parts)


def _partitions(rows: list[Row], page: Page) -> Iterator[str]:
    shown = [
        {
            "kind": "partition",
            "partition": f"  {row['topic']}-{row['partition']}",
            "leader": "none" if row["leader"] in (-1, None) else str(row["leader"]),
            "epoch": row["leader_epoch"],
            "replicas": _ids(row["replicas"]),
            "isr": _ids(row["isr"]),
            "adding": _ids(row["adding_replicas"]) or None,
            "removing": _ids(row["removing_replicas"]) or None,
            "": _wrong(row) or None,
        }
        for row in rows
    ]
    yield from table(shown, page)


def _ids(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else ""


def _wrong(row: Row) -> str:
    if row["is_offline"]:
        return "offline"
    words = [
        word
        for key, word in (("is_under_min_isr", "under min ISR"), ("is_under_replicated", "under-replicated"))
        if row[key]
    ]
    return ", ".join(words) if words else "" if row["is_leader_preferred"] else "leader not preferred"


def list_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Topics in columns."""
    yield from table(
        [
            {
                "kind": "topic",
                "topic": row["topic"],
                "partitions": row["partition_count"],
                "replication factor": row["replication_factor"],
                "": "marked for deletion" if row["is_marked_for_deletion"] else None,
            }
            for row in rows
        ],
        page,
    )
