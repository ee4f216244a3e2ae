"""Changes of several subjects by a user who may change some of them: what was done is counted, gone on with, taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, eventually, kraft_cluster
from tests.brokers.wire.conftest import WireKctl, fill
from tests.brokers.wire.test_authorization import AUTHORIZER, allow
from tests.brokers.wire.test_changes import configs_of
from tests.conftest import Ran

pytestmark = pytest.mark.brokers
READS = ("DESCRIBE", "DESCRIBE_CONFIGS")


@pytest.fixture(scope="module")
def guarded() -> Iterator[Cluster]:
    """Brokers 1, 2, 3, of which 1 is the controller: who sends requests is known to one that knows all rights."""
    with kraft_cluster("4.3", brokers=3, no_voters=(2, 3), properties=AUTHORIZER) as c:
        yield c


@pytest.fixture
def c(guarded: Cluster) -> Iterator[Cluster]:
    """The cluster; afterwards everybody may do everything again."""
    yield guarded
    allow_all(guarded, None)


@pytest.fixture
def k(c: Cluster, tmp_path: Path) -> WireKctl:
    return WireKctl(c, tmp_path / "journal")


def allow_all(c: Cluster, name: str | None) -> None:
    """Take away the ACLs of a topic or group (None: of all), so that everybody has every right on it."""
    from kafka.admin import (
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        KafkaAdminClient,
        ResourcePatternFilter,
        ResourceType,
    )

    pattern = ResourcePatternFilter(ResourceType.ANY, name, ACLResourcePatternType.ANY)
    admin = KafkaAdminClient(bootstrap_servers=c.bootstrap.split(","))
    try:
        admin.delete_acls([ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)])
    finally:
        admin.close()


def two_topics(c: Cluster, k: WireKctl, topic: str, **records: int) -> tuple[str, str]:
    """Topics of one partition on brokers 1 and 2."""
    names = f"{topic}-a", f"{topic}-b"
    for name in names:
        k.change("topic", "create", name, "--replica-assignment", "1:2")
        fill(c, name, **(records or {"records": 10}))
    return names


def plan_to(folder: Path, topics: Sequence[str], replicas: list[int]) -> Path:
    plan = folder / f"to-{'-'.join(map(str, replicas))}.json"
    rows = [{"topic": topic, "partition": 0, "replicas": replicas} for topic in topics]
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    return plan


def half(ran: Ran, *counts: str) -> str:
    """The id of a change that ended half way, after it was held against what must be said of such a change."""
    assert ran.status == 5, ran.err
    (row,) = ran.of("change")
    assert row["state"] == "partly_applied" and not row["finished"]
    for text in (ran.err, str(row["outcome"])):
        assert "nothing was written" not in text
        for count in counts:
            assert re.search(rf"[ ,]{count}\b", text), (count, text)
        for way in ("resume", "undo"):
            assert f"kctl journal {way} {row['id']}" in text
    return str(row["id"])


def nothing_left(k: WireKctl) -> bool:
    ran = k("reassign", "throttle", "list")
    return ran.status == 0 and ran.of("throttle") == []


@pytest.mark.parametrize("way", ["resume", "undo"])
def test_the_second_batch_of_a_reassignment(
    c: Cluster, k: WireKctl, topic: str, tmp_path: Path, way: str
) -> None:
    orders, payments = two_topics(c, k, topic)
    plan = plan_to(tmp_path, (orders, payments), [1, 3])
    allow(c, "TOPIC", payments, *READS, "ALTER")
    execute = ("reassign", "execute", plan, "--throttle", "50MiB", "--max-batch-moves", 1)
    ran = k.change(*execute, status=5)
    id = half(ran, "1 carried out", "1 refused", "0 unknown", "1 not begun")
    assert f"its throttle stays on brokers 1, 2, 3 and topic {orders}" in ran.err
    assert [row["topic"] for row in ran.of("refused")] == [payments]
    allow_all(c, payments)
    k.change("journal", way, id)
    wanted = [[1, 3]] if way == "resume" else [[1, 2]]
    assert k.replicas(orders) == k.replicas(payments) == wanted
    assert nothing_left(k)


def test_a_right_that_is_withdrawn_while_replicas_move(
    c: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    topics = two_topics(c, k, topic)
    plan = plan_to(tmp_path, topics, [1, 3])
    execute = ("reassign", "execute", plan, "--throttle", "50MiB", "--max-batch-moves", 1)
    with k.stopped(*execute, at="written:0") as moving:
        for name in topics:
            allow(c, "TOPIC", name, *READS)
        ran = moving.go_on()
    id = half(ran, "1 carried out", "1 refused", "1 not begun")
    refused = k.change("journal", "undo", id, status=None)
    assert refused.status in (3, 4) and "nothing was written" in refused.err
    allow_all(c, None)
    k.change("journal", "resume", id)
    assert [k.replicas(name) for name in topics] == [[[1, 3]], [[1, 3]]] and nothing_left(k)


@pytest.mark.parametrize("at", ["written:0", "finished:0"])
def test_a_topic_that_may_not_be_seen_any_more(
    c: Cluster, k: WireKctl, topic: str, tmp_path: Path, at: str
) -> None:
    """It is not gone, and a throttle may be left on it."""
    first, second = two_topics(c, k, topic)
    plan = plan_to(tmp_path, (first, second), [1, 3])
    with k.stopped("reassign", "execute", plan, "--throttle", "50MiB", at=at) as moving:
        allow(c, "TOPIC", second)
        for _ in eventually("it is hidden"):
            if second not in [row["topic"] for row in k("topic", "list").of("topic")]:
                break
        ran = moving.go_on()
    assert ran.status == 5 and second in ran.err and "gone" not in ran.err, ran.err
    (row,) = ran.of("change")
    assert row["state"] == "partly_applied" and f"kctl journal resume {row['id']}" in ran.err
    for _ in range(2):  # the second time nothing else is left of it
        cleared = k.change("reassign", "throttle", "clear", plan, status=None)
        assert cleared.status in (3, 5) and f"may be left on topic {second}" in cleared.err
    verified = k("reassign", "verify", plan)
    states = {row["topic"]: (row["state"], row["isr"], row["missing"]) for row in verified.of("partition")}
    assert (verified.status, states[second]) == (3, (None, None, None)), verified.err
    assert all(
        "Describe on Topic" in row["reason"] for row in verified.of("partition") if row["topic"] == second
    )
    allow_all(c, None)
    k.change("journal", "resume", row["id"])
    assert k.replicas(second) == [[1, 3]] and nothing_left(k)


# --- groups ---------------------------------------------------------------------------------------------------


def group_at(c: Cluster, group: str, topics: Sequence[str], offset: int) -> None:
    """A group without members whose offset is this in each topic."""
    from kafka import KafkaConsumer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    consumer = KafkaConsumer(
        bootstrap_servers=c.bootstrap.split(","), group_id=group, enable_auto_commit=False
    )
    try:
        at = {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1) for topic in topics}
        consumer.assign(list(at))
        consumer.commit(at)
    finally:
        consumer.close()


def offsets(k: WireKctl, group: str) -> dict[str, int]:
    rows = k("group", "describe", group).of("group_offset")
    return {row["topic"]: row["offset"] for row in rows if row["offset"] is not None}


def test_one_of_two_groups_is_deleted(c: Cluster, k: WireKctl, topic: str) -> None:
    topics = two_topics(c, k, topic)
    mine, other = f"{topic}-g2", f"{topic}-g3"
    for group in (mine, other):
        group_at(c, group, topics, 7)
    allow(c, "GROUP", other, "DESCRIBE", "READ")
    for _ in eventually("it may not be deleted"):
        ran = k("group", "delete", mine, other, "--yes")
        if ran.status == 5:
            break
    id = half(ran, "1 carried out", "1 refused", "0 unknown")
    assert [row["group"] for row in k("group", "list").of("group") if topic in row["group"]] == [other]
    k.change("journal", "undo", id)
    assert offsets(k, mine) == offsets(k, other) == dict.fromkeys(topics, 7)
    first = k.change("group", "delete", other, mine, status=3)
    assert "nothing was written" in first.err and first.of("change")[0]["state"] == "planned"


OFFSETS: dict[str, Callable[[str, str, str], tuple[object, ...]]] = {
    "reset": lambda group, a, b: ("group", "reset", group, "--to-offset", 4, "--execute"),
    "delete-offsets": lambda group, a, b: (
        *("group", "delete-offsets", group),
        *("--topic", a, "--topic", b),
    ),
}


@pytest.mark.parametrize("way", ["resume", "undo"])
@pytest.mark.parametrize("name", OFFSETS)
def test_offsets_of_one_of_two_topics(c: Cluster, k: WireKctl, topic: str, name: str, way: str) -> None:
    """The coordinator answers item by item in one request."""
    first, second = two_topics(c, k, topic)
    group = f"{topic}-g"
    group_at(c, group, (first, second), 7)
    allow(c, "TOPIC", second, *READS, "WRITE")
    id = half(k.change(*OFFSETS[name](group, first, second), status=5), "0 carried out", "1 in part")
    done = {first: 4} if name == "reset" else {}
    assert offsets(k, group) == {**done, second: 7}
    if way == "resume":
        again = k.change("journal", "resume", id, status=None)  # still not allowed
        half(again, "1 in part")
        allow_all(c, second)
        k.change("journal", "resume", id)
        assert offsets(k, group) == ({first: 4, second: 4} if name == "reset" else {})
    else:
        k.change("journal", "undo", id)
        assert offsets(k, group) == {first: 7, second: 7}


def test_an_offset_that_somebody_else_set_since_is_left_alone(c: Cluster, k: WireKctl, topic: str) -> None:
    first, second = two_topics(c, k, topic)
    group = f"{topic}-g"
    group_at(c, group, (first, second), 7)
    allow(c, "TOPIC", second, *READS, "WRITE")
    id = half(k.change(*OFFSETS["reset"](group, first, second), status=5), "1 in part")
    allow_all(c, second)
    group_at(c, group, [first], 5)
    for way in ("resume", "undo"):
        ran = k.change("journal", way, id, status=None)
        assert ran.status in (4, 5) and f"in {first}-0 is 5, not" in ran.err
        assert offsets(k, group) == {first: 5, second: 7}


# --- configurations -------------------------------------------------------------------------------------------


def test_throttles_of_one_of_two_topics(c: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    first, second = two_topics(c, k, topic)
    plan = plan_to(tmp_path, (first, second), [1, 3])
    allow(c, "TOPIC", second, *READS)
    id = half(k.change("reassign", "throttle", "set", plan, "1MiB", status=5), "1 carried out", "1 refused")
    assert set(configs_of(k, first)) == {
        f"{side}.replication.throttled.replicas" for side in ("leader", "follower")
    }
    k.change("journal", "undo", id)
    assert configs_of(k, first) == {} and nothing_left(k)
    allow_all(c, second)
    k.change("reassign", "throttle", "set", plan, "1MiB")
    allow(c, "TOPIC", second, *READS)
    ran = k.change("reassign", "throttle", "clear", plan, status=5)
    half(ran, "1 in part")
    allow_all(c, second)
    k.change("journal", "resume", ran.of("change")[0]["id"])
    assert nothing_left(k)
