"""What a dry run and the journal show of a request: what it asks for, beside what is there now, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from commands.cli.changing import write_text
from commands.cli.render import Page

ORDERS = {"topic": "orders", "partition": 0}


@pytest.mark.parametrize(
    ("target", "before", "after", "lines"),
    [
        (
            "IncrementalAlterConfigs topic orders",
            {"configs": {"retention.ms": "1000", "segment.ms": "5", "flush.ms": None}},
            {
                "entity_type": "topics",
                "entity_name": "orders",
                "configs": [
                    {"key": "retention.ms", "operation": "SET", "value": "2000"},
                    {"key": "segment.ms", "operation": "DELETE"},
                    {"key": "flush.ms", "operation": "SET", "value": "7"},
                ],
            },
            ["retention.ms   1000 -> 2000", "segment.ms   5 -> (not set)", "flush.ms   7"],
        ),
        (
            "AlterPartitionReassignments move 1",
            {"partitions": [{**ORDERS, "replicas": [1, 2], "adding": [], "removing": []}]},
            {"partitions": [{**ORDERS, "replicas": [2, 3]}], "keep_factor": True},
            ["orders-0 replicas   [1,2] -> [2,3]"],
        ),
        (
            "AlterPartitionReassignments cancel 1",
            {"partitions": [{**ORDERS, "replicas": [1, 2, 3], "adding": [3], "removing": []}]},
            {"partitions": [{**ORDERS, "replicas": None}]},
            ["orders-0 replicas   [1,2,3] -> (cancelled)"],
        ),
        (
            "OffsetDelete group billing",
            {"offsets": [{**ORDERS, "offset": 5, "leader_epoch": None, "metadata": None}]},
            {"group": "billing", "partitions": [{**ORDERS, "offset": -1, "leader_epoch": None, "metadata": None}]},
            ["orders-0 offset   5 -> (none)"],
        ),
        (
            "RemoveRaftVoter node 102",
            {"voters": [101, 102, 103]},
            {"cluster_id": "c", "node_id": 102, "directory_id": "d"},
            ['cluster_id   "c"', 'directory_id   "d"'],
        ),
        (
            "UpdateFeatures group.version, share.version",
            {"levels": {"group.version": 1, "share.version": None}},
            {"levels": {"group.version": 0, "share.version": 1}, "is_downgrade": True},
            ["group.version   1 -> 0", "share.version   1", "is_downgrade   true"],
        ),
        ("DeleteTopics orders", {"topic_id": "a", "exists": True}, {"topic": "orders", "topic_id": "a"}, ['topic_id   "a"']),
    ],
)  # fmt: skip
def test_a_request(target: str, before: Any, after: Any, lines: list[str]) -> None:
    row: dict[str, object] = {
        "action": "request",
        "target": target,
        "before": json.dumps(before),
        "after": json.dumps(after),
        "size_in_bytes": 100,
    }
    shown = list(write_text(row, Page(80, False)))
    assert [line.strip() for line in shown] == [target, *lines]
