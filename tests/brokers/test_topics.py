"""Topics on real clusters: created, grown, configured, described and deleted, as Kafka's own tools see it."""

from __future__ import annotations

import json
import re
from itertools import count

import pytest

from tests.brokers.cluster import BEFORE_BROKERS_ARE_ASKED, Cluster, eventually
from tests.brokers.metadata import named_brokers
from tests.brokers.running import Kctl
from tests.brokers.traffic import traffic

NUMBERS = count()


@pytest.fixture
def topic() -> str:
    """A name that no test has used."""
    return f"topic{next(NUMBERS)}"


def stock_describe(c: Cluster, topic: str) -> set[tuple[str, ...]]:
    """Partition, leader, replicas and ISR as Kafka's own tool prints them."""
    if c.version == "3.9":
        said = c.tool(
            "org.apache.kafka.tools.TopicCommand",
            "--bootstrap-server",
            c.bootstrap,
            "--describe",
            "--topic",
            topic,
        )
    else:
        said = c.tool("kafka.admin.TopicCommand", "--zookeeper", c.connect, "--describe", "--topic", topic)
    pattern = r"Partition:\s*(\d+)\s+Leader:\s*(\S+)\s+Replicas:\s*(\S+)\s+Isr:\s*(\S+)"
    return {tuple(found) for found in re.findall(pattern, said)}


def test_a_topic_from_creation_to_deletion(c: Cluster, k: Kctl, topic: str) -> None:
    k.change(
        "topic",
        "create",
        topic,
        "--partitions",
        3,
        "--replication-factor",
        2,
        "--config",
        "retention.ms=900000",
    )
    described = k("topic", "describe", topic)
    partitions = described.of("partition")
    assert [p["partition"] for p in partitions] == [0, 1, 2]
    assert all(p["leader"] == p["replicas"][0] and p["isr"] == p["replicas"] for p in partitions)
    (row,) = described.of("topic")
    assert row["configs"] == {"retention.ms": "900000"} and row["replication_factor"] == 2
    assert bool(row["topic_id"]) == (c.version in ("2.8", "3.9"))
    assert stock_describe(c, topic) == {
        (
            str(p["partition"]),
            str(p["leader"]),
            ",".join(map(str, p["replicas"])),
            ",".join(map(str, p["isr"])),
        )
        for p in partitions
    }
    with traffic(c, topic, 3) as running:
        k.change("topic", "alter", topic, "--partitions", 5)
        running.require_progress()
    running.require_nothing_lost()
    grown = k("topic", "describe", topic)
    assert len(grown.of("partition")) == 5
    assert grown.of("topic")[0]["topic_id"] == row["topic_id"]
    k.change("topic", "delete", topic, "--deletion-is-enabled")
    assert topic not in [t["topic"] for t in k("topic", "list").of("topic")]
    assert k("topic", "describe", topic).status == 3
    assert c.znode(f"/config/topics/{topic}") is None


def test_what_exists_is_refused_and_nothing_to_do_leaves_no_trace(c: Cluster, k: Kctl, topic: str) -> None:
    c.create_topic(topic, [[1], [2]])
    before = k.ids()
    k.change("topic", "create", topic, "--partitions", 1, "--replication-factor", 1, status=4)
    k.change("topic", "create", topic, "--partitions", 1, "--replication-factor", 1, "--if-not-exists")
    k.change("topic", "alter", topic, "--partitions", 2)
    k.change("topic", "alter", topic, "--partitions", 1, status=2)
    k.change("topic", "create", "no good", "--partitions", 1, "--replication-factor", 1, status=2)
    k.change("topic", "create", topic + "x", "--partitions", 1, "--replication-factor", 9, status=4)
    k.change("topic", "delete", topic + "x", "--deletion-is-enabled", status=3)
    k.change("topic", "alter", topic + "x", "--partitions", 2, status=3)
    assert k("topic", "create", topic + "y", "--partitions", 1, "--replication-factor", 1).status == 4
    ran = k("topic", "create", topic + "y", "--partitions", 1, "--replication-factor", 1, "--dry-run")
    assert ran.status == 0 and f"/brokers/topics/{topic}y" in [row["target"] for row in ran.of("write")]
    assert k.ids() == before
    assert c.znode(f"/brokers/topics/{topic}y") is None


def test_a_configuration_reaches_the_brokers(c: Cluster, k: Kctl, topic: str) -> None:
    """Every broker says in its log that it has read the new value, and after the undo that it is gone."""
    c.create_topic(topic, [[1, 2, 3]])
    k.change("topic", "config", "set", topic, "max.message.bytes=4321", "--reason", "a test")
    said = re.compile(rf"{topic}\b.*max\.message\.bytes\s*(->|=)\s*4321\b")
    for id in c.brokers:
        for _ in eventually(f"broker {id} reads the value"):
            if said.search(c.brokers[id].log.read_text()):
                break
    assert [r["value"] for r in k("topic", "config", "get", topic).of("config")] == ["4321"]
    (id_of_change,) = [r["id"] for r in k("journal", "list").of("change") if r["reason"] == "a test"]
    k.change("journal", "undo", id_of_change)
    assert k("topic", "config", "get", topic).of("config") == []
    assert k.state(id_of_change) == "undone"
    with c.client() as client:
        assert len(client.get_children("/config/changes")) >= 2


def test_wrong_values_are_refused(c: Cluster, k: Kctl, topic: str) -> None:
    c.create_topic(topic, [[1]])
    for value in ("retention.ms=soon", "min.insync.replicas=0", "no.such=1"):
        k.change("topic", "config", "set", topic, value, status=2)
    k.change("topic", "config", "unset", topic, "retention.ms", status=3)
    k.change("topic", "config", "set", topic + "x", "retention.ms=1", status=3)
    assert c.znode(f"/config/topics/{topic}") == {"version": 1, "config": {}}


def test_a_dead_broker_stalls_a_deletion_and_kctl_says_so(c: Cluster, k: Kctl, topic: str) -> None:
    c.create_topic(topic, [[1, 3], [2, 3]])
    with traffic(c, topic, 2) as running:
        running.require_progress()
    c.kill(3)
    c.wait_until_gone(3)
    for _ in eventually("both partitions are under-replicated"):
        found = k("topic", "describe", topic, "--under-replicated").of("partition")
        if {p["partition"] for p in found} == {0, 1}:
            break
    ran = k.change("topic", "delete", topic, "--deletion-is-enabled", "--timeout", "2s", status=5)
    assert "broker 3 is not alive" in ran.err
    (change,) = ran.of("change")
    assert change["state"] == "applied" and not change["finished"]
    assert [t["is_marked_for_deletion"] for t in k("topic", "list").of("topic") if t["topic"] == topic] == [
        True
    ]
    k.change("topic", "create", topic, "--partitions", 1, "--replication-factor", 1, status=4)
    c.restart(3)
    k.change("journal", "resume", change["id"])
    assert topic not in [t["topic"] for t in k("topic", "list").of("topic")]


def test_brokers_name_each_other(c: Cluster) -> None:
    """What the rig waits for when it has started brokers."""
    named = [named_brokers("127.0.0.1", broker.port) for broker in c.brokers.values()]
    assert named == [set(c.brokers)] * 3 or c.version.startswith(BEFORE_BROKERS_ARE_ASKED)


def test_an_export_reads_like_the_cluster(c: Cluster, k: Kctl, topic: str) -> None:
    c.create_topic(topic, [[1, 2], [2, 3]])
    file = c.folder / f"{topic}.jsonl"
    (row,) = k("znode", "export", file).of("export")
    assert row["znodes"] > 20
    for line in file.read_text().splitlines():
        assert json.loads(line)["acl"] == [{"perms": 31, "scheme": "world", "id": "anyone"}], line
    assert k("topic", "describe", "--snapshot", file).rows == k("topic", "describe").rows
    assert k("znode", "export", file).status == 4
    assert k("topic", "describe", "nope", "--snapshot", file).status == 3
    tree = {r["path"]: r for r in k("znode", "tree", "--snapshot", file).of("znode")}
    live = {r["path"]: r for r in k("znode", "tree").of("znode")}
    assert {p: r["size_in_bytes"] for p, r in tree.items()} == {
        p: r["size_in_bytes"] for p, r in live.items()
    }
    assert tree["/controller"]["ephemeral_owner"]


def test_every_znode_of_a_real_cluster_is_explained(c: Cluster, k: Kctl, topic: str) -> None:
    k.change(
        "topic", "create", topic, "--partitions", 1, "--replication-factor", 1, "--config", "flush.ms=5000"
    )
    paths = [r["path"] for r in k("znode", "tree").of("znode") if r["size_in_bytes"]]
    shown = k("znode", "show", *paths)
    assert shown.status == 0, [r["problem"] for r in shown.of("znode")]
    unknown = [r["path"] for r in shown.of("znode") if r["what"] is None]
    assert unknown == []
