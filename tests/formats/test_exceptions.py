"""What an exception in a broker's log says about its cause."""

from __future__ import annotations

import re

import pytest

from formats.broker_logs.exceptions import cause_of, every_cause, is_exception, thrown_in
from formats.broker_logs.threads import THREADS, thread_of

NO_SPACE = "java.io.IOException: No space left on device"
DELETED = """Error while deleting segments for quotes-0 in dir /d (kafka.server.LogDirFailureChannel)
java.nio.file.NoSuchFileException: /d/quotes-0/00000000000000000000.log
\tat java.base/sun.nio.fs.UnixException.translateToIOException(UnixException.java:92)
\tat kafka.log.LogSegment.changeFileSuffixes(LogSegment.scala:494)
\tSuppressed: java.nio.file.AccessDeniedException: /d/quotes-0/x.log -> /d/quotes-0/x.log.deleted
\t\tat java.base/sun.nio.fs.UnixCopyFile.move(UnixCopyFile.java:416)
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (NO_SPACE, "disk_full"),
        ("Exception: /d/a.log: No space left on device", None),
        ("java.nio.file.FileSystemException: /d/a.log: No space left on device", "disk_full"),
        ("java.io.FileNotFoundException: /d/recovery-point-offset-checkpoint.tmp (Permission denied)", "permission_denied"),
        ("java.nio.file.AccessDeniedException: /d/a-0", "permission_denied"),
        ("java.nio.file.AccessDeniedException: C:\\d\\a -> C:\\d\\b\n\tat sun.nio.fs.WindowsException.x(W.java:1)", "windows_file_in_use"),
        ("java.nio.file.FileSystemException: /d/x.index: Too many open files", "too_many_open_files"),
        ("java.io.IOException: Map failed\n\tat x.Y(Z.java)\nCaused by: java.lang.OutOfMemoryError: Map failed", "map_failed"),
        ("java.io.IOException: Read-only file system", "read_only_file_system"),
        ("java.io.IOException: Input/output error", "disk_failed"),
        ("java.io.IOException: Stale file handle", "nfs_stale_handle"),
        ("java.io.IOException: Stale NFS file handle", "nfs_stale_handle"),
        ("java.nio.file.DirectoryNotEmptyException: /d/a-0.0b5b9c7d-delete", "nfs_file_held"),
        ("java.nio.file.DirectoryNotEmptyException: /d/a-0", "resource_busy"),
        ("java.io.IOException: Invalid argument\n\tat java.io.RandomAccessFile.setLength(Native Method)", "cannot_resize_mapped_file"),
        ("java.nio.channels.ClosedByInterruptException", "interrupted"),
        ("java.nio.file.NoSuchFileException: config/sever.properties\n\tat kafka.Kafka$.getPropsFromArgs(Kafka.scala:50)", "settings_not_there"),
        ("javax.security.auth.login.LoginException: No LoginModule found for org.apache.kafka.common.security.ScramLoginModule", "login_module_unknown"),
        ("javax.security.auth.login.LoginException: Cannot locate KDC", "sasl_refused"),
        (DELETED, "file_vanished"),
        ("Error: java.io.IOException: Invalid argument (kafka.log.LogManager)", "invalid_argument"),
        (f"org.apache.kafka.common.errors.KafkaStorageException: Error in dir /d\nCaused by: {NO_SPACE}", "disk_full"),
        ("org.apache.kafka.common.errors.KafkaStorageException: Error in dir /d", "log_dir_failed"),
        ("org.apache.kafka.common.KafkaException: something new", None),
        ("java.lang.IllegalArgumentException: No MetadataVersion with feature level 27", "metadata_version_unknown"),
        ("NoSuchFileException: /a/b", "file_vanished"),
        ("java.lang.IllegalArgumentException: requirement failed: log.dirs must have one", "configuration_wrong"),
        ("java.lang.IllegalArgumentException: requirement failed: Corrupt index found, index file (/d) x", "index_damaged"),
        ("java.nio.BufferUnderflowException", "file_cut"),
        ("java.io.EOFException", "connection_broken"),
        ("java.lang.NullPointerException", "program_error"),
        (
            "java.lang.RuntimeException: Received a fatal error while waiting for the controller to acknowledge that we are caught up\n"
            "Caused by: java.util.concurrent.CancellationException\n"
            "\tat kafka.server.BrokerLifecycleManager$ShutdownEvent.run(BrokerLifecycleManager.scala:638)",
            "not_registered",
        ),
        ("java.util.concurrent.CancellationException\n\tat kafka.server.Other.run(Other.scala:638)", None),
        (f"Error (kafka.server.ReplicaFetcherThread){NO_SPACE}", "disk_full"),  # a line end was lost
        ("org.apache.kafka.common.KafkaException: Failed to acquire lock on file .lock in /d. A Kafka instance in another process or thread is using this directory.", "log_dir_locked"),
        ("org.apache.zookeeper.KeeperException$NodeExistsException: KeeperErrorCode = NodeExists for /x", "znode_exists"),
        ("org.apache.kafka.common.errors.CorruptRecordException: Record is corrupt (stored crc = 1, computed crc = 2)", "record_damaged"),
    ],
)  # fmt: skip
def test_the_exception_and_its_message_decide(text: str, cause: str | None) -> None:
    known = cause_of(text)
    assert (known.cause.id if known else None) == cause


def test_what_the_message_names_is_in_the_meaning() -> None:
    known = cause_of("java.lang.IllegalArgumentException: No MetadataVersion with feature level 27")
    assert known is not None and known.fields == {"level": "27"} and "metadata.version 27" in known.meaning


def test_every_exception_of_the_table_is_found_by_its_own_row() -> None:
    """Messages with every field filled in; a row above it may know the exception as well where its place decides."""
    ids = [cause.id for cause in every_cause()]
    assert len(set(ids)) >= 100
    for cause in every_cause():
        for classes, message in cause.patterns:
            text = re.sub(r"\(\?P<\w+>\.\*\?\)|\.\*\?", "x", message.pattern)
            text = re.sub(r"\\(.)", r"\1", text)
            for name in classes:
                known = cause_of(f"a.b.{name}: {text}\n\tat {cause.place.pattern if cause.place else ''}")
                assert known is not None or cause.id == "wrapped", (cause.id, name, text)


def test_a_disk_failed_only_where_the_exception_says_an_io_error() -> None:
    for cause in every_cause():
        if "failed disk" in cause.meaning:
            assert "no failed disk" in cause.meaning or "only an I/O error" in cause.action


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (NO_SPACE, True),
        ('Exception in thread "main" java.lang.OutOfMemoryError: Java heap space', True),
        (f"Caused by: {NO_SPACE}", True),
        (f"[2026-11-20 10:00:00,000] ERROR x (kafka.log.Log)\n{NO_SPACE}", False),
        ("Error due to", False),
    ],
)
def test_an_exception_is_told_from_a_line(text: str, is_one: bool) -> None:
    assert is_exception(text) is is_one


def test_the_innermost_exception_comes_first_and_what_is_suppressed_last() -> None:
    assert [thrown.exception for thrown in thrown_in(DELETED)] == [
        "java.nio.file.NoSuchFileException",
        "java.nio.file.AccessDeniedException",
    ]
    assert len(thrown_in("\n".join(["a.BException: x"] * 100_000))) < 100


@pytest.mark.parametrize(
    ("message", "what"),
    [
        ("[kafka-log-cleaner-thread-0]: Error due to", "a thread of the log cleaner"),
        ("[ReplicaFetcherThread-0-2], Error due to ", "a fetcher of replicas"),
        ("[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Error due to", "a fetcher of replicas"),
        ("[Controller-1-to-broker-2-send-thread], Error due to", "the controller's sender to one broker"),
        ("[ExpirationReaper-1-Produce]: Error due to", "the reaper of requests that wait"),
        ("[kafka-0-raft-io-thread]: Error due to", "KRaft's metadata quorum"),
        ("[delete-topics-thread-1], Error due to", "the controller's deletion of topics"),
    ],
)
def test_a_thread_is_known_by_its_name(message: str, what: str) -> None:
    named = thread_of(message)
    assert named is not None and named[1] is not None and named[1].what == what
    assert len(THREADS) >= 20 and thread_of("Error due to") is None


def test_a_long_message_takes_no_long_time() -> None:
    assert cause_of("java.io.IOException: " + "Stale " * 100_000) is None
    assert cause_of("a." * 100_000) is None
