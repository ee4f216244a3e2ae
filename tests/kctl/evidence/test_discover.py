"""What discovery makes of recordings, of folders arranged in other ways, and of things that are no evidence."""

import gzip
import os
import shutil
from pathlib import Path

import pytest

from formats.log.record_batch import Record, write_batch
from kctl.errors import BadValue
from kctl.evidence.broker_logs import is_broker_log
from kctl.evidence.discover import discover
from kctl.evidence.model import BrokerLogKind, FoundEvidence
from tests.conftest import recording, unchanged


def codes(evidence: FoundEvidence) -> list[str]:
    return sorted(finding.code for finding in evidence.findings)


def copies(evidence: FoundEvidence) -> set[tuple[int | None, str | None]]:
    return {(one.broker_id, one.moment) for one in evidence.log_dirs}


def log_dir(folder: Path, broker_id: int | None, *partitions: str, cluster: str = "c1") -> Path:
    """A log directory with empty segments."""
    folder.mkdir(parents=True)
    (folder / "replication-offset-checkpoint").write_text("0\n0\n")
    if broker_id is not None:
        (folder / "meta.properties").write_text(f"version=0\nbroker.id={broker_id}\ncluster.id={cluster}\n")
    for name in partitions:
        (folder / name).mkdir()
        (folder / name / f"{0:020d}.log").touch()
    return folder


def test_an_incident_has_its_brokers_moments_logs_and_znodes() -> None:
    with unchanged(recording("incidents/unclean-2.8")) as folder:
        found = discover([folder])
        assert found.moments == ("before", "during", "after")
    assert copies(found) == {(i, m) for i in (1, 2, 3) for m in ("before", "during", "after")}
    assert {(log.broker_id, log.kind) for log in found.broker_logs} == {
        (i, kind)
        for i in (1, 2, 3)
        for kind in (BrokerLogKind.STATE_CHANGE, BrokerLogKind.CONTROLLER, BrokerLogKind.SERVER)
    }
    assert sorted(export.moment or "" for export in found.znode_exports) == ["after", "before", "during"]
    assert {r.topic_id for r in found.replicas} - {None} == {"LOMoGuytSJSIWrXP55YY2w"}
    assert not found.findings
    assert not found.failures


def test_without_meta_properties_the_folder_tells_the_broker() -> None:
    found = discover([recording("incidents/life-0.8.2")])
    assert {one.broker_id for one in found.log_dirs} == {1, 2, 3}
    assert found.moments[0] == "populated" and found.moments[-1] == "after"


def test_rotated_and_compressed_parts_are_broker_logs() -> None:
    found = discover([recording("incidents/life-0.8.2")])
    names = {log.path.name for log in found.broker_logs if log.kind is BrokerLogKind.STATE_CHANGE}
    assert {
        "state-change.log",
        "state-change.log.2026-11-21-13",
        "state-change.log.2026-11-21-13.gz",
    } == names


def test_two_log_dirs_of_one_broker_belong_together_and_moments_are_told_by_the_folder_above() -> None:
    found = discover([recording("segments/2.8.2")])
    assert copies(found) == {(11, "data-killed"), (11, "data-clean")}
    assert len(found.log_dirs) == 4
    assert found.moments == ("data-killed", "data-clean")
    assert {one.is_clean for one in found.log_dirs if one.moment == "data-clean"} == {True}


def test_one_moment_alone_has_no_name() -> None:
    found = discover([recording("incidents/live-2.8")])
    assert {one.moment for one in found.log_dirs} == {None}
    assert found.moments == ()


def test_a_tier_and_a_cluster_beside_it() -> None:
    found = discover([recording("tier/a-healthy")])
    assert [tier.path.name for tier in found.tiers] == ["kafka-tiered-storage"]
    assert {one.broker_id for one in found.log_dirs} == {1, 2, 3}
    assert not found.findings


def test_a_tier_under_another_name(tmp_path: Path) -> None:
    tier = recording("tier/a-healthy") / "tier" / "kafka-tiered-storage"
    shutil.copytree(tier, tmp_path / "bucket")
    assert [one.path for one in discover([tmp_path]).tiers] == [tmp_path / "bucket"]


def test_kraft_has_a_node_id_and_a_metadata_log() -> None:
    found = discover([recording("segments/4.3.0-kraft") / "data-killed"])
    assert [(one.broker_id, one.is_kraft) for one in found.log_dirs] == [(1, True)]
    assert "__cluster_metadata" in {r.topic for r in found.replicas}
    assert {r.kind.value for r in found.replicas} == {"live", "delete"}


def test_a_partition_folder_alone_knows_its_broker() -> None:
    folder = recording("segments/2.8.2") / "data-clean/broker-11/logdir-0/orders.plain-1"
    found = discover([folder])
    assert [(r.topic, r.partition, r.broker_id) for r in found.replicas] == [("orders.plain", 1, 11)]
    assert not found.log_dirs[0].is_whole
    assert found.log_dirs[0].is_clean


def test_files_are_taken_by_their_names(tmp_path: Path) -> None:
    for name in ("state-change.log.3", "znodes.jsonl", "whatever.txt"):
        (tmp_path / name).touch()
    batch = write_batch([Record(0, 5, None, b"v")], partition_leader_epoch=0)
    (tmp_path / "whatever.bin").write_bytes(b"something before it" + batch)
    found = discover([tmp_path / name for name in sorted(os.listdir(tmp_path))])
    assert [log.kind for log in found.broker_logs] == [BrokerLogKind.STATE_CHANGE]
    assert len(found.znode_exports) == 1
    assert [path.name for path, _ in found.files] == ["whatever.bin"]


def test_brokers_by_number_in_a_folder_of_brokers(tmp_path: Path) -> None:
    for host in (1, 2):
        log_dir(tmp_path / "brokers" / str(host) / "data", None, "t-0")
    assert copies(discover([tmp_path])) == {(1, None), (2, None)}


def test_an_option_says_whose_it_is(tmp_path: Path) -> None:
    log_dir(tmp_path / "this", None, "t-0")
    log_dir(tmp_path / "that", None, "t-0")
    assert codes(discover([tmp_path])) == ["evidence-broker-unknown"] * 2
    found = discover([tmp_path], brokers=[f"4={tmp_path}/this", f"5={tmp_path}/that"])
    assert copies(found) == {(4, None), (5, None)}
    assert not found.findings
    alone = discover([], brokers=[f"4={tmp_path}/this"])
    assert copies(alone) == {(4, None)}


@pytest.mark.parametrize("text", ["x=/tmp", "=/tmp", "3=", "3", "\u0663=/tmp"])
def test_an_option_without_its_form_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        discover([], brokers=[text])


def test_moments_by_the_folder_above_without_broker_folders(tmp_path: Path) -> None:
    for moment in ("monday", "tuesday"):
        for disk in ("data-0", "data-1"):
            log_dir(tmp_path / moment / disk, 7, f"t-{disk[-1]}")
    found = discover([tmp_path])
    assert copies(found) == {(7, "monday"), (7, "tuesday")}
    assert not found.findings


def test_a_broker_of_one_moment_only_is_in_the_moment_of_its_folder(tmp_path: Path) -> None:
    log_dir(tmp_path / "a" / "broker-1", 1, "t-0")
    log_dir(tmp_path / "b" / "broker-1", 1, "t-0")
    log_dir(tmp_path / "b" / "broker-2", 2, "t-0")
    (tmp_path / "b" / "znodes.jsonl").touch()
    found = discover([tmp_path])
    assert copies(found) == {(1, "a"), (1, "b"), (2, "b")}
    assert found.znode_exports[0].moment == "b"


def test_hosts_above_moments_above_brokers(tmp_path: Path) -> None:
    for host, broker in (("h1", 1), ("h2", 2)):
        for moment in ("killed", "restarted"):
            log_dir(tmp_path / host / moment / f"broker-{broker}", broker, "t-0")
    assert copies(discover([tmp_path])) == {(b, m) for b in (1, 2) for m in ("killed", "restarted")}


def test_moments_named_alike_get_the_folder_that_differs(tmp_path: Path) -> None:
    for day in ("mon", "tue"):
        log_dir(tmp_path / day / "copy" / "broker-1", 1, "t-0")
    assert {m for _, m in copies(discover([tmp_path]))} == {"mon", "tue"}


def test_named_moments_keep_their_order(tmp_path: Path) -> None:
    for name in ("x", "y"):
        log_dir(tmp_path / name / "broker-1", 1, "t-0")
    found = discover([tmp_path], moments=[f"second={tmp_path}/y", f"first={tmp_path}/x"])
    assert copies(found) == {(1, "first"), (1, "second")}
    assert found.moments == ("second", "first")


def test_the_metadata_log_of_kraft_orders_moments_whatever_the_clocks_say(tmp_path: Path) -> None:
    """A node whose clock was ahead wrote the newest records of the first moment, and lost its disk before the second."""
    for name, epoch, offset, time in (("z-first", 3, 90, 9_000), ("a-second", 9, 40, 5_000)):
        data = log_dir(tmp_path / name / "broker-1", 1, "__cluster_metadata-0", "t-0")
        batch = write_batch([Record(offset, time, None, b"x")], partition_leader_epoch=epoch)
        (data / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(batch)
    assert discover([tmp_path]).moments == ("z-first", "a-second")


def test_several_roots_are_told_apart(tmp_path: Path) -> None:
    for name in ("x", "y"):
        log_dir(tmp_path / name / "broker-1", 1, "t-0")
    found = discover([tmp_path / "x" / "broker-1", tmp_path / "y" / "broker-1"])
    assert copies(found) == {(1, "x"), (1, "y")}
    place = found.place_of(found.replicas[0].folder, found.replicas[0].log_dir.root)
    assert (place.file, place.evidence) == ("t-0", str(tmp_path / "x" / "broker-1"))


def test_a_moved_replica_is_not_a_second_moment(tmp_path: Path) -> None:
    log_dir(tmp_path / "broker-1" / "d0", 1, "t-0", "u-0", "v-0")
    log_dir(tmp_path / "broker-1" / "d1", 1, f"t-0.{'a' * 32}-future", "w-0", "x-0")
    assert copies(discover([tmp_path])) == {(1, None)}


def test_a_partition_in_two_log_dirs_is_wrong(tmp_path: Path) -> None:
    log_dir(tmp_path / "broker-1" / "d0", 1, "t-0", "u-0", "v-0")
    log_dir(tmp_path / "broker-1" / "d1", 1, "t-0", "w-0", "x-0")
    found = discover([tmp_path])
    assert copies(found) == {(1, None)}
    assert codes(found) == ["log-dir-duplicate-partition"]


def test_broker_logs_tell_their_broker_by_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with gzip.open(tmp_path / "x" / "state-change.log.1.gz", "wb") as file:
        file.write(b"[2020-01-01 00:00:00,000] TRACE Broker 12 received LeaderAndIsr (state.change.logger)\n")
    assert [log.broker_id for log in discover([tmp_path]).broker_logs] == [12]


@pytest.mark.parametrize(
    ("texts", "broker_id"),
    [
        (("KafkaConfig values: \n\tbroker.id = 7\n (kafka.server.KafkaConfig)",), 7),
        (("KafkaConfig values: \n\tnode.id = 7\n (kafka.server.KafkaConfig)",), 7),
        (("Property broker.id is overridden to 8 (kafka.utils.VerifiableProperties)",), 8),
        (("Property max.broker.id is overridden to 8 (kafka.utils.VerifiableProperties)",), None),
        (("[KafkaServer id=1] started (kafka.server.KafkaServer)", "[KafkaServer id=2] started (kafka.server.KafkaServer)"), None),
    ],
)  # fmt: skip
def test_broker_logs_are_of_the_broker_of_their_configuration_or_of_none_of_several(
    tmp_path: Path, texts: tuple[str, ...], broker_id: int | None
) -> None:
    (tmp_path / "server.log").write_text(
        "".join(f"[2026-11-21 13:00:00,000] INFO {text}\n" for text in texts)
    )
    assert [log.broker_id for log in discover([tmp_path]).broker_logs] == [broker_id]


@pytest.mark.parametrize(("before", "is_so"), [("", True), ("\n", True), ("> ", False), ("As in ", False)])
def test_a_broker_log_holds_a_line_that_begins_as_brokers_write_it(
    tmp_path: Path, before: str, is_so: bool
) -> None:
    path = tmp_path / "notes"
    path.write_text(f"{before}[2026-11-21 13:00:00,000] INFO starting (kafka.server.KafkaServer)\n")
    assert is_broker_log(path) == is_so


def test_a_foreign_folder_stops_a_broker_but_gathered_logs_do_not(tmp_path: Path) -> None:
    folder = log_dir(tmp_path / "broker-1", 1, "t-0")
    (folder / "logs").mkdir()
    (folder / "logs" / "server.log").touch()
    assert codes(discover([tmp_path])) == []
    (folder / "lost+found").mkdir()
    assert codes(discover([tmp_path])) == ["log-dir-foreign-folder"]


def test_links_out_and_in_circles_are_said_and_not_followed(tmp_path: Path) -> None:
    outside = log_dir(tmp_path / "outside", 9, "secret-0")
    inside = log_dir(tmp_path / "evidence" / "broker-1", 1, "t-0")
    (inside.parent / "out").symlink_to(outside)
    (inside.parent / "round").symlink_to(inside.parent)
    (inside.parent / "self").symlink_to(inside.parent / "self")
    found = discover([tmp_path / "evidence"])
    assert copies(found) == {(1, None)}
    assert codes(found) == ["evidence-link-not-followed"] * 2


def test_what_was_named_and_is_not_there_fails_and_the_rest_goes_on(tmp_path: Path) -> None:
    log_dir(tmp_path / "broker-1", 1, "t-0")
    os.mkfifo(tmp_path / "pipe")
    found = discover([tmp_path / "nowhere", tmp_path / "broker-1", tmp_path / "pipe"])
    assert [error.message.removeprefix(str(tmp_path)) for error in found.failures] == [
        "/nowhere: no such file or directory",
        "/pipe: is a named pipe, not a file or folder",
    ]
    assert len(found.replicas) == 1


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    folder = os.fsencode(log_dir(tmp_path / "broker-1", 1))
    os.mkdir(folder + b"/caf\xe9-0")
    os.mkdir(folder + b"/caf\xe9")
    found = discover([tmp_path])
    assert [r.partition for r in found.replicas] == [0]
    assert [f.place.file for f in found.findings] == ["broker-1/caf\\xe9"]


def test_several_clusters_and_a_renamed_broker(tmp_path: Path) -> None:
    log_dir(tmp_path / "broker-1", 1, "t-0", cluster="a")
    log_dir(tmp_path / "broker-2", 3, "t-0", cluster="b")
    assert codes(discover([tmp_path])) == ["evidence-broker-id-differs", "evidence-several-clusters"]


def test_meta_properties_that_no_broker_reads(tmp_path: Path) -> None:
    folder = log_dir(tmp_path / "broker-1", 1, "t-0")
    (folder / "meta.properties").write_text("version=9\nbroker.id=1\n")
    assert codes(discover([tmp_path])) == ["meta-properties-malformed"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_without_permission_is_a_finding(tmp_path: Path) -> None:
    folder = log_dir(tmp_path / "broker-1", 1, "t-0")
    (tmp_path / "closed").mkdir(mode=0)
    assert codes(discover([tmp_path])) == ["evidence-unreadable"]
    assert folder


def test_ten_thousand_partitions_cost_one_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_dir(tmp_path / "broker-1", 1, *(f"t-{n}" for n in range(200)))
    listed = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
    assert len(discover([tmp_path]).replicas) == 200
    assert len(listed) < 10


def test_captured_output_is_a_broker_log_by_what_it_holds(tmp_path: Path) -> None:
    """Of several brokers in one folder; what only looks like a broker's log by its name is none."""
    line = "[2026-11-21 13:18:45,240] INFO {} ({})\n"
    told = {
        "kafkaServer.out": line.format("[KafkaServer id=7] started", "kafka.server.KafkaServer"),
        "kafka-8.log.1": line.format("[Broker id=8] Add 1 partitions", "state.change.logger"),
        "node.log": line.format(
            "[QuorumController id=9] Becoming active", "org.apache.kafka.controller.QuorumController"
        ),
    }
    others = {
        "connect.log": line.format("Kafka Connect started", "org.apache.kafka.connect.runtime.Connect"),
        "kafkaServer-gc.log": "[2026-11-21T13:18:45.240+0000][gc] GC(0) Pause Young\n",
        "merged.txt": "".join(told.values()),
        "00000000000000000000.log": told["kafkaServer.out"],
    }
    for name, text in (told | others).items():
        (tmp_path / name).write_text(text)
    found = discover([str(tmp_path)])
    logs = [(log.path.name, str(log.kind), log.broker_id) for log in found.broker_logs]
    assert logs == [
        ("kafka-8.log.1", "stdout", 8),
        ("kafkaServer.out", "stdout", 7),
        ("node.log", "stdout", 9),
    ]
    assert [left.path.name for left in found.logs_left] == ["merged.txt"]
