"""What a line means where its class, its identity or the lines after it decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.broker_logs.explain import explain_line, explain_rows
from kctl.broker_logs.merging import Count, prepare
from kctl.broker_logs.sources import find_sources

HEAD = "[2026-11-21 13:18:27,173]"


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (f"{HEAD} INFO [ControllerServer id=2] shutting down (kafka.server.ControllerServer)", "U13"),
        ("[ControllerServer id=2] shutting down", "U13"),
        ("[KafkaServer id=2] shutting down", "U13"),
        ("[Kafka Server 0], Starting", "U11"),
        ("[raft-expiration-reaper]: Starting", "F230"),
        ("[ReplicaFetcherThread-0-1], Starting ", "F230"),
        ("[SnapshotGenerator id=3] closed event queue.", "X225"),
        ("started", "U12"),
    ],
)
def test_the_class_decides_or_without_it_the_identity(text: str, event: str) -> None:
    assert explain_line(text)["event"] == event


THROWN = [
    f"{HEAD} WARN Invalid argument (kafka.utils.CoreUtils$)\njava.io.IOException: Invalid argument\n\tat x.Y\n",
    f"{HEAD} FATAL  (kafka.Kafka$)\njava.io.FileNotFoundException: a.properties (No such file)\n\tat x.Y\n",
    f"{HEAD} ERROR null (kafka.network.Acceptor)\njava.lang.NullPointerException\n\tat x.Y\n",
    f'{HEAD} ERROR Cannot invoke "x" (kafka.network.DataPlaneAcceptor)\r\njava.lang.NullPointerException: Cannot invoke "x"\r\n\tat x.Y\r\n',
    f"{HEAD} WARN Invalid argument (kafka.utils.CoreUtils$)\n",
    f"{HEAD} WARN Another text (kafka.utils.CoreUtils$)\njava.io.IOException: Invalid argument\n\tat x.Y\n",
    f"{HEAD} WARN Invalid argument (org.example.Other)\njava.io.IOException: Invalid argument\n\tat x.Y\n",
]


@pytest.mark.parametrize(
    ("text", "event"), list(zip(THROWN, ("X568", "X568", "X568", "X568", None, None, None), strict=True))
)
def test_a_line_that_only_repeats_the_exception_after_it_is_known(
    tmp_path: Path, text: str, event: str | None
) -> None:
    log = tmp_path / "server.log"
    log.write_text(text, newline="")
    merging = prepare(find_sources([str(log)]))
    assert [found.event for found in merging.events()] == [event]


def test_every_line_of_0_8_0_is_known(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "".join(
            f"[2014-01-14 18:31:2{second},728] INFO {text}\n"
            for second, text in enumerate(
                (
                    "[Socket Server on Broker 0], Started (kafka.network.SocketServer)",
                    "Closing zookeeper client... (kafka.server.KafkaZooKeeper)",
                    "[Kafka Request Handler on Broker 0], shutted down completely (kafka.server.KafkaRequestHandlerPool)",
                )
            )
        )
    )
    count, merging = Count(), prepare(find_sources([str(log)]))
    for event in merging.events():
        count.note(event)
    assert (count.events, count.unknown) == (3, 0)


FAILED = """[2026-11-20 12:59:20,100] INFO [KafkaServer id=0] started (kafka.server.KafkaServer)
[2026-11-20 12:59:27,761] ERROR Error while appending records to quotes-0 in dir /d (kafka.server.LogDirFailureChannel)
java.io.IOException: No space left on device
\tat kafka.log.Log.append(Log.scala:1)
[2026-11-20 12:59:28,100] ERROR Shutdown broker because all log dirs in /d have failed (kafka.log.LogManager)
"""


def test_the_exception_of_a_line_or_of_one_before_it_says_why(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(FAILED)
    line, exception = explain_rows(f"{log}:2")
    assert (line["event"], line["sign"]) == ("X232", "disk full")
    assert (exception["kind"], exception["cause"], exception["line"]) == ("exception", "disk_full", 2)
    shut_down, exception = explain_rows(f"{log}:5")
    assert (shut_down["event"], exception["cause"]) == ("D05", "disk_full")
    assert "failed disk" not in str(shut_down["sign"])
    (started,) = explain_rows(f"{log}:1")
    assert started["event"] == "U12"


def test_an_exception_by_itself_is_explained() -> None:
    (row,) = explain_rows("java.io.IOException: Map failed")
    assert (row["kind"], row["cause"]) == ("exception", "map_failed")
    (row,) = explain_rows("java.lang.FooException: what nobody knows")
    assert (row["exception"], row["cause"]) == ("java.lang.FooException", None)


def test_a_thread_that_died_is_named_with_what_stops() -> None:
    (row,) = explain_rows(f"{HEAD} ERROR [kafka-log-cleaner-thread-0]: Error due to (kafka.log.LogCleaner)")
    assert row["event"] == "F235" and "compaction stops" in str(row["meaning"])
    assert "kafka-log-cleaner-thread-0" in str(row["meaning"])


def test_a_first_dirty_offset_that_is_reset_is_harmless() -> None:
    (row,) = explain_rows(
        f"{HEAD} WARN Resetting first dirty offset of riders-0 to log start offset 20 since the checkpointed offset 9 is"
        " invalid. (kafka.log.LogCleanerManager$)"
    )
    assert "harmless" in str(row["meaning"]) and "KAFKA-6266" in str(row["meaning"])
    assert "damaged" not in str(row["sign"])
