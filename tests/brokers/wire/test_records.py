"""Records deleted on real clusters: what goes, who has not read it, and what brokers refuse."""

from __future__ import annotations

import json

from tests.brokers.cluster import Cluster
from tests.brokers.wire.conftest import WireKctl, fill
from tests.brokers.wire.test_groups import empty_group


def starts(k: WireKctl, topic: str) -> list[int]:
    rows = k("topic", "delete-records", topic, "--to-offset", 0, "--dry-run").of("deletion")
    return [row["log_start_offset"] for row in rows]


def test_records_are_deleted_where_that_is_accepted(w: Cluster, k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2,2:3")
    for partition in (0, 1):
        fill(w, topic, partition=partition, records=100)
    delete = ("topic", "delete-records", topic)
    empty_group(w, topic, f"g-{topic}")
    k.change("group", "reset", f"g-{topic}", "--topic", f"{topic}:1", "--to-offset", 30, "--execute")
    refused = k.change(*delete, "--to-offset", 50, status=4)
    assert "--accept-loss" in refused.err and "nothing was written" in refused.err
    rows = refused.of("deletion")
    assert [(r["to_offset"], r["high_watermark"], r["records"], r["unread_by"]) for r in rows] == [
        (50, 100, 50, []),
        (50, 100, 50, [f"g-{topic}"]),
    ]
    assert starts(k, topic) == [0, 0]
    assert k.change(*delete, "--to-offset", 101, "--accept-loss", status=2).of("change") == []
    k.change(*delete, "--read-by-all-groups", "--accept-loss")
    assert starts(k, topic) == [100, 30]
    id = k.ids()[-1]
    forecast = json.loads((k.journal / f"{id}.json").read_text())["details"]["forecast"]
    assert [row["records"] for row in forecast] == [100, 30]
    assert "cannot be undone" in k.change("journal", "undo", id, status=4).err
    k.change(*delete, "--partition", 1, "--to-offset", -1, "--accept-loss")
    assert starts(k, topic) == [100, 100]
    assert k.change(*delete, "--before", "now", "--accept-loss").of("change") == [], "nothing is left"


def test_a_killed_deletion_is_resumed(w: Cluster, k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    fill(w, topic, records=20)
    for point, offset in (("before-write:0", 5), ("sent:1", 8), ("after-write:0", 11)):
        assert k.killed("topic", "delete-records", topic, "--to-offset", offset, "--accept-loss", fault=point)
        k.change("journal", "resume", k.ids()[-1])
        assert starts(k, topic) == [offset] and k.state(k.ids()[-1]) == "applied"


def test_what_brokers_keep_is_refused(w: Cluster, k: WireKctl, topic: str) -> None:
    compacted = ("--replica-assignment", "1:2", "--config", "cleanup.policy=compact")
    k.change("topic", "create", topic, *compacted)
    delete = ("topic", "delete-records", topic, "--accept-loss", "--to-offset")
    assert "compacted" in k.change(*delete, 0, status=4).err
    assert (
        k.change("topic", "delete-records", "nobodys", "--to-offset", 0, "--accept-loss", status=3).rows == []
    )
