"""Groups of the consumer, share and streams protocols on real clusters: described, reset, brought back."""

from __future__ import annotations

import importlib
import json
import re
import sys
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace, new_class
from typing import Any

import pytest

from formats.messages.schema import Versions
from tests.brokers.cluster import Cluster, eventually
from tests.brokers.jars import classpath, jars
from tests.brokers.processes import JavaProcess, java_command
from tests.brokers.wire.conftest import WireKctl
from tests.brokers.wire.test_groups import make_topic, offsets
from tests.conftest import Ran

CONSOLE = "org.apache.kafka.tools.consumer"


@contextmanager
def running(w: Cluster, main: str, *args: object) -> Iterator[None]:
    """A program of Kafka's that reads until the block ends."""
    command = java_command(
        classpath(w.version), f"{CONSOLE}.{main}", ["--bootstrap-server", w.bootstrap, *args], heap="256m"
    )
    process = JavaProcess(command, w.folder / f"{uuid.uuid4()}.log")
    try:
        yield
    finally:
        process.terminate()
        for _ in eventually("it has left its group"):
            if not process.is_running:
                break


def needs(w: Cluster, version: str) -> None:
    if w.zookeeper is not None or w.version < version:
        pytest.skip(f"it needs Kafka {version}")


def described(k: WireKctl, group: str, state: str) -> Any:
    for _ in eventually(f"{group} is {state}"):
        ran = k("group", "describe", group)
        if ran.status == 0 and ran.of("group")[0]["state"] == state:
            return ran
    return None


def test_a_group_of_the_consumer_protocol(w: Cluster, k: WireKctl, topic: str) -> None:
    needs(w, "4")
    make_topic(w, k, topic)
    group = f"g-{topic}"
    properties = ("group.protocol=consumer", "auto.commit.interval.ms=200")
    given = [part for one in properties for part in ("--consumer-property", one)]
    with running(w, "ConsoleConsumer", "--topic", topic, "--group", group, "--from-beginning", *given):
        ran = described(k, group, "Stable")
        (row,), (member,) = ran.of("group"), ran.of("member")
        assert (row["type"], row["members"]) == ("consumer", 1) and row["epoch"] >= 1
        assert member["subscription"] == [topic] and member["epoch"] >= 1
        for _ in eventually("it has both partitions, and committed what it read"):
            ran = k("group", "describe", group)
            if set(offsets(k, group).values()) == {100} and ran.of("group")[0]["lag"] == 0:
                break
        assert ran.of("member")[0]["assignment"] == [f"{topic}-0", f"{topic}-1"]
        listed = {g["group"]: g["type"] for g in k("group", "list").of("group")}
        assert listed[group] == "consumer"
        assert "has 1 member" in k.change("group", "reset", group, "--to-earliest", "--execute", status=4).err
    described(k, group, "Empty")
    k.change("group", "reset", group, "--to-earliest", "--execute")
    assert set(offsets(k, group).values()) == {0}
    k.change("journal", "undo", k.ids()[-1])
    assert set(offsets(k, group).values()) == {100}
    k.change("group", "delete", group)
    assert k("group", "describe", group).status == 3


def test_a_share_group(w: Cluster, k: WireKctl, topic: str) -> None:
    needs(w, "4.3")
    make_topic(w, k, topic)
    group = f"g-{topic}"
    of_group = ("--entity-type", "groups", "--entity-name", group)
    k.change("config", "set", *of_group, "share.auto.offset.reset=earliest")
    with running(w, "ConsoleShareConsumer", "--topic", topic, "--group", group):
        ran = described(k, group, "Stable")
        assert (ran.of("group")[0]["type"], ran.of("group")[0]["protocol"]) == ("share", "simple")
        assert ran.of("member")[0]["subscription"] == [topic]
        for _ in eventually("all is acknowledged"):
            rows = k("group", "describe", group).of("group_offset")
            if [(row["offset"] is not None, row["lag"]) for row in rows] == [(True, 0)] * 2:
                break
        assert k.change("group", "reset", group, "--to-earliest", "--execute", status=4).of("change") == []
    described(k, group, "Empty")
    before = offsets(k, group)  # where it begins is written behind what is acknowledged
    reset = k.change("group", "reset", group, "--topic", f"{topic}:0", "--to-offset", 40, "--execute")
    assert "acknowledged" in reset.err
    assert offsets(k, group) == {**before, (topic, 0): 40}
    k.change("journal", "undo", k.ids()[-1])
    assert offsets(k, group) == before
    part = k.change("group", "delete-offsets", group, "--topic", f"{topic}:0", status=None)
    assert part.status == 4 and "whole topics" in part.err
    k.change("group", "delete-offsets", group, "--topic", topic)
    assert set(offsets(k, group).values()) <= {None}
    k.change("journal", "undo", k.ids()[-1])
    assert offsets(k, group) == before
    k.change("group", "delete", group)
    assert k("group", "describe", group).status == 3
    k.change("journal", "undo", k.ids()[-1])
    assert offsets(k, group) == before


def test_a_share_group_whose_offsets_cannot_be_set(w: Cluster, k: WireKctl, topic: str) -> None:
    """Brokers of 4.1 answer that offsets were set without an error, and set none; and they do not tell the lag."""
    needs(w, "4.1")
    if w.version >= "4.2":
        pytest.skip("brokers from 4.2 on set offsets")
    if {r["name"]: r["finalized_level"] for r in k("feature", "list").of("feature")}["share.version"] == 0:
        k.change("feature", "upgrade", "share.version=1")  # new clusters have it from 4.2 on
    make_topic(w, k, topic)
    group = f"g-{topic}"
    of_group = ("--entity-type", "groups", "--entity-name", group)
    k.change("config", "set", *of_group, "share.auto.offset.reset=earliest")
    with running(w, "ConsoleShareConsumer", "--topic", topic, "--group", group):
        for _ in eventually("it has read something of both partitions"):
            ran = described(k, group, "Stable")
            rows = ran.of("group_offset")
            if [(row["offset"], row["high_watermark"], row["lag"]) for row in rows] == [(0, 100, None)] * 2:
                break
        assert ran.of("group")[0]["type"] == "share" and ran.of("member")[0]["subscription"] == [topic]
    described(k, group, "Empty")
    assert {g["group"]: g["type"] for g in k("group", "list").of("group")}[group] == "share"
    before, changes = offsets(k, group), k.ids()
    reset = ("group", "reset", group, "--topic", topic, "--to-latest")
    for how in ("--execute", "--dry-run"):
        ran = k.change(*reset, how, status=3)
        assert "AlterShareGroupOffsets needs Kafka 4.2 (KIP-932); nothing was written" in ran.err
    for gone in (("delete-offsets", group, "--topic", topic), ("delete", group)):
        ran = k.change("group", *gone, status=4)
        assert "cannot be brought back" in ran.err and "--accept-loss" in ran.err
    assert (k.ids(), offsets(k, group)) == (changes, before)
    k.change("group", "delete-offsets", group, "--topic", topic, "--accept-loss")
    assert offsets(k, group) == {}
    assert "needs Kafka 4.2" in k.change("journal", "undo", k.ids()[-1], status=3).err
    k.change("group", "delete", group, "--accept-loss")
    assert k("group", "describe", group).status == 3


class Foreign:
    """A request that another client knows, as kctl sends it."""

    NAME = "StreamsGroupHeartbeat"

    def __init__(self, request: Any, answer: Any) -> None:
        self._request, self._answer = request, answer
        always = Versions(0, request.max_version)
        self.MESSAGE = SimpleNamespace(key=request.API_KEY, versions=always, flexible=always)

    def encoded(self, version: int) -> bytes:
        return bytes(self._request.encode(version=version))

    def answered(self, data: memoryview, version: int) -> Any:
        return self._answer.decode(bytes(data), version=version)


@pytest.fixture
def heartbeat(tmp_path: Path) -> Any:
    """The request by which a member of Kafka Streams joins, and its answer, as the jar defines them."""
    from kafka.protocol.api_message import ApiMessage

    package = tmp_path / "streams_heartbeat"
    package.mkdir()
    (package / "__init__.py").touch()
    with zipfile.ZipFile(next(jars("4.3").glob("kafka-clients-*.jar"))) as jar:
        for end in ("Request", "Response"):
            text = jar.read(f"common/message/StreamsGroupHeartbeat{end}.json").decode()
            plain = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
            (package / f"StreamsGroupHeartbeat{end}.json").write_text(json.dumps(plain))
    sys.path.insert(0, str(tmp_path))
    try:
        importlib.invalidate_caches()
        yield [
            new_class(f"StreamsGroupHeartbeat{end}", (ApiMessage,), {"load_json": "streams_heartbeat"})
            for end in ("Request", "Response")
        ]
    finally:
        sys.path.remove(str(tmp_path))


def join_streams(w: Cluster, k: WireKctl, topic: str, group: str, heartbeat: Any) -> Ran:
    """A member of Kafka Streams joins a group, and has tasks; how kctl then describes the group."""
    from kctl.wire.adapter import Access, Wire
    from kctl.wire.groups import coordinator_of

    member = str(uuid.uuid4())
    topology = heartbeat[0].Topology
    subtopology = topology.Subtopology(
        subtopology_id="0",
        source_topics=[topic],
        source_topic_regex=[],
        state_changelog_topics=[],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    joins = {
        "rebalance_timeout_ms": 30000,
        "topology": topology(epoch=0, subtopologies=[subtopology]),
        "process_id": "p",
        "client_tags": [],
    }
    none_yet: dict[str, list[Any]] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    with Wire(Access(servers=w.bootstrap, timeout=60)) as wire:
        epoch, owned, more = 0, none_yet, joins
        for _ in eventually("it has tasks"):
            request = heartbeat[0](
                group_id=group,
                member_id=member,
                member_epoch=epoch,
                endpoint_information_epoch=-1,
                **owned,
                **more,
            )
            answer = wire.send(Foreign(request, heartbeat[1]), coordinator_of(wire, group))
            if answer.error_code:  # the coordinator is being made
                continue
            epoch, more = answer.member_epoch, {}
            if answer.active_tasks:
                owned = {"active_tasks": answer.active_tasks, "standby_tasks": [], "warmup_tasks": []}
            ran = k("group", "describe", group)
            if ran.of("member") and ran.of("member")[0]["active_tasks"]:
                return ran
    raise AssertionError


def test_a_group_of_kafka_streams(w: Cluster, k: WireKctl, topic: str, heartbeat: Any) -> None:
    needs(w, "4.3")
    make_topic(w, k, topic)
    group = f"g-{topic}"
    ran = join_streams(w, k, topic, group, heartbeat)
    (row,), (one,) = ran.of("group"), ran.of("member")
    assert (row["type"], row["members"], row["lag"]) == ("streams", 1, None)
    assert one["active_tasks"] == ["0_0", "0_1"] and one["subscription"] == [topic]
    assert one["assignment"] == [f"{topic}-0", f"{topic}-1"]
    assert [(o["offset"], o["high_watermark"]) for o in ran.of("group_offset")] == [(None, 100)] * 2
    assert {g["group"]: g["type"] for g in k("group", "list").of("group")}[group] == "streams"
