"""Forensic commands on a running cluster: TOPIC-PARTITION in place of a path; groups; nothing is left behind."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tests.brokers.cluster import Cluster
from tests.brokers.wire.conftest import WireKctl, fill
from tests.commands.test_completing import proposed_by_a_cluster
from tests.conftest import kctl


def left_behind() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("kctl-live-*"))


def consume(c: Cluster, topic: str, group: str) -> None:
    """A group that has read and committed all of partition 0."""
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=c.bootstrap.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        read = 0
        while read < 30:
            read += sum(map(len, consumer.poll(1000).values()))
        consumer.commit()
    finally:
        consumer.close()


def test_segments_and_epochs_of_a_running_cluster(w: Cluster, k: WireKctl, topic: str) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2,2:1")
    fill(w, topic, records=30)
    verified = k("segment", "verify", topic)
    assert verified.status == 0 and verified.of("finding") == []
    assert verified.of("summary")[0]["records"] == 30
    dumped = k("segment", "dump", f"{topic}-0", "--records")
    assert [r["offset"] for r in dumped.of("record")] == list(range(30))
    (lineage,) = k("epoch", "show", f"{topic}-0").of("lineage")
    assert (lineage["broker_id"], lineage["log_end_offset"], lineage["high_watermark"]) == (1, 30, 30)
    asked = k("epoch", "end-offset", "--epoch", 0, f"{topic}-0")
    (end,), (told,) = asked.of("end_offset"), asked.of("leader_end_offset")
    assert end["end_offset"] == 30
    assert (told["broker_id"], told["leader_epoch"], told["end_offset"], told["difference"]) == (
        1,
        0,
        30,
        None,
    )
    (told,) = k("epoch", "end-offset", "--epoch", 7, f"{topic}-0").of("leader_end_offset")
    assert (told["leader_epoch"], told["end_offset"], told["difference"]) == (-1, -1, None)
    unknown = k("segment", "verify", f"{topic}-7")
    assert unknown.status == 3 and unknown.err.startswith(
        f"kctl: {topic}-7: topic {topic} has no partition 7\n"
    )
    assert k("transactions", "hanging", f"{topic}-0").status == 0
    followed = k("remote", "format", f"{topic}-0", "--follow")
    assert followed.status == 2 and "--follow reads files" in followed.err
    assert left_behind() == []


def test_shells_complete_names_of_the_cluster(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    fill(w, topic, records=30)
    consume(w, topic, f"g-{topic}")
    at = f"--bootstrap-server {w.bootstrap}"
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    assert proposed_by_a_cluster(f"kctl topic describe {at} {topic[:-1]}", **cache) == [topic]
    assert proposed_by_a_cluster(f"kctl group describe {at} g-{topic[:-1]}", **cache) == [f"g-{topic}"]
    assert proposed_by_a_cluster(f"kctl reassign plan {at} --drain ", **cache) == ["1", "2", "3"]
    assert proposed_by_a_cluster(f"kctl config get {at} --entity-type brokers --entity-name ", **cache) == [
        "1",
        "2",
        "3",
    ]


def test_groups(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    fill(w, topic, records=30)
    consume(w, topic, f"g-{topic}")
    fill(w, topic, records=5)
    assert f"g-{topic}" in [g["group"] for g in k("group", "list").of("group")]
    described = k("group", "describe", f"g-{topic}")
    (group,), (offset,) = described.of("group"), described.of("group_offset")
    assert (group["state"], group["members"], group["lag"]) == ("Empty", 0, 5)
    assert (offset["offset"], offset["high_watermark"], offset["lag"]) == (30, 35, 5)
    file = tmp_path / "offsets.csv"
    assert k("group", "export", f"g-{topic}", "--to", file).status == 0
    assert file.read_text() == f"{topic},0,30\n"
    for goal, expected in ((("--to-earliest",), 0), (("--to-latest",), 35), (("--shift-by", -40), 0)):
        (row,) = k("group", "reset-plan", f"g-{topic}", *goal).of("group_reset")
        assert (row["new_offset"], row["was_outside"]) == (expected, goal[0] == "--shift-by")
    (row,) = k("group", "reset-plan", f"g-{topic}", "--to-time", "2030-01-01T00:00:00Z").of("group_reset")
    assert row["new_offset"] == 35, "no record is so late"
    # What coordinators hold is what their topic says.
    (seen,) = [
        g for g in k("offsets", "list", "__consumer_offsets").of("group") if g["group"] == f"g-{topic}"
    ]
    assert seen["offsets"] == 1
    # And Kafka's own tool takes what is made of it.
    file.write_bytes(kctl("offsets", "reset-file", f"g-{topic}", "__consumer_offsets", env=k.environment).out)
    tool = (
        "kafka.admin.ConsumerGroupCommand"
        if w.version in ("2.4", "2.8")
        else "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    )
    reset = ("--group", f"g-{topic}", "--reset-offsets", "--from-file", file, "--execute")
    assert re.search(rf"{topic} +0 +30\b", w.tool(tool, "--bootstrap-server", w.bootstrap, *reset))
    assert k("group", "describe", "nobody").errors == [
        "kctl: no group nobody; `kctl group list` lists the groups"
    ]
    assert k("group", "reset-plan", f"g-{topic}").status == 2


def test_a_group_of_the_newer_protocol(w: Cluster, k: WireKctl, topic: str) -> None:
    """Its members are described by a request of its own; no member need be there for that."""
    from kctl.wire.adapter import Access, Wire
    from kctl.wire.protocol.messages import ConsumerGroupDescribeRequest

    with Wire(Access(servers=w.bootstrap)) as wire:
        known = wire.version_of(ConsumerGroupDescribeRequest)
        assert (known is not None) == (w.version in ("3.9", "4.1", "4.3"))
        if known is not None:
            request = ConsumerGroupDescribeRequest(group_ids=["nobody"], include_authorized_operations=False)
            (answer,) = wire.send(request).groups
            assert (answer.group_id, answer.members) == ("nobody", []) and answer.error_code
