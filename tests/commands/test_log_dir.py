"""`kctl log-dir start`: forecasts of whole starts, and what they would destroy."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from formats.log_dir.meta_properties import MetaProperties, format_meta_properties, parse_properties
from kctl.internal_topics.cluster_image import snapshots
from tests.conftest import HERE, kctl, recording
from tests.kctl.log_dir_start_cases import batches_of, flip, logs, write_offsets

PARTITION = "rolled-segs-0"
COMBINED = "process.roles=broker,controller\n"


def rows_of(*words: object) -> tuple[int, list[dict[str, Any]]]:
    ran = kctl("log-dir", "start", *map(str, words), "--output", "jsonl")
    return ran.status, [json.loads(line) for line in ran.out.splitlines()]


def of(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def broker(at: Path, number: int) -> Path:
    """A broker's log directory with one recorded partition; it was killed."""
    data = at / f"broker-{number}" / "data"
    data.mkdir(parents=True)
    shutil.copytree(
        recording("segments/3.9.1") / "data-clean/broker-0/logdir-0" / PARTITION, data / PARTITION
    )
    for path in (data / PARTITION).iterdir():
        path.chmod(0o644)
    (data / "meta.properties").write_text(format_meta_properties(MetaProperties(0, number, "c" * 22)))
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        write_offsets(data, name, PARTITION, 0)
    write_offsets(data, "replication-offset-checkpoint", PARTITION, 248)
    return data


def damage_second_batch(data: Path) -> None:
    path = logs(data / PARTITION)[0]
    at, size = batches_of(path)[1]
    flip(path, at + size - 3)


def test_healthy_broker_starts_and_nothing_is_cut(tmp_path: Path) -> None:
    broker(tmp_path, 1)
    status, rows = rows_of(tmp_path)
    (start,) = of(rows, "start")
    assert (status, start["starts"], start["fails_with"]) == (0, True, None)
    assert not any(row["records_cut"] for row in of(rows, "start_step"))
    (judgement,) = of(rows, "judgement")
    assert judgement["reason"] == "broker 1 starts; nothing is cut"


def test_what_no_other_copy_holds_comes_first(tmp_path: Path) -> None:
    damage_second_batch(broker(tmp_path, 1))
    other = broker(tmp_path / "elsewhere", 2)
    for path in logs(other / PARTITION)[1:]:
        for suffix in (".log", ".index", ".timeindex", ".snapshot"):
            path.with_suffix(suffix).unlink()
    status, rows = rows_of(tmp_path / "broker-1", "--other-copies", tmp_path / "elsewhere")
    (judgement,) = of(rows, "judgement")
    assert (status, judgement["verdict"]) == (5, "lost")
    assert judgement["reason"] == (
        f"Do not start broker 1: it would cut 176 committed records of {PARTITION} that no other copy holds"
    )
    assert of(rows, "start_step")[0]["only_copy"] is True


def test_what_another_copy_holds_may_be_cut(tmp_path: Path) -> None:
    damage_second_batch(broker(tmp_path, 1))
    broker(tmp_path / "elsewhere", 2)
    status, rows = rows_of(tmp_path / "broker-1", "--other-copies", tmp_path / "elsewhere")
    cut = [row for row in of(rows, "start_step") if row["step"] == "truncate"]
    assert (status, of(rows, "judgement")[0]["verdict"]) == (0, "sound")
    assert [(row["from_offset"], row["only_copy"]) for row in cut] == [(6, False)]


def test_what_another_copy_holds_of_another_epoch_are_other_records(tmp_path: Path) -> None:
    """Both logs have offsets 40 to 49 of ledger-1: broker 1 wrote them in epoch 1, broker 2 in epoch 3."""
    moment = HERE.parent / "examples" / "unclean-election" / "moments" / "during"
    shutil.copytree(moment, tmp_path / "during")
    data = tmp_path / "during" / "broker-1" / "data"
    flip(data / "ledger-1" / f"{0:020}.log", 2410 + 70)
    words = ("--kafka-version", "2.8", "--other-copies", tmp_path / "during" / "broker-2")
    status, rows = rows_of(data, *words)
    cut = [row for row in of(rows, "start_step") if row["step"] == "truncate"]
    assert [(row["topic"], row["from_offset"], row["only_copy"]) for row in cut] == [("ledger", 40, True)]
    assert (status, of(rows, "judgement")[0]["verdict"]) == (5, "lost")


def kraft_broker(at: Path) -> Path:
    """A log directory of a KRaft broker with one partition, without the metadata log."""
    data = broker(at, 1)
    (data / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=" + "c" * 22 + "\n")
    return data


def test_without_a_metadata_log_nobody_knows_which_folders_are_stray(tmp_path: Path) -> None:
    status, rows = rows_of(kraft_broker(tmp_path), "--kafka-version", "3.9")
    (judgement,) = of(rows, "judgement")
    assert (status, judgement["verdict"], of(rows, "start")[0]["starts"]) == (3, "could_not_judge", True)
    assert [what["what"] for what in judgement["missing"]] == ["the metadata log of the cluster"]


def test_nodes_of_kraft_before_3_3_are_not_forecast(tmp_path: Path) -> None:
    status, rows = rows_of(kraft_broker(tmp_path), "--kafka-version", "3.2")
    assert (status, of(rows, "start")[0]["starts"]) == (3, None)


def test_without_another_copy_a_cut_is_not_judged(tmp_path: Path) -> None:
    damage_second_batch(broker(tmp_path, 1))
    status, rows = rows_of(tmp_path)
    assert (status, of(rows, "judgement")[0]["verdict"]) == (3, "could_not_judge")


@pytest.mark.parametrize(
    ("high_watermark", "other", "status", "reason"),
    [
        (240, False, 0, "broker 1 starts; the 255 bytes that it cuts hold no readable record"),
        (248, False, 3, f"broker 1 would cut records of {PARTITION}, and no other copy of them is in the evidence"),
        (248, True, 0, "broker 1 starts; the 4 records that it cuts are in other copies"),
    ],
)  # fmt: skip
def test_a_damaged_end_is_held_against_the_high_watermark(
    high_watermark: int, other: bool, status: int, reason: str, tmp_path: Path
) -> None:
    """Damage in the last batch leaves no sound record to cut, and may be all that is left of a committed one."""
    data = broker(tmp_path, 1)
    path = logs(data / PARTITION)[-1]
    at, size = batches_of(path)[-1]
    flip(path, at + size - 3)
    write_offsets(data, "replication-offset-checkpoint", PARTITION, high_watermark)
    if other:
        broker(tmp_path / "elsewhere", 2)
    words = ("--other-copies", tmp_path / "elsewhere") if other else ()
    got, rows = rows_of(tmp_path / "broker-1", *words)
    assert (got, of(rows, "judgement")[0]["reason"]) == (status, reason)


def test_clean_shutdown_cuts_nothing(tmp_path: Path) -> None:
    data = broker(tmp_path, 1)
    damage_second_batch(data)
    (data / ".kafka_cleanshutdown").touch()
    status, _ = rows_of(tmp_path)
    assert status == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("meta.properties", "Error: node ID not found in"),
        ("bootstrap.checkpoint", "Found record size 0 smaller than minimum record overhead (14) in file"),
        ("__cluster_metadata-0/quorum-state", "Error while reading the Quorum status from the file"),
        ("__cluster_metadata-0/leader-epoch-checkpoint", "Error while reading checkpoint file"),
        ("profile.changes-0/leader-epoch-checkpoint", "Shutdown broker because all log dirs in"),
        ("profile.changes-0/partition.metadata", "Shutdown broker because all log dirs in"),
        ("replication-offset-checkpoint", "Shutdown broker because all log dirs in"),
    ],
)  # fmt: skip
def test_nul_files_of_a_kraft_node(name: str, words: str, tmp_path: Path) -> None:
    """As Kafka 3.9.1 and 4.3.0 say on their start."""
    data = tmp_path / "data"
    shutil.copytree(recording("segments/4.3.0-kraft") / "data-killed", data)
    (data / name).chmod(0o644)
    (data / name).write_bytes(bytes((data / name).stat().st_size or 40))
    status, rows = rows_of(data, "--kafka-version", "4.3")
    (start,) = of(rows, "start")
    assert (status, start["starts"]) == (5, False)
    assert words in start["fails_with"]


RECORDED = [
    ("0.8.2.2", "0.8.2"),
    ("0.9.0.1", "0.9"),
    ("0.10.1.1", "0.10.1"),
    ("1.1.1", "1.1"),
    ("2.4.1", "2.4"),
    ("2.8.2", "2.8"),
    ("3.9.1", "3.9"),
    ("3.9.1-kraft", "3.9"),
    ("4.3.0-kraft", "4.3"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), RECORDED)
def test_recorded_brokers_start_and_nothing_is_cut(name: str, version: str) -> None:
    status, rows = rows_of(recording(f"segments/{name}"), "--kafka-version", version)
    assert [(row["starts"], row["fails_with"]) for row in of(rows, "start")] == [(True, None)] * len(
        of(rows, "start")
    )
    assert [row["message"] for row in of(rows, "start_step") if row["records_cut"]] == []
    assert status == 0


def test_records_deleted_before_a_crash_keep_0_11_from_starting() -> None:
    """The log start lies above a segment that is to be recovered: Kafka 0.11.0.3 ends with this exception."""
    folder = recording("segments/0.11.0.3")
    status, rows = rows_of(folder / "data-killed", "--kafka-version", "0.11.0.3")
    (start,) = of(rows, "start")
    assert (status, start["starts"], start["fails_with"]) == (5, False, "inconsistent range")
    status, rows = rows_of(folder / "data-clean", "--kafka-version", "0.11.0.3")
    assert (status, of(rows, "start")[0]["starts"]) == (0, True)


def test_kraft_over_the_directories_of_zookeeper_mode(tmp_path: Path) -> None:
    """As 3.9.1 does: it begins an empty metadata log, and no folder belongs to a topic in it."""
    data = broker(tmp_path, 3)
    (data.parent / "server.properties").write_text(
        "process.roles=broker,controller\nnode.id=3\ncontroller.quorum.voters=3@a:1\n"
    )
    status, rows = rows_of(tmp_path)
    assert status == 5
    assert of(rows, "judgement")[0]["reason"] == (
        "broker 3 starts empty: it renames all its 1 partition folders to -stray"
    )


SETTINGS = [
    ("broker.id=3\nzookeeper.connect=zk:2181\n", "3.9", None),
    (
        "broker.id=4\nzookeeper.connect=zk:2181\n",
        "3.9",
        "Stored node id 3 doesn't match previous node id 4 in",
    ),
    (
        "broker.id=4\nzookeeper.connect=zk:2181\n",
        "2.8",
        "Configured broker.id 4 doesn't match stored broker.id Some(3)",
    ),
    (
        "broker.id=4\nzookeeper.connect=zk:2181\n",
        "2.4",
        "Configured broker.id 4 doesn't match stored broker.id 3",
    ),
    ("broker.id=-1\nzookeeper.connect=zk:2181\n", "3.9", None),
    ("broker.id=3\nzookeeper.connect=zk:2181\n", "4.0", 'Missing required configuration "process.roles"'),
    ("broker.id=3\nzookeeper.connect=zk:2181\nlog.dirs=/srv/data,/srv/data-2\n", "3.9", "unknown"),
    ("broker.id=3\nzookeeper.connect=zk:2181\nlog.dirs=/srv/elsewhere\n", "3.9", None),
]


@pytest.mark.parametrize(("settings", "version", "words"), SETTINGS)
def test_settings_are_held_against_the_directories(
    settings: str, version: str, words: str | None, tmp_path: Path
) -> None:
    """As brokers of these versions do."""
    data = broker(tmp_path, 3)
    (data.parent / "server.properties").write_text(settings)
    status, rows = rows_of(tmp_path, "--kafka-version", version)
    (start,) = of(rows, "start")
    if words is None:
        assert (status, start["starts"], start["fails_with"]) == (0, True, None)
    elif words == "unknown":
        assert (status, start["starts"]) == (5, None)
        assert [row["code"] for row in of(rows, "finding")] == ["log-dir-not-in-the-evidence"]
        assert of(rows, "judgement")[0]["reason"] == (
            "the evidence does not hold all of `log.dirs`: /srv/data-2"
        )
    else:
        assert (status, start["starts"]) == (5, False)
        assert words in start["fails_with"]


def kraft_node(at: Path, settings: str = "") -> Path:
    """The directory of a node of 4.3 that was killed, with settings beside it."""
    data = at / "broker-1" / "data"
    shutil.copytree(recording("segments/4.3.0-kraft") / "data-killed", data)
    for path in data.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (data.parent / "server.properties").write_text(settings)
    return data


@pytest.mark.parametrize(
    ("settings", "version", "words"),
    [
        (f"{COMBINED}node.id={{id}}\ncontroller.quorum.voters={{id}}@a:1\n", "4.3", None),
        (f"{COMBINED}node.id={{id}}\ncontroller.quorum.voters=8@a:1,9@b:1\n", "4.3", "must be included in the set of voters"),
        ("process.roles=broker\nnode.id={id}\ncontroller.quorum.voters={id}@a:1\n", "4.3", "must not be included in the set of"),
        (f"{COMBINED}node.id=77\ncontroller.quorum.voters=77@a:1\n", "4.3", "doesn't match previous node id 77 in"),
        (f"{COMBINED}node.id={{id}}\ncontroller.quorum.bootstrap.servers=a:1\n", "3.9", "No MetadataVersion with feature level"),
        (f"{COMBINED}node.id={{id}}\n", "4.3", "either controller.quorum.bootstrap.servers must contain the set of"),
        (f"{COMBINED}node.id={{id}}\ncontroller.quorum.bootstrap.servers=a:1\n", "3.8", "controller.quorum.voters must contain a parseable"),
        (f"{COMBINED}node.id={{id}}\ncontroller.quorum.bootstrap.servers=a:1\n", "4.3", "unknown: nor the metadata log names voters"),
        ("process.roles=broker\nnode.id={id}\ncontroller.quorum.bootstrap.servers=a:1\n", "4.3", None),
        ("process.roles=broker\nnode.id={id}\ncontroller.quorum.bootstrap.servers=a:1\n", "4.1", "unknown: the metadata log is of newer software (No MetadataVersion with"),
        ("broker.id={id}\nzookeeper.connect=zk:2181\n", "3.9", "Found unexpected version in"),
        ("process.roles=broker\nnode.id={id}\ncontroller.quorum.voters=99@a:1\nlog.dirs=/srv/other,/srv/data\n", "4.3", "Found unexpected metadata location"),
    ],
)  # fmt: skip
def test_settings_of_a_kraft_node(settings: str, version: str, words: str | None, tmp_path: Path) -> None:
    data = kraft_node(tmp_path)
    lines = (data / "meta.properties").read_text().splitlines()
    own = next(line for line in lines if line.startswith("node.id="))
    text = settings.format(id=own.removeprefix("node.id="))
    (data.parent / "server.properties").write_text(text)
    if "/srv/other" in text:
        shutil.copytree(data, data.parent / "other", ignore=shutil.ignore_patterns("*-*", "bootstrap*"))
        other = data.parent / "other" / "meta.properties"
        other.write_text("".join(f"{line}\n" for line in lines if not line.startswith("directory.id")))
    status, rows = rows_of(tmp_path, "--kafka-version", version)
    (start,) = of(rows, "start")
    if words is not None and words.startswith("unknown: "):
        assert (status, start["starts"]) == (3, None)
        assert words.removeprefix("unknown: ") in start["reason"]
        return
    assert (status, start["starts"]) == ((0, True) if words is None else (5, False)), start
    assert (words or "") in (start["fails_with"] or "")


@pytest.mark.parametrize(("version", "starts"), [("3.7", False), ("3.9", True)])
def test_voters_of_the_settings_and_of_the_quorum_state(version: str, starts: bool, tmp_path: Path) -> None:
    data = tmp_path / "broker-1" / "data"
    metadata = data / "__cluster_metadata-0"
    metadata.mkdir(parents=True)
    (data / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=p0_xtebuSt2Ap8p60r4wig\n")
    (metadata / "quorum-state").write_text(
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    (data.parent / "server.properties").write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@a:1,2@b:1,3@c:1\n"
    )
    status, rows = rows_of(tmp_path, "--kafka-version", version)
    (start,) = of(rows, "start")
    assert (status, start["starts"]) == (5, starts)
    assert "voter-set-differs" in [row["code"] for row in of(rows, "finding")]
    assert ("Configured voter set: [1, 2, 3]" in (start["fails_with"] or "")) is not starts


def test_the_version_is_that_of_the_last_start_in_the_log(tmp_path: Path) -> None:
    data = broker(tmp_path, 3)
    logs_of = data.parent / "logs"
    logs_of.mkdir()
    (logs_of / "server.log").write_text(
        "[2024-01-02 03:04:05,678] INFO Kafka version: 2.4.1 (org.apache.kafka.common.utils.AppInfoParser)\n"
        "[2024-01-02 03:04:05,700] INFO [KafkaServer id=3] started (kafka.server.KafkaServer)\n"
        "[2024-02-02 03:04:05,678] INFO Kafka version: 2.8.2 (org.apache.kafka.common.utils.AppInfoParser)\n"
    )
    (logs_of / "server.log.1").write_text(
        "[2024-01-22 03:04:05,678] INFO Kafka version: 2.7.1 (org.apache.kafka.common.utils.AppInfoParser)\n"
        "[2024-01-22 03:04:05,700] INFO [KafkaServer id=3] started (kafka.server.KafkaServer)\n"
    )
    (logs_of / "server.log.2").write_text(
        "[2023-01-22 03:04:05,678] INFO Kafka version: 2.3.1 (org.apache.kafka.common.utils.AppInfoParser)\n"
        "[2023-01-22 03:04:05,700] INFO [KafkaServer id=3] started (kafka.server.KafkaServer)\n"
    )
    _, rows = rows_of(tmp_path)
    assert of(rows, "start")[0]["kafka_version"] == "2.8.2"


def test_a_log_beside_the_moments_tells_the_version_of_the_broker(tmp_path: Path) -> None:
    for moment in ("before", "after"):
        broker(tmp_path / "moments" / moment, 3)
    logs_of = tmp_path / "logs" / "broker-3"
    logs_of.mkdir(parents=True)
    line = "[2024-01-02 03:04:05,678] INFO {} (org.apache.kafka.common.utils.AppInfoParser)\n"
    (logs_of / "server.log").write_text(line.format("Kafka version: 2.4.1"))
    _, rows = rows_of(tmp_path)
    assert [row["kafka_version"] for row in of(rows, "start")] == ["2.4.1", "2.4.1"]
    of_moment = tmp_path / "moments" / "before" / "broker-3" / "logs"
    of_moment.mkdir()
    (of_moment / "server.log").write_text(line.format("Kafka version: 2.3.1"))
    _, rows = rows_of(tmp_path)
    assert {row["moment"]: row["kafka_version"] for row in of(rows, "start")} == {
        "before": "2.3.1",
        "after": "2.4.1",
    }


def test_the_version_is_not_older_than_the_metadata_version(tmp_path: Path) -> None:
    (kraft_node(tmp_path).parent / "server.properties").unlink()
    _, rows = rows_of(tmp_path)
    (start,) = of(rows, "start")
    assert (start["kafka_version"], start["starts"]) == ("4.3", True)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("2.3", None),  # it joins the other cluster without a word
        ("2.4", "The Cluster ID AAAAAAAAAAAAAAAAAAAAZw doesn't match stored clusterId Some(cccccccccccccccccccccc)"),
        ("3.9", "Expected AAAAAAAAAAAAAAAAAAAAZw, but read cccccccccccccccccccccc"),
    ],
)  # fmt: skip
def test_the_cluster_id_of_zookeeper(version: str, words: str | None, tmp_path: Path) -> None:
    broker(tmp_path, 3)
    data = base64.b64encode(b'{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAZw"}').decode()
    (tmp_path / "znodes.jsonl").write_text(json.dumps({"path": "/cluster/id", "data": data}) + "\n")
    _, rows = rows_of(tmp_path, "--kafka-version", version)
    (start,) = of(rows, "start")
    assert start["starts"] is (words is None)
    assert (words or "") in (start["fails_with"] or "")


@pytest.mark.parametrize(
    ("key", "version", "words"),
    [
        ("version", "2.7", "requirement failed: Missing required property 'version'"),
        ("broker.id", "2.7", "requirement failed: Missing required property 'broker.id'"),
        ("version", "2.8", None),
        ("broker.id", "2.8", None),
    ],
)
def test_keys_that_older_brokers_need(key: str, version: str, words: str | None, tmp_path: Path) -> None:
    """As 1.1.1, 2.4.1 and 2.8.2 do."""
    data = broker(tmp_path, 3)
    lines = (data / "meta.properties").read_text().splitlines(keepends=True)
    (data / "meta.properties").write_text("".join(line for line in lines if not line.startswith(key)))
    _, rows = rows_of(tmp_path, "--kafka-version", version)
    (start,) = of(rows, "start")
    assert (start["starts"], start["fails_with"]) == (words is None, words)


def test_a_snapshot_that_is_being_written_is_no_snapshot(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    for name in (
        "9-0000000001.checkpoint",
        "5-0000000001.checkpoint.deleted",
        "12-0000000001.checkpoint.part",
    ):
        number, _, rest = name.partition("-")
        (folder / f"{int(number):020}-{rest}").write_bytes(b"")
    assert [offset for offset, _ in snapshots(folder)] == [5, 9]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data, None),
        (lambda data: data[:-7], None),  # the last batch is cut short: Kafka takes what is before it
        (lambda data: bytes(len(data)), "Record size 0 is less than the minimum record overhead (14)"),
        (lambda data: data[:200] + bytes([data[200] ^ 0xFF]) + data[201:], "Record is corrupt (stored crc ="),
        (lambda data: b"", "No value present"),
    ],
)
def test_the_newest_metadata_snapshot_is_read(change: Any, words: str | None, tmp_path: Path) -> None:
    """As Kafka 3.9.1 does on its start."""
    data = kraft_node(tmp_path)
    (data.parent / "server.properties").unlink()
    for path in (data / "__cluster_metadata-0").glob("*.checkpoint"):
        path.unlink()
    batches = (data / "bootstrap.checkpoint").read_bytes()
    for name in (
        "00000000000000000004-0000000001.checkpoint",
        "00000000000000000009-0000000001.checkpoint.part",
    ):
        (data / "__cluster_metadata-0" / name).write_bytes(b"older, or not whole")
    (data / "__cluster_metadata-0" / "00000000000000000007-0000000001.checkpoint").write_bytes(
        change(batches)
    )
    status, rows = rows_of(data, "--kafka-version", "4.3")
    (start,) = of(rows, "start")
    assert (status, start["starts"]) == ((0, True) if words is None else (5, False))
    assert (words or "") in (start["fails_with"] or "")


def test_a_snapshot_behind_the_end_of_the_metadata_log_takes_its_place(tmp_path: Path) -> None:
    """As Kafka 4.3.0 does on its start; one that the log reaches does not."""
    data = kraft_node(tmp_path)
    (data.parent / "server.properties").unlink()
    metadata = data / "__cluster_metadata-0"
    for path in metadata.glob("*.checkpoint"):
        path.unlink()
    for offset, size in ((7, None), (9, 0)):
        snapshot = metadata / f"{offset:020}-{1:010}.checkpoint"
        snapshot.write_bytes((data / "bootstrap.checkpoint").read_bytes())
        if size is not None:
            (metadata / f"{0:020}.log").write_bytes(b"")
        _, rows = rows_of(data, "--kafka-version", "4.3")
        emptied = [row["message"] for row in of(rows, "start_step") if row["step"] == "truncate"]
        assert emptied == (
            []
            if size is None
            else ["empties the metadata log, which ends at 0, and goes on from the snapshot at offset 9"]
        )


def test_two_metadata_logs_are_of_one_broker_and_not_of_two_moments(tmp_path: Path) -> None:
    """As Kafka 3.9.1 says on its start."""
    data = kraft_node(tmp_path)
    meta = (data / "meta.properties").read_text()
    other = data.parent / "data-2"
    (other / "__cluster_metadata-0").mkdir(parents=True)
    ids = parse_properties(meta)
    (other / "meta.properties").write_text(meta.replace(ids["directory.id"], "A" * 20 + "Zw"))
    (data.parent / "server.properties").write_text(
        f"{COMBINED}node.id={ids['node.id']}\ncontroller.quorum.voters={ids['node.id']}@a:1\nlog.dirs={data},{other}\n"
    )
    status, rows = rows_of(tmp_path, "--kafka-version", "3.9")
    (start,) = of(rows, "start")
    assert (status, start["starts"], start["moment"]) == (5, False, None)
    assert "Found unexpected metadata location" in start["fails_with"]


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("3.6", "BrokerMetadata is not consistent across log.dirs"),
        ("3.7", "Stored node id 4 doesn't match previous node id 3"),
    ],
)
def test_a_disk_of_another_broker_keeps_one_broker_from_starting(
    version: str, words: str, tmp_path: Path
) -> None:
    data = broker(tmp_path, 3)
    other = data.parent / "disk-of-4"
    other.mkdir()
    (other / "meta.properties").write_text("version=0\nbroker.id=4\n")
    (data.parent / "server.properties").write_text(
        f"broker.id=3\nzookeeper.connect=zk:2181\nlog.dirs={data},{other}\n"
    )
    status, rows = rows_of(tmp_path, "--kafka-version", version)
    (start,) = of(rows, "start")
    assert (status, start["broker_id"], start["starts"], start["moment"]) == (5, 3, False, None)
    assert words in start["fails_with"]
    assert "log-dirs-of-two-brokers" in {row["code"] for row in of(rows, "finding")}


def test_a_partition_folder_is_no_log_directory(tmp_path: Path) -> None:
    broker(tmp_path, 1)
    folder = next(path.parent for path in tmp_path.rglob("*.log"))
    ran = kctl("log-dir", "start", folder)
    assert ran.status == 2 and f"name the folder that holds it: {folder.parent}" in ran.err


@pytest.mark.parametrize("version", ["0.7.2", "0.8.1", "4.4", "9.0"])
def test_a_version_that_kctl_does_not_know_is_refused(version: str, tmp_path: Path) -> None:
    broker(tmp_path, 1)
    ran = kctl("log-dir", "start", tmp_path, "--kafka-version", version)
    assert (ran.status, ran.out) == (2, b"")
    assert f"kctl knows no rules of Kafka {version}: it forecasts starts of 0.8.2 to 4.3" in ran.err


def test_a_version_in_the_log_that_kctl_does_not_know_is_not_judged(tmp_path: Path) -> None:
    """Such as that of a distribution with numbers of its own."""
    data = broker(tmp_path, 3)
    (data.parent / "logs").mkdir()
    line = "[2024-01-02 03:04:05,678] INFO Kafka version: 5.5.1-ccs (org.apache.kafka.common.utils.AppInfoParser)\n"
    (data.parent / "logs" / "server.log").write_text(line)
    status, rows = rows_of(tmp_path)
    (start,) = of(rows, "start")
    assert (status, start["kafka_version"], start["starts"]) == (3, "5.5.1", None)
    assert "the broker's log names this version" in start["reason"]
    assert rows_of(tmp_path, "--kafka-version", "2.5")[0] == 0


def test_software_that_refused_the_metadata_version_is_started_again(tmp_path: Path) -> None:
    """Its log names no version; a later start of newer software counts then."""
    data = kraft_node(tmp_path)
    (data.parent / "server.properties").unlink()
    (data.parent / "logs").mkdir()
    log = data.parent / "logs" / "server.log"
    log.write_text(
        "[2024-01-02 03:04:05,678] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)\n"
        "java.lang.IllegalArgumentException: No MetadataVersion with feature level 30\n"
    )
    status, rows = rows_of(tmp_path)
    (start,) = of(rows, "start")
    assert (status, start["kafka_version"], start["starts"]) == (5, "3.9", False)
    assert start["fails_with"].startswith("No MetadataVersion with feature level ")
    with log.open("a") as lines:
        lines.write(
            "[2024-01-03 03:04:05,678] INFO Kafka version: 4.3.0 (org.apache.kafka.common.utils.AppInfoParser)\n"
        )
    assert rows_of(tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("meta", "settings", "status", "starts", "words"),
    [
        ("version=0\nbroker.id=1\n", None, 3, None, "was of ZooKeeper mode, which Kafka 4.1 does not have"),
        ("broker.id=1\n", None, 3, None, "was of ZooKeeper mode, which Kafka 4.1 does not have"),
        ("version=0\n", None, 5, False, "Error: node ID not found in"),
        ("version=0\nbroker.id=1\n", "broker.id=1\nzookeeper.connect=zk:1\n", 5, False, 'Missing required configuration "process.roles"'),
        ("version=0\nbroker.id=1\n", f"{COMBINED}node.id=1\ncontroller.quorum.voters=1@a:1\n", 5, True, "starts empty: it renames all its 1"),
    ],
)  # fmt: skip
def test_a_directory_of_zookeeper_mode_under_kafka_4(
    meta: str, settings: str | None, status: int, starts: bool | None, words: str, tmp_path: Path
) -> None:
    """Whether it is the settings of that mode, or `process.roles`, `server.properties` tells."""
    data = broker(tmp_path, 1)
    (data / "meta.properties").write_text(f"{meta}cluster.id={'c' * 22}\n")
    if settings is not None:
        (data.parent / "server.properties").write_text(settings)
    got, rows = rows_of(tmp_path, "--kafka-version", "4.1")
    (start,), (judgement,) = of(rows, "start"), of(rows, "judgement")
    assert (got, start["starts"]) == (status, starts)
    assert words in start["reason"]
    needs = ["server.properties of broker 1"] if starts is None else []
    assert [what["what"] for what in judgement["missing"]] == needs


def directories(at: Path, *identities: tuple[str, int, str]) -> None:
    """Log directories without partitions, of these ids and clusters."""
    for name, broker_id, cluster_id in identities:
        (at / name).mkdir(parents=True)
        properties = MetaProperties(0, broker_id, cluster_id)
        (at / name / "meta.properties").write_text(format_meta_properties(properties))


ONE, TWO = "c" * 22, "d" * 22


@pytest.mark.parametrize(
    ("folder", "second", "version", "words"),
    [
        ("broker-1", ("data-1", 2, ONE), "3.9", "Stored node id 2 doesn't match previous node id 1 in"),
        ("broker-1", ("data-1", 2, ONE), "2.8", "BrokerMetadata is not consistent across log.dirs"),
        ("broker-1", ("data-1", 1, TWO), "3.9", f"Expected {ONE}, but read {TWO}"),
        ("broker-1", ("data-1", 1, TWO), "2.8", "BrokerMetadata is not consistent across log.dirs"),
        ("disks", ("data-1", 1, TWO), "3.9", f"Expected {ONE}, but read {TWO}"),
        ("disks", ("data-1", 2, ONE), "3.9", None),
        ("disks", ("kafka", 2, ONE), "3.9", None),
    ],
)
def test_two_identities_of_one_broker_without_settings(
    folder: str, second: tuple[str, int, str], version: str, words: str | None, tmp_path: Path
) -> None:
    """The folder of a broker tells that both directories are its own; else settings would."""
    directories(tmp_path / folder, ("data-0", 1, ONE), second)
    status, rows = rows_of(tmp_path, "--kafka-version", version)
    if words is not None:
        (start,) = of(rows, "start")
        assert (status, start["broker_id"], start["starts"]) == (5, 1, False)
        assert words in start["fails_with"]
        return
    assert (status, [start["starts"] for start in of(rows, "start")]) == (3, [None, None])
    for judgement in of(rows, "judgement"):
        assert "one that has both in `log.dirs` does not start" in judgement["reason"]
        assert [what["what"] for what in judgement["missing"]] == [
            f"server.properties of broker {judgement['broker_id']}"
        ]


@pytest.mark.parametrize(
    "names",
    [("kafka-logs", "kafka-logs-2"), ("broker-1", "broker-2"), ("a/broker-1/data", "b/broker-2/data")],
)
def test_directories_that_are_named_by_their_brokers_are_several_brokers(
    names: tuple[str, str], tmp_path: Path
) -> None:
    directories(tmp_path, *((name, number, ONE) for number, name in enumerate(names, 1)))
    status, rows = rows_of(tmp_path, "--kafka-version", "3.9")
    assert (status, [start["starts"] for start in of(rows, "start")]) == (0, [True, True])


def test_directories_that_are_named_together_are_those_of_one_broker(tmp_path: Path) -> None:
    """But where their names are those of several brokers."""
    directories(tmp_path, ("disk1/kafka", 1, ONE), ("disk2/kafka", 2, ONE), ("broker-2/data", 2, ONE))
    directories(tmp_path, ("broker-1/data", 1, ONE))
    status, rows = rows_of(tmp_path / "disk1/kafka", tmp_path / "disk2/kafka")
    assert (status, [start["starts"] for start in of(rows, "start")]) == (3, [None, None])
    status, rows = rows_of(tmp_path / "broker-1/data", tmp_path / "broker-2/data")
    assert (status, [start["starts"] for start in of(rows, "start")]) == (0, [True, True])


def test_directories_that_settings_list_are_of_several_brokers(tmp_path: Path) -> None:
    for number in (1, 2):
        directories(tmp_path / "disks", (f"data-{'ab'[number - 1]}", number, ONE))
        path = tmp_path / "disks" / f"data-{'ab'[number - 1]}" / "server.properties"
        path.write_text(f"broker.id={number}\nzookeeper.connect=zk:1\nlog.dirs={path.parent}\n")
    status, rows = rows_of(tmp_path, "--kafka-version", "3.9")
    assert (status, [start["starts"] for start in of(rows, "start")]) == (0, [True, True])


def test_a_key_tells_a_live_folder_from_a_stray_one(tmp_path: Path) -> None:
    data = broker(tmp_path, 1)
    stray = f"{PARTITION}.{'ab' * 16}-stray"
    shutil.copytree(data / PARTITION, data / stray)
    _, rows = rows_of(tmp_path, "--kafka-version", "3.9")
    steps = of(rows, "start_step")
    assert {row["folder"] for row in steps} == {PARTITION, stray}
    assert {(row["topic"], row["partition"]) for row in steps} == {(PARTITION[:-2], 0)}


@pytest.mark.parametrize(
    ("free", "code", "status"),
    [
        (0, "log-dir-no-room-for-recovery", 5),
        (2_000, "log-dir-no-room-for-compaction", 5),
        (1 << 20, None, 0),
    ],
)
def test_room_on_the_file_system_of_the_broker(
    free: int, code: str | None, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = broker(tmp_path, 1)
    write_offsets(data, "cleaner-offset-checkpoint", PARTITION, 0)
    usage = shutil.disk_usage(data)
    monkeypatch.setattr("kctl.log_dir_start.room.disk_usage", lambda path: usage._replace(free=free))
    got, rows = rows_of(tmp_path)
    (start,) = of(rows, "start")
    assert (got, start["bytes_free"], of(rows, "finding")) == (0, None, [])  # may be a copy
    assert 0 < start["bytes_written"] < start["bytes_read"]
    (data.parent / "server.properties").write_text(f"broker.id=1\nzookeeper.connect=zk:1\nlog.dirs={data}\n")
    got, rows = rows_of(tmp_path)
    (start,) = of(rows, "start")
    assert (got, start["bytes_free"], start["starts"]) == (status, free, free > 0 or None)
    assert [row["code"] for row in of(rows, "finding")] == ([code] if code else [])


def test_an_audit_names_the_forecast_where_a_start_would_cut(tmp_path: Path) -> None:
    for number in (1, 2):
        data = broker(tmp_path / "evidence", number)
    ran = kctl("audit", "run", tmp_path / "evidence", "--out", tmp_path / "healthy", columns=120)
    assert "log-dir start" not in ran.out.decode()
    damage_second_batch(data)
    ran = kctl("audit", "run", tmp_path / "evidence", "--out", tmp_path / "audit", columns=120)
    command = f"kctl log-dir start {tmp_path / 'evidence'}"
    assert command in " ".join(ran.out.decode().split())
    page = (tmp_path / "audit" / "report.html").read_text()
    markdown = kctl("audit", "report", tmp_path / "audit", "--format", "markdown").out.decode()
    assert command in page
    assert command in markdown
