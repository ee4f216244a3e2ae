"""What a line means where its class, its identity or the lines after it decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.broker_logs.explain import explain_line
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
