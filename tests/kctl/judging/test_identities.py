"""Two places of one evidence that state two identities: each pair is a finding that names both."""

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from formats.log.record_batch import Record, write_batch
from formats.messages.cluster_metadata import MetadataRecord
from kctl.copies.moments import clusters_of
from kctl.evidence.discover import discover
from kctl.findings import Finding
from kctl.identities.of_folders import folder_findings
from kctl.judging.identities import cluster_findings
from tests.conftest import rows
from tests.kctl.test_metadata_decisions import record, write_log

VOTERS = (
    "AAAAAAAAAAAAAAEBAAAAAAIVl3QpACAAAAACAAABohi5+IwAAAGiGLn4jP//////////////////AAAAAyoAAAAIAAAAAxYAAAAAAaIYufh1AA"
    "AeAAACCAAAAAUKAAAAAQAA0AIAAAQIAAAABroCAAAEAAAAAaqQ7a9yNkwireNeYdUMleICC0NPTlRST0xMRVIKMTI3LjAuMC4xgU0AAAAAAQAA"
    "AAAAAk04BElkek/ujrH+UzM4vAACC0NPTlRST0xMRVIKMTI3LjAuMC4xgU4AAAAAAQAAAAAAAx8ZYzSpIUoQnUWtPFBRtFwCC0NPTlRST0xMRV"
    "IKMTI3LjAuMC4xgU8AAAAAAQAAAAAAAAAAAAAAAwAAAD8AAAAAAg3O0T0AIAAAAAAAAAGiGLn4kgAAAaIYufiS//////////////////8AAAAB"
    "GgAAAAgAAAAEBgAAAAA="
)
"""The first snapshot of a quorum of 4.3: voters 1, 2 and 3 with their directories."""
CLUSTER = "p0_xtebuSt2Ap8p60r4wig"
DIRECTORY = "4Bm3aohMJTYKCRPslN8YKw"


def log_dir(path: Path, broker_id: int, *, version: int = 1, directory: str | None = None) -> Path:
    path.mkdir(parents=True)
    key = "node.id" if version else "broker.id"
    lines = [f"version={version}", f"{key}={broker_id}", f"cluster.id={CLUSTER}"]
    lines += [f"directory.id={directory}"] if directory else []
    (path / "meta.properties").write_text("\n".join(lines) + "\n")
    return path


def settings(folder: Path, **values: object) -> None:
    lines = [f"{key.replace('_', '.')}={value}" for key, value in values.items()]
    (folder / "server.properties").write_text("\n".join(lines) + "\n")


def quorum_state(folder: Path, *voters: int) -> None:
    metadata = folder / "__cluster_metadata-0"
    metadata.mkdir()
    listed = ",".join(f'{{"voterId":{voter}}}' for voter in voters)
    (metadata / "quorum-state").write_text(
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        f'"currentVoters":[{listed}],"data_version":0}}'
    )


def found_in(folder: Path) -> list[Finding]:
    evidence = discover([folder])
    clusters = clusters_of(evidence, lambda error: None)
    return [*folder_findings(evidence), *cluster_findings(evidence, clusters)]


def another_node(folder: Path) -> None:
    log_dir(folder / "broker-1/data", 2)
    settings(folder / "broker-1", process_roles="broker", node_id=1, log_dirs="/var/data")


def fewer_voters(folder: Path) -> None:
    quorum_state(log_dir(folder / "broker-1/data", 1), 1)
    settings(
        folder / "broker-1",
        process_roles="broker,controller",
        node_id=1,
        controller_quorum_voters="1@a:1,2@b:1,3@c:1",
    )


def same_directory(folder: Path) -> None:
    log_dir(folder / "broker-1/data", 1, directory=DIRECTORY)
    log_dir(folder / "broker-2/data", 2, directory=DIRECTORY)


def kraft_over_zookeeper(folder: Path) -> None:
    log_dir(folder / "broker-3/data", 3, version=0)
    settings(folder / "broker-3", process_roles="broker,controller", node_id=3)


def zookeeper_over_kraft(folder: Path) -> None:
    log_dir(folder / "broker-3/data", 3)
    settings(folder / "broker-3", broker_id=3, zookeeper_connect="zk:2181")


def forgotten_disk(folder: Path) -> None:
    for disk in ("disk1", "disk2"):
        log_dir(folder / "broker-3" / disk, 3)
    settings(folder / "broker-3", process_roles="broker", node_id=3, log_dirs="/mnt/disk1")


def lost_disk(folder: Path) -> None:
    log_dir(folder / "broker-3" / "disk1", 3)
    settings(folder / "broker-3", process_roles="broker", node_id=3, log_dirs="/mnt/disk1,/mnt/disk2")


def one_copy_of_two(folder: Path) -> None:
    log_dir(folder / "broker-3" / "data", 3)
    settings(folder / "broker-3", process_roles="broker", node_id=3, log_dirs="/a/kafka, /b/kafka")


def partition(path: Path, topic_id: str) -> None:
    path.mkdir()
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")


def znodes(folder: Path, **values: object) -> None:
    """An export; keys are paths with `_` for `/`."""
    rows = [
        {"path": "/" + name.replace("_", "/"), "data": base64.b64encode(json.dumps(value).encode()).decode()}
        for name, value in {"brokers_ids": {}, **values}.items()
    ]
    (folder / "znodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def topic(topic_id: str, replicas: list[int]) -> dict[str, object]:
    return {
        "partitions": {"0": replicas}, "topic_id": topic_id, "adding_replicas": {}, "removing_replicas": {}, "version": 3
    }  # fmt: skip


def emptied_zookeeper(folder: Path) -> None:
    log_dir(folder / "broker-1/data", 1, version=0)
    znodes(folder, cluster_id={"version": "1", "id": "WZvsMGZrT5afOvZpYboU2Q"})


def other_ensemble(folder: Path) -> None:
    log_dir(folder / "broker-1/data", 1, version=0)
    (folder / "broker-1/logs").mkdir()
    (folder / "broker-1/logs/server.log").write_text(
        "[2026-11-26 16:56:45,628] INFO Cluster ID = WZvsMGZrT5afOvZpYboU2Q (kafka.server.KafkaServer)\n"
        "[2026-11-26 16:56:45,629] INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)\n"
    )


def other_ensemble_beside_the_moments(folder: Path) -> None:
    other_ensemble(folder)
    for moment in ("before", "after"):
        shutil.copytree(folder / "broker-1" / "data", folder / "moments" / moment / "broker-1" / "data")
    shutil.rmtree(folder / "broker-1" / "data")


def znode_of_an_old_client(folder: Path) -> None:
    partition(log_dir(folder / "broker-0/data", 0, version=0) / "crates-0", "zcdgx9lCR06NL_1lwO72wA")
    znodes(folder, brokers_topics_crates=topic("FF0hqVGRSYKquNtJ_YGuDQ", [0]))


def generated_ids(folder: Path) -> None:
    for broker in (1004, 1005, 1006):
        data = log_dir(folder / f"broker-{broker}/data", broker, version=0)
        partition(data / "crates-0", "zcdgx9lCR06NL_1lwO72wA")
    znodes(folder, brokers_topics_crates=topic("zcdgx9lCR06NL_1lwO72wA", [1001, 1002, 1003]))


def two_hosts(folder: Path) -> None:
    """The directory whose `meta.properties` was written last has the older log."""
    for host, epoch, second in (("host-a", 3, 15), ("host-b", 4, 10)):
        data = log_dir(folder / host / "data", 1, version=0)
        meta = data / "meta.properties"
        meta.write_text(f"#\n#Sat Nov 21 13:35:{second} UTC 2026\n{meta.read_text()}")
        partition(data / "orders-0", "zcdgx9lCR06NL_1lwO72wA")
        (data / "orders-0/leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 20\n")


def older_software(folder: Path) -> None:
    log_dir(folder / "broker-1/data", 1)
    (folder / "broker-1/logs").mkdir()
    (folder / "broker-1/logs/server.log").write_text(
        "[2026-11-26 16:56:45,810] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)\n"
        "java.lang.IllegalArgumentException: No MetadataVersion with feature level 27\n"
    )


def no_topic_id(folder: Path) -> None:
    data = log_dir(folder / "broker-1/data", 1)
    partition(data / "orders-0", "zcdgx9lCR06NL_1lwO72wA")
    (data / "orders-1").mkdir()


def replaced_controller_disk(folder: Path) -> None:
    directories = {1: "qpDtr3I2TCKt415h1QyV4g", 2: "TTgESWR6T-6Osf5TMzi8AA", 3: "8YkMIUhNSFoaAZC35bzrUw"}
    for node, directory in directories.items():
        metadata = log_dir(folder / f"broker-{node}/data", node, directory=directory) / "__cluster_metadata-0"
        metadata.mkdir()
        (metadata / f"{0:020}-{0:010}.checkpoint").write_bytes(base64.b64decode(VOTERS))


def strayed(folder: Path) -> None:
    data = log_dir(folder / "broker-3/data", 3, version=0, directory="xYMulALjuqnM_CXgOqEwqg")
    settings(folder / "broker-3", process_roles="broker,controller", node_id=3)
    partition(data / "fees-0.7f0410e1e97d4d82898be1683119fd93-stray", "zcdgx9lCR06NL_1lwO72wA")
    quorum_state(data, 3)


def records_in_stray(folder: Path) -> None:
    data = log_dir(folder / "broker-1/data", 1)
    partition(data / "orders-0", "nxSQ455mSMiAiVRe1_YIeQ")
    partition(data / "orders-0.b4665c45c0fa4fb0ba0108689b4ac4e0-stray", "zcdgx9lCR06NL_1lwO72wA")
    batch = write_batch([Record(offset, 1_000 + offset, None, b"v") for offset in range(50)])
    (data / "orders-0.b4665c45c0fa4fb0ba0108689b4ac4e0-stray" / f"{0:020}.log").write_bytes(batch)
    (data / "orders-0" / f"{0:020}.log").touch()


def started_as_older_software(folder: Path) -> None:
    write_log(folder, [record("FEATURE_LEVEL_RECORD")])
    (folder / "broker-1/logs").mkdir()
    lines = [
        "[2025-06-01 10:00:00,000] INFO Kafka version: 3.8.1 (org.apache.kafka.common.utils.AppInfoParser)",
        "[2026-02-01 10:00:00,000] INFO [KafkaRaftServer nodeId=1] starting (kafka.server.KafkaRaftServer)",
        "[2026-02-01 10:00:00,001] INFO Kafka version: 3.9.1 (org.apache.kafka.common.utils.AppInfoParser)",
    ]
    (folder / "broker-1/logs/server.log").write_text("\n".join(lines) + "\n")


def other_topic_in_metadata(folder: Path) -> None:
    write_log(
        folder, [record("TOPIC_RECORD", topic_id=DIRECTORY), record("PARTITION_RECORD", topic_id=DIRECTORY)]
    )
    partition(folder / "broker-1/data/t-0", "zcdgx9lCR06NL_1lwO72wA")


def unregistered_disk(folder: Path) -> None:
    values = record("REGISTER_BROKER_RECORD", log_dirs=["xYMulALjuqnM_CXgOqEwqg"]).values
    write_log(folder, [MetadataRecord("REGISTER_BROKER_RECORD", 3, values)])
    meta = folder / "broker-1/data/meta.properties"
    meta.write_text(f"{meta.read_text()}directory.id={DIRECTORY}\n")
    partition(folder / "broker-1/data/t-0", "zcdgx9lCR06NL_1lwO72wA")


def logs_of_another_broker(folder: Path) -> None:
    log_dir(folder / "broker-3/data", 3)
    (folder / "broker-3/logs").mkdir()
    (folder / "broker-3/logs/server.log").write_text(
        "[2026-11-26 16:56:45,629] INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)\n"
    )


def denied(folder: Path) -> None:
    log_dir(folder / "broker-3/data", 3)
    (folder / "broker-3/logs").mkdir()
    (folder / "broker-3/logs/server.log").write_text(
        "[2026-11-26 16:56:45,629] ERROR [KafkaServer id=3] Fatal error during startup (kafka.server.KafkaServer)\n"
        "java.nio.file.AccessDeniedException: /data/orders-0/00000000000000000000.index\n"
    )


def copied_settings(folder: Path) -> None:
    for host, disk in (("host-a", 1), ("host-b", 2)):
        log_dir(folder / host / f"disk{disk}", 1, version=0)
        settings(folder / host, broker_id=1, listeners=f"PLAINTEXT://{host}:9092")


def each_is_ahead(folder: Path) -> None:
    for host, epochs in (("host-a", (3, 7)), ("host-b", (4, 6))):
        data = log_dir(folder / host / "data", 1, version=0)
        for number, epoch in enumerate(epochs):
            partition(data / f"orders-{number}", "zcdgx9lCR06NL_1lwO72wA")
            (data / f"orders-{number}/leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 20\n")


def voters_that_were_removed(folder: Path) -> None:
    replaced_controller_disk(folder)
    for node in (1, 2, 3):
        meta = folder / f"broker-{node}/data/meta.properties"
        meta.write_text(
            "\n".join(line for line in meta.read_text().splitlines() if "directory" not in line) + "\n"
        )
    settings(
        folder / "broker-1",
        process_roles="controller",
        node_id=1,
        controller_quorum_voters="1@a:1,2@b:1,3@c:1,4@d:1",
    )


def disk_of_another_broker(root: Path) -> None:
    for broker_id, name in ((1, "disk1"), (2, "disk2")):
        log_dir(root / "broker-1" / name, broker_id)
    settings(root / "broker-1", log_dirs="/mnt/disk1,/mnt/disk2")


@pytest.mark.parametrize(
    ("build", "code", "values"),
    [
        (disk_of_another_broker, "log-dirs-of-two-brokers", ("broker-1/disk1, broker-1/disk2", "of brokers 1, 2")),
        (another_node, "node-id-differs", ("is 1 in broker-1/server.properties", "broker-1/data/meta.properties has 2")),
        (fewer_voters, "voter-set-differs", ("1, 2, 3 by broker-1/server.properties", "1 by broker-1/data/__cluster")),
        (same_directory, "directory-id-twice", (DIRECTORY, "broker-1/data/meta", "broker-2/data/meta")),
        (kraft_over_zookeeper, "kraft-over-zookeeper-dir", ("broker,controller", "version 0")),
        (zookeeper_over_kraft, "zookeeper-over-kraft-dir", ("zookeeper.connect", "version 1")),
        (no_topic_id, "kraft-no-partition-metadata", ("orders-1 has no", "the id zcdgx9lCR06NL_1lwO72wA")),
        (replaced_controller_disk, "voter-directory-gone", ("HxljNKkhShCdRa08UFG0XA", "8YkMIUhNSFoaAZC35bzrUw", "broker-3")),
        (strayed, "kraft-strayed-zookeeper-dir", ("(1: fees-0)", "Nothing is lost")),
        (records_in_stray, "stray-holds-earlier-records", ("ends at 50", "50 records", "ends at 0")),
        (started_as_older_software, "metadata-version-of-newer-software", ("27 (4.1-IV1)", "started as Kafka 3.9")),
        (other_topic_in_metadata, "topic-id-of-metadata-log-differs", (DIRECTORY, "zcdgx9lCR06NL_1lwO72wA in broker-", "with it: 1")),
        (unregistered_disk, "directory-id-not-registered", (DIRECTORY, "xYMulALjuqnM_CXgOqEwqg")),
        (logs_of_another_broker, "broker-id-of-logs-differs", ("logs/server.log are of broker 1", "data beside it has broker id 3")),
        (denied, "owners-not-in-the-copy", ("broker-3/logs/server.log",)),
        (copied_settings, "broker-id-configured-twice", ("host-a:9092", "host-b:9092", "host-b/server.properties")),
        (each_is_ahead, "broker-id-twice", ("orders-1 has the later leader epoch in the one, orders-0 in the other",)),
        (voters_that_were_removed, "voter-set-of-log-differs", ("1, 2, 3, 4 in broker-1/server", "are 1, 2, 3 (broker-")),
        (lost_disk, "log-dir-not-in-the-evidence", ("lists 2 log directories (/mnt/disk1,/mnt/disk2)", "no copy of 1 of them: /mnt/disk2")),
        (one_copy_of_two, "log-dir-not-in-the-evidence", ("lists 2 log directories", "no copy of 1 of them.")),
        (forgotten_disk, "log-dir-not-in-log-dirs", ("broker-3/disk2", "/mnt/disk1")),
        (emptied_zookeeper, "cluster-id-differs", (CLUSTER, "broker-1/data/meta", "WZvsMGZrT5afOvZpYboU2Q", "znodes.jsonl")),
        (other_ensemble, "cluster-id-differs", (CLUSTER, "broker-1/data/meta", "WZvsMGZrT5afOvZpYboU2Q", "server.log")),
        (other_ensemble_beside_the_moments, "cluster-id-differs", (CLUSTER, "moments/before/broker-1/data", "server.log")),
        (znode_of_an_old_client, "topic-id-of-znode-differs", ("FF0hqVGRSYKquNtJ_YGuDQ", "zcdgx9lCR06NL_1lwO72wA in broker-", "with it: 1")),
        (generated_ids, "replicas-under-other-broker-ids", ("1001, 1002, 1003", "1004, 1005, 1006", "ids agree")),
        (two_hosts, "broker-id-twice", ("host-a/data", "host-b/data", "epoch 3, the other's with 4", "orders-0")),
        (older_software, "metadata-version-of-newer-software", ("27 (4.1-IV1)", "Kafka 4.1 or later", "in no file")),
    ],
)  # fmt: skip
def test_a_pair_that_differs_is_named(
    tmp_path: Path, build: Callable[[Path], None], code: str, values: tuple[str, ...]
) -> None:
    build(tmp_path)
    findings = found_in(tmp_path)
    assert [finding.code for finding in findings] == [code]
    for value in values:
        assert value in findings[0].message


def test_software_that_was_updated_with_the_metadata_version(tmp_path: Path) -> None:
    """A log that ends before the version was set says nothing about the software of today."""
    started_as_older_software(tmp_path)
    log = tmp_path / "broker-1/logs/server.log"
    log.write_text(log.read_text().splitlines()[0] + "\n")
    assert found_in(tmp_path) == []


def test_places_that_agree_are_no_finding(tmp_path: Path) -> None:
    for node in (1, 2, 3):
        folder = tmp_path / f"broker-{node}"
        quorum_state(log_dir(folder / "data", node, directory=DIRECTORY[:-2] + f"{node}w"), 1, 2, 3)
        settings(folder, process_roles="broker,controller", node_id=node, log_dirs="/x/data",
                 controller_quorum_voters="1@a:1,2@b:1,3@c:1")  # fmt: skip
    assert found_in(tmp_path) == []
    settings(tmp_path / "broker-3", process_roles="broker", node_id=3, log_dirs="/other/place")
    assert found_in(tmp_path) == [], "the copies have names of their own"
    (tmp_path / "broker-3/empty").mkdir()
    settings(tmp_path / "broker-3", process_roles="broker", node_id=3, log_dirs="/x/data,/x/empty/")
    assert found_in(tmp_path) == [], "a directory that holds nothing yet"
    shutil.rmtree(tmp_path / "broker-3/data")
    log_dir(tmp_path / "broker-3/data", 3, version=0)
    settings(
        tmp_path / "broker-3", process_roles="broker", node_id=3, zookeeper_metadata_migration_enable="true"
    )
    assert found_in(tmp_path) == [], "a broker that migrates keeps version 0"


@pytest.mark.parametrize("verb", ["compare", "loss"])
def test_a_copy_may_lie_in_a_log_directory_that_is_not_in_the_evidence(verb: str, tmp_path: Path) -> None:
    for number in (1, 2):
        partition(
            log_dir(tmp_path / f"broker-{number}" / "disk1", number, version=0) / f"of-{number}-0", DIRECTORY
        )
    settings(tmp_path / "broker-2", broker_id=2, log_dirs="/mnt/disk1,/mnt/disk2")
    ran = rows("replica", verb, tmp_path)
    verdicts = {row["topic"]: (row["verdict"], row["reason"]) for row in ran.of("judgement")}
    assert verdicts["of-2"][0] == "sound"
    reason = "the assignment is unknown, and /mnt/disk2 of broker 2 is not in the evidence"
    assert verdicts["of-1"] == ("could_not_judge", reason)


@pytest.mark.parametrize(
    ("level", "log", "severity"), [(20, b"", "info"), (19, b"", "error"), (20, b"x", "error")]
)
def test_a_log_that_was_empty_when_its_broker_was_killed_is_made_anew(
    level: int, log: bytes, severity: str, tmp_path: Path
) -> None:
    """From 3.8 on the broker takes the folder for stray (4.3, seed 932); an older one does not start."""
    write_log(tmp_path, [record("FEATURE_LEVEL_RECORD", feature_level=level)])
    folder = tmp_path / "broker-1/data/orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(log)
    (finding,) = (one for one in found_in(tmp_path) if one.code == "kraft-no-partition-metadata")
    assert finding.severity == severity
