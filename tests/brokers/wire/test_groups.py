"""Groups on real clusters: described, reset, deleted, brought back; and what brokers refuse."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.cluster import Cluster, eventually
from tests.brokers.wire.conftest import WireKctl, fill

TOOL = "kafka.admin.ConsumerGroupCommand"


def reader(c: Cluster, group: str) -> Any:
    from kafka import KafkaConsumer

    return KafkaConsumer(
        bootstrap_servers=c.bootstrap.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=1000,
        metadata_max_age_ms=500,
    )


@contextmanager
def member(c: Cluster, group: str, topic: str) -> Iterator[None]:
    """A member of a group that has partitions and has committed nothing."""
    consumer = reader(c, group)
    consumer.subscribe([topic])
    patience = 8.0
    stuck = time.monotonic() + patience
    try:
        for _ in eventually(f"a member of {group} has partitions"):
            consumer.poll(timeout_ms=200)
            if consumer.assignment():
                break
            if time.monotonic() > stuck:  # the group has forgotten it, which the library does not find out
                consumer.close()
                consumer = reader(c, group)
                consumer.subscribe([topic])
                patience *= 2
                stuck = time.monotonic() + patience
        yield
    finally:
        consumer.close()


def make_topic(w: Cluster, k: WireKctl, topic: str, records: int = 100) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2,2:3")
    for partition in (0, 1):
        fill(w, topic, partition=partition, records=records)


def empty_group(w: Cluster, topic: str, group: str) -> None:
    """A group without members that has read all of a topic."""
    from kafka import TopicPartition
    from kafka.structs import OffsetAndMetadata

    consumer = reader(w, group)
    try:
        partitions = [TopicPartition(topic, p) for p in (0, 1)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        consumer.commit({tp: OffsetAndMetadata(end, "read by a test", -1) for tp, end in ends.items()})
    finally:
        consumer.close()


def offsets(k: WireKctl, group: str) -> dict[tuple[str, int], int]:
    rows = k("group", "describe", group).of("group_offset")
    return {(r["topic"], r["partition"]): r["offset"] for r in rows}


def tool(w: Cluster, *args: object, check: bool = True) -> str:
    main = TOOL if w.version < "3.7" else "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    return w.tool(main, "--bootstrap-server", w.bootstrap, *args, check=check)


def test_offsets_are_reset_and_brought_back(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    make_topic(w, k, topic)
    group = f"g-{topic}"
    empty_group(w, topic, group)
    shown = k("group", "reset", group, "--to-earliest")
    assert shown.status == 0 and len(k.ids()) == 1
    assert [
        (r["from_offset"], r["to_offset"], r["skips"], r["repeats"]) for r in shown.of("group_reset")
    ] == [
        (100, 0, 0, 100),
        (100, 0, 0, 100),
    ]
    assert set(offsets(k, group).values()) == {100}
    k.change("group", "reset", group, "--topic", f"{topic}:1", "--to-offset", 40, "--execute")
    assert offsets(k, group) == {(topic, 0): 100, (topic, 1): 40}
    said = tool(w, "--describe", "--group", group)  # in any order
    assert sorted(line.split()[2:6] for line in said.splitlines() if line.startswith(group)) == [
        ["0", "100", "100", "0"],
        ["1", "40", "100", "60"],
    ]
    k.change("group", "reset", group, "--shift", -10, "--execute")
    assert offsets(k, group) == {(topic, 0): 90, (topic, 1): 30}
    k.change("journal", "undo", k.ids()[-1])
    k.change("journal", "undo", k.ids()[1])
    rows = k("group", "describe", group).of("group_offset")
    assert [(r["offset"], r["metadata"]) for r in rows] == [(100, "read by a test")] * 2
    listed = tmp_path / "offsets.csv"
    listed.write_text(f'"{topic}",0,7\n{topic},1,1000\n')
    ran = k.change("group", "reset", group, "--from-file", listed, "--execute")
    assert offsets(k, group) == {(topic, 0): 7, (topic, 1): 100} and "not in the log" not in ran.err
    again = k.change("group", "reset", group, "--from-file", listed, "--execute")
    assert again.of("change") == [], "there is nothing to do"


def test_an_undo_refuses_what_was_committed_since(w: Cluster, k: WireKctl, topic: str) -> None:
    make_topic(w, k, topic)
    group = f"g-{topic}"
    empty_group(w, topic, group)
    k.change("group", "reset", group, "--to-earliest", "--execute")
    first = k.ids()[-1]
    k.change("group", "reset", group, "--to-offset", "40", "--execute")
    refused = k.change("journal", "undo", first, status=4)
    assert "is 40, not 0 as it was read; nothing was written" in refused.err


def test_a_group_with_members_is_left_alone(w: Cluster, k: WireKctl, topic: str) -> None:
    make_topic(w, k, topic)
    group = f"g-{topic}"
    with member(w, group, topic):
        for args in (("reset", group, "--topic", topic, "--to-earliest", "--execute"), ("delete", group)):
            refused = k.change("group", *args, status=4)
            assert "has 1 member" in refused.err and "nothing was written" in refused.err
        (one,) = k("group", "describe", group).of("member")
        k.change("group", "remove-member", group, one["member_id"])
        unknown = k.change("group", "remove-member", group, "nobody", status=3)
        assert "has no member nobody" in unknown.err
    assert k("group", "describe", "nobodys-group").status == 3


def test_offsets_and_groups_are_deleted_and_brought_back(w: Cluster, k: WireKctl, topic: str) -> None:
    make_topic(w, k, topic)
    group = f"g-{topic}"
    empty_group(w, topic, group)
    k.change("group", "delete-offsets", group, "--topic", f"{topic}:0")
    assert offsets(k, group) == {(topic, 1): 100}
    k.change("journal", "undo", k.ids()[-1])
    assert offsets(k, group) == {(topic, 0): 100, (topic, 1): 100}
    k.change("group", "delete", group)
    assert k("group", "describe", group).status == 3
    assert group not in [g["group"] for g in k("group", "list").of("group")]
    k.change("journal", "undo", k.ids()[-1])
    assert offsets(k, group) == {(topic, 0): 100, (topic, 1): 100}
    assert k.change("group", "delete", group, "nobodys-group", status=3).of("change") == []
    assert offsets(k, group) == {(topic, 0): 100, (topic, 1): 100}, "nothing is deleted where one is unknown"


def test_a_group_without_commits_has_no_lag_that_is_known(w: Cluster, k: WireKctl, topic: str) -> None:
    make_topic(w, k, topic)
    group = f"g-{topic}"
    with member(w, group, topic):
        ran = k("group", "describe", group)
    (row,) = ran.of("group")
    assert row["members"] == 1 and row["lag"] is None
    assert len(ran.of("member")[0]["assignment"]) == 2
    assert [(o["partition"], o["offset"], o["high_watermark"], o["lag"]) for o in ran.of("group_offset")] == [
        (0, None, 100, None),
        (1, None, 100, None),
    ]


@pytest.mark.parametrize("point", ["journalled", "before-write:0", "sent:1", "after-write:0", "written:0"])
def test_a_killed_reset_is_resumed(w: Cluster, k: WireKctl, topic: str, point: str) -> None:
    make_topic(w, k, topic, 10)
    group = f"g-{topic}"
    new = ("group", "reset", group, "--topic", topic, "--to-offset", 4, "--execute")
    assert "this creates it" in k.change(*new, "--dry-run").err
    assert k.killed(*new, fault=point)
    k.change("journal", "resume", k.ids()[-1])
    assert offsets(k, group) == {(topic, 0): 4, (topic, 1): 4} and k.state(k.ids()[-1]) == "applied"
    k.change("journal", "undo", k.ids()[-1])
    assert k("group", "describe", group).of("group_offset") == []


def commit(c: Cluster, group: str, topic: str, at: dict[int, int]) -> None:
    """Offsets of a group without members, wherever they are."""
    from kafka import TopicPartition
    from kafka.structs import OffsetAndMetadata

    consumer = reader(c, group)
    try:
        consumer.assign([TopicPartition(topic, p) for p in at])
        consumer.commit({TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in at.items()})
    finally:
        consumer.close()


def test_offsets_outside_the_log_and_in_an_open_transaction(w: Cluster, k: WireKctl, topic: str) -> None:
    from kafka import KafkaProducer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    make_topic(w, k, topic)
    group = f"g-{topic}"
    commit(w, group, topic, {0: 180, 1: 10})
    k.change("topic", "delete-records", topic, "--partition", 1, "--to-offset", 30, "--accept-loss")
    ran = k("group", "describe", group)
    assert ran.status == 5
    assert [(r["lag"], r["out_of_range"], r["records_gone"]) for r in ran.of("group_offset")] == [
        (None, "beyond_end", 80),
        (None, "below_start", 20),
    ]
    assert [f["code"] for f in ran.of("finding")] == ["group-offset-beyond-end", "group-offset-below-start"]
    assert [g["lag"] for g in ran.of("group")] == [None]
    (check,) = (row for row in k("cluster", "health").of("health") if row["check"] == "group-offsets")
    assert check["status"] == "warning" and any(topic in line for line in check["examples"])

    commit(w, group, topic, {0: 100, 1: 100})
    if w.version == "2.4":
        return  # brokers do not tell of pending offsets
    producer = KafkaProducer(
        bootstrap_servers=w.bootstrap.split(","),
        transactional_id=f"id-{topic}",
        transaction_timeout_ms=600_000,
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): OffsetAndMetadata(50, "", -1)}, group)
        ran = k("group", "describe", group)
        assert [(r["offset"], r["pending"]) for r in ran.of("group_offset")] == [(100, True), (100, False)]
        (finding,) = ran.of("finding")
        assert finding["code"] == "group-offset-pending" and finding["partition"] == 0
        if w.version >= "3.0":
            assert f"transactional id id-{topic} (producer " in finding["message"]
            assert "Ongoing since " in finding["message"] and ran.status == 0
            assert "kctl transactions abort __consumer_offsets-" in finding["message"]
        producer.commit_transaction()
    finally:
        producer.close(timeout=1)
    for _ in eventually("the offset counts"):
        ran = k("group", "describe", group)
        if [r["offset"] for r in ran.of("group_offset")] == [50, 100]:
            break
    assert ran.of("finding") == [] and ran.status == 0
