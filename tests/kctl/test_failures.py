"""What ended brokers, directories and threads by their logs, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.broker_logs.failures import FAILURE_LINES, Failures
from kctl.broker_logs.history.timeline import WANTED, timeline
from kctl.broker_logs.merging import prepare
from kctl.broker_logs.sources import find_sources
from kctl.findings import Finding
from tests.conftest import rows
from tests.kctl.checks.test_batches import batch

UP = "[2026-11-20 09:59:58,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
AGAIN = "[2026-11-20 11:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
DOWN = "[2026-11-20 10:00:01,000] ERROR Shutdown broker because all log dirs in /d have failed (kafka.log.LogManager)\n"
HALTING = (
    "[2026-11-20 10:00:01,000] FATAL Halting broker because dir /d is offline (kafka.server.ReplicaManager)\n"
)
NO_SPACE = "java.io.IOException: No space left on device\n\tat kafka.log.Log.append(Log.scala:1)\n"
DIR = (
    "[2026-11-20 10:00:00,000] ERROR Error while appending records to a-0 in dir /d (kafka.server.LogDirFailureChannel)\n"
    + NO_SPACE
)
FATAL = "[2026-11-20 10:00:00,000] ERROR [KafkaServer id=1] Fatal error during KafkaServer startup. Prepare to shutdown (kafka.server.KafkaServer)\n"
LOCKED = "org.apache.kafka.common.KafkaException: Failed to acquire lock on file .lock in /d. A Kafka instance in another process or thread is using this directory.\n"
CLEANER = (
    "[2026-11-20 10:00:00,000] ERROR [kafka-log-cleaner-thread-0]: Error due to (kafka.log.LogCleaner)\n"
    "java.lang.IllegalStateException: This log contains a message larger than maximum allowable size of 1048588.\n"
)
UNCLEANABLE = (
    "[2026-11-20 10:00:00,000] WARN [kafka-log-cleaner-thread-0]: Unexpected exception thrown when cleaning log "
    "Log(dir=/d/a-0, topic=a, partition=0). Marking its partition (a-0) as uncleanable (kafka.log.LogCleaner)\n"
    "kafka.log.LogCleaningException: Could not determine next batch size for /d/a-0\n"
    "Caused by: java.lang.IllegalStateException: Could not determine next batch size for /d/a-0\n"
)


def failures_of(tmp_path: Path, text: str) -> tuple[list[str | None], list[Finding]]:
    """Causes of the states in which the broker ended; the findings."""
    folder = tmp_path / "broker-1" / "logs"
    folder.mkdir(parents=True)
    (folder / "server.log").write_text(text)
    merging, failures = prepare(find_sources([str(tmp_path)])), Failures()
    history = timeline(failures.noted(merging.events(None, WANTED | FAILURE_LINES), WANTED))
    failures.explain(history.brokers)
    causes = [state.cause for state in history.brokers if state.state == "halted"]
    return causes, list(failures.findings(history.brokers))


@pytest.mark.parametrize(
    ("text", "causes", "codes"),
    [
        (UP, [], []),
        (UP + DIR + DOWN, ["disk_full"], ["broker-ended error", "log-dir-failed error"]),
        (UP + DIR + HALTING, ["disk_full"], ["broker-ended error", "log-dir-failed error"]),
        (UP + DIR + DOWN + AGAIN, ["disk_full"], ["broker-ended info", "log-dir-failed info"]),
        (UP + DOWN, [None], ["broker-ended error"]),
        (FATAL + LOCKED, ["log_dir_locked"], ["broker-ended error"]),
        # A second process fails for want of what the one that runs holds.
        (UP + FATAL + LOCKED, ["log_dir_locked"], ["broker-ended info"]),
        # The line that says it stands after the one that says that it ends.
        (UP + DOWN + DIR.replace("10:00:00,000", "10:00:01,500"), ["disk_full"], ["broker-ended error", "log-dir-failed error"]),
        (UP + CLEANER, [], ["thread-died error"]),
        (UP + UNCLEANABLE, [], ["partition-uncleanable error"]),
        (UP + CLEANER + AGAIN, [], ["thread-died info"]),
    ],
)  # fmt: skip
def test_each_failure_has_the_cause_of_its_exception(
    tmp_path: Path, text: str, causes: list[str | None], codes: list[str]
) -> None:
    halts, findings = failures_of(tmp_path, text)
    assert halts == causes
    assert [f"{finding.code} {finding.severity}" for finding in findings] == codes


def test_the_directory_that_failed_is_the_one_that_a_line_names_last(tmp_path: Path) -> None:
    line = DIR.replace("appending records to a-0 in dir /d", "deleting dir for a-0 in log dir /d")
    _, findings = failures_of(tmp_path, UP + line + DOWN)
    assert next(f.message for f in findings if f.code == "log-dir-failed").startswith(
        "Log directory /d of broker 1 failed at "
    )


def test_a_full_disk_is_not_called_a_failed_one(tmp_path: Path) -> None:
    _, findings = failures_of(tmp_path, UP + DIR + DOWN)
    assert all(
        "disk full" in finding.message and "failed disk" not in finding.message for finding in findings
    )


def test_audit_and_timeline_say_why_a_broker_ended(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / "broker-1" / "logs"
    folder.mkdir(parents=True)
    (folder / "server.log").write_text(UP + DIR + DOWN)
    ran = rows("audit", "run", tmp_path / "evidence", "--out", tmp_path / "report")
    assert ran.status == 5 and ran.codes() == ["broker-ended", "log-dir-failed"]
    ran = rows("state-log", "timeline", tmp_path / "evidence")
    assert ran.status == 5 and [row["cause"] for row in ran.of("broker_state")] == [None, "disk_full"]


def test_what_a_cleaner_that_stopped_has_not_compacted_is_counted(tmp_path: Path) -> None:
    broker = tmp_path / "broker-1"
    (broker / "logs").mkdir(parents=True)
    (broker / "logs" / "log-cleaner.log").write_text(CLEANER)
    (broker / "data" / "a-0").mkdir(parents=True)
    (broker / "data" / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (broker / "data" / "cleaner-offset-checkpoint").write_text("0\n1\na 0 4\n")
    for base in (0, 4, 8):
        log = batch(base, 4)
        (broker / "data" / "a-0" / f"{base:020d}.log").write_bytes(log)
    ran = rows("audit", "run", tmp_path, "--out", tmp_path.with_name(f"{tmp_path.name}-report"))
    (found,) = [row for row in ran.of("finding") if row["code"] == "compaction-stopped"]
    assert f"a-0 up to offset 4; {len(log)} bytes in 1 segment behind" in found["message"]
    assert (found["topic"], found["partition"], found["broker_id"]) == ("a", 0, 1)


# --- as people reported it: the lines, the cause, words that the finding has, words that it lacks --------------

WSL = """[2026-11-20 02:38:10,100] INFO [Kafka Server 1], shutting down (kafka.server.KafkaServer)
[2026-11-20 02:39:20,858] ERROR There was an error in one of the threads during logs loading: java.io.IOException: Invalid argument (kafka.log.LogManager)
[2026-11-20 02:39:20,870] FATAL [Kafka Server 1], Fatal error during KafkaServer startup. Prepare to shutdown (kafka.server.KafkaServer)
java.io.IOException: Invalid argument
\tat java.io.RandomAccessFile.setLength(Native Method)
\tat kafka.log.AbstractIndex$$anonfun$resize$1.apply(AbstractIndex.scala:112)
"""
NFS = """[2026-11-20 09:59:58,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)
[2026-11-20 10:00:00,000] ERROR Error while deleting dir for seats-3 in log dir /data/kafka (kafka.server.LogDirFailureChannel)
java.nio.file.DirectoryNotEmptyException: /data/kafka/seats-3.0b5b9c7d2f4e4a7a8a4f6b7c8d9e0f1a-delete
\tat sun.nio.fs.UnixFileSystemProvider.implDelete(UnixFileSystemProvider.java:242)
[2026-11-20 10:00:00,100] ERROR Shutdown broker because all log dirs in /data/kafka have failed (kafka.log.LogManager)
"""
TMP = """[2026-11-20 09:59:58,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)
[2026-11-20 10:00:00,000] ERROR Error while deleting segments for quotes-0 in dir /tmp/kafka (kafka.server.LogDirFailureChannel)
java.nio.file.NoSuchFileException: /tmp/kafka/quotes-0/00000000000000000000.log
\tat java.base/sun.nio.fs.UnixException.translateToIOException(UnixException.java:92)
[2026-11-20 10:00:00,007] ERROR Shutdown broker because all log dirs in /tmp/kafka have failed (kafka.log.LogManager)
"""
DOWNGRADED = """[2026-11-26 16:56:45,700] INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jControllerRegistration$)
[2026-11-26 16:56:45,810] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
java.lang.IllegalArgumentException: No MetadataVersion with feature level 27
\tat org.apache.kafka.server.common.MetadataVersion.fromFeatureLevel(MetadataVersion.java:592)
"""
OTHER_CLUSTER = """[2026-11-20 14:21:15,101] INFO [KafkaServer id=1] starting (kafka.server.KafkaServer)
[2026-11-20 14:21:18,645] ERROR [KafkaServer id=1] Fatal error during KafkaServer startup. Prepare to shutdown (kafka.server.KafkaServer)
kafka.common.InconsistentClusterIdException: The Cluster ID dOMtDqQ_QU6rqOpOeyosIA doesn't match stored clusterId Some(7tfltX7ATz-aIURko5dtnQ) in meta.properties. The broker is trying to join the wrong cluster. Configured zookeeper.connect may be wrong.
\tat kafka.server.KafkaServer.startup(KafkaServer.scala:228)
"""


@pytest.mark.parametrize(
    ("text", "cause", "words"),
    [
        (WSL, "cannot_resize_mapped_file", "The disk has not failed"),
        (NFS, "nfs_file_held", "The disk is sound"),
        (TMP, "file_vanished", "The disk is sound"),
        (DOWNGRADED, "metadata_version_unknown", "metadata.version 27. It is that of 4.1-IV1"),
        (OTHER_CLUSTER, "cluster_id_differs", "Delete no log directory"),
    ],
    ids=["wsl", "nfs", "tmp", "downgraded", "other-cluster"],
)
def test_reports_of_people_get_their_cause(tmp_path: Path, text: str, cause: str, words: str) -> None:
    halts, findings = failures_of(tmp_path, text)
    assert halts == [cause]
    ended = next(finding for finding in findings if finding.code == "broker-ended")
    assert words in ended.message and ended.severity == "error"


@pytest.mark.parametrize(
    "sentence",
    [
        "Error while appending records to a-0 in dir /d",
        "Error while loading log dir /d",
        "Failed to access checkpoint file cleaner-offset-checkpoint in dir /d",
        "Error while writing to checkpoint file /d/recovery-point-offset-checkpoint",
        "Exception while deleting Log(dir=/d/a-0.x-delete, topic=a, partition=0) in dir /d.",
        "Error while writing to highwatermark file in directory /d",
    ],
)
def test_the_directory_that_failed_is_named(tmp_path: Path, sentence: str) -> None:
    line = f"[2026-11-20 10:00:00,000] ERROR {sentence} (kafka.server.LogDirFailureChannel)\n{NO_SPACE}"
    _, (failed,) = failures_of(tmp_path, UP + line)
    assert failed.message.startswith("Log directory /d of broker 1 failed"), failed.message
