"""Lines that do not name their broker: the pod, container or host that printed them may."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formats.broker_logs.carrier_names import carrier_name
from kctl.broker_logs.sources import find_sources, layout_in_words
from kctl.text_logs.opening import PEEKED
from tests.conftest import kctl, rows

NAMELESS = "[2026-10-02 10:00:02,300] ERROR Shutdown broker because all log dirs in /data/kafka have failed (kafka.log.LogManager)"
LATER = "[2026-10-02 10:00:03,300] INFO Awaiting socket connections on 0.0.0.0:9092. (kafka.network.Acceptor)"


def named(broker_id: int) -> str:
    return f"[2026-10-02 10:00:01,100] INFO [KafkaServer id={broker_id}] started (kafka.server.KafkaServer)"


def filebeat(pod: str, *lines: str) -> str:
    return "".join(
        json.dumps({"@timestamp": "2026-10-02T10:00:02.300Z", "message": line, "kubernetes": {"pod": {"name": pod}}}) + "\n"
        for line in lines
    )  # fmt: skip


def brokers_by_name(path: Path, *brokers: str) -> dict[str | None, int | None]:
    files = find_sources([str(path)], brokers=brokers).files
    return {file.printed_by: file.broker_id for file in files}


def codes(path: Path) -> list[str]:
    return [f.code for f in find_sources([str(path)]).findings if f.code.startswith("log-broker")]


@pytest.mark.parametrize(
    ("text", "number", "is_id"),
    [
        ("kafka-3", 3, True),
        ("my-cluster-kafka-0", 0, True),
        ("kafka-0.kafka-headless.prod.svc.cluster.local", 0, True),
        ("kube.var.log.containers.kafka-3_prod_kafka-9b6d.log", 3, True),
        ("kafka-3/kafka", 3, True),
        ("my-kafka-3 kafka", 3, True),
        ("kafka/kafka-3 kafka", 3, True),
        ("kafka3.example.com kafka", 3, True),
        ("kafka-controller-1", 1, True),  # Bitnami's chart
        ("kafka-broker-0", 0, False),  # the chart adds 100
        ("my-cluster-broker-4", 4, False),  # Strimzi's pools have any name
        ("kraftcontroller-0", 0, False),  # Confluent's operator adds 9990
        ("broker-1", 1, False),
        ("kafka-101-x2k9z", 101, True),  # Koperator
        ("prod-Broker-3", 3, True),  # Amazon MSK
    ],
)
def test_names_that_have_a_number(text: str, number: int, is_id: bool) -> None:
    name = carrier_name(text)
    assert name is not None and (name.number, name.is_id) == (number, is_id)


@pytest.mark.parametrize(
    "text",
    [
        "node3",
        "ip-10-0-0-3",
        "worker-3.example.com",
        "kafka",
        "kafka_kafka.3.x7b2k9@node3",  # a slot of Docker Swarm
        "kafka_1",
        "kafka-exporter-5d4f6c7b8-x2k9z",
        "kafka-5d4f6c7b8-x2k9z",
        "kafka-connect-0",
        "kafka-zookeeper-0",
        "kafka-1 kafka-2",
        "10.0.0.3",
        "",
    ],
)
def test_names_that_tell_nothing(text: str) -> None:
    assert carrier_name(text) is None


def test_a_pod_tells_the_broker_of_lines_that_do_not(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(filebeat("my-cluster-kafka-3", NAMELESS, LATER))
    ran = rows("state-log", "merge", path)
    assert [(row["broker_id"], row["broker_by_name"]) for row in ran.of("event")] == [
        (3, "my-cluster-kafka-3")
    ] * 2
    (finding,) = ran.of("finding")
    assert finding["code"] == "log-broker-by-name" and ran.status == 0
    (file,) = find_sources([str(path)]).files
    assert (
        "printed by 'my-cluster-kafka-3', of broker 3 by the name 'my-cluster-kafka-3' alone"
        in layout_in_words(file)
    )
    (state,) = rows("state-log", "timeline", path).of("broker_state")
    assert (state["broker_id"], state["state"]) == (3, "halted")


def test_lines_that_name_their_broker_count_before_the_pod(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(filebeat("kafka-3", named(5), NAMELESS))
    assert brokers_by_name(path) == {"kafka-3": 5}
    assert codes(path) == ["log-broker-name-differs"]
    assert [row["broker_by_name"] for row in rows("state-log", "merge", path).of("event")] == [None, None]


@pytest.mark.slow
def test_a_line_far_behind_the_start_counts_before_the_pod(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    many = [LATER] * (2 * PEEKED // len(LATER))
    path.write_text(filebeat("kafka-3", *many, named(5), *many))
    assert brokers_by_name(path) == {"kafka-3": 5}


def test_a_folder_counts_before_the_pod(tmp_path: Path) -> None:
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "broker-1" / "kafka.log").write_text(filebeat("kafka-3", NAMELESS, LATER))
    assert brokers_by_name(tmp_path) == {"kafka-3": 1}
    assert codes(tmp_path) == ["log-broker-name-differs"]


def test_the_pods_whose_lines_tell_their_brokers_tell_what_is_added_to_numbers(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(
        filebeat("kafka-broker-0", named(100))
        + filebeat("kafka-broker-1", NAMELESS)
        + filebeat("kafka-2", NAMELESS)
    )
    assert brokers_by_name(path) == {"kafka-broker-0": 100, "kafka-broker-1": 101, "kafka-2": 2}


def test_pods_that_disagree_tell_nothing_of_others(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(
        filebeat("kafka-0", named(4)) + filebeat("kafka-1", named(7)) + filebeat("kafka-2", NAMELESS)
    )
    assert brokers_by_name(path) == {"kafka-0": 4, "kafka-1": 7, "kafka-2": None}
    assert "log-broker-name-unclear" in codes(path)


def test_two_pods_are_never_taken_for_one_broker(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(filebeat("east-kafka-0", NAMELESS) + filebeat("west-kafka-0", LATER))
    assert brokers_by_name(path) == {"east-kafka-0": None, "west-kafka-0": None}
    assert codes(path) == ["log-broker-name-unclear"] * 2
    path.write_text(filebeat("east-kafka-0", named(0), NAMELESS) + filebeat("west-kafka-0", LATER))
    assert brokers_by_name(path) == {"east-kafka-0": 0, "west-kafka-0": None}
    path.write_text(filebeat("kafka-broker-0", NAMELESS) + filebeat("kafka-controller-0", LATER))
    assert brokers_by_name(path) == {"kafka-broker-0": None, "kafka-controller-0": 0}


def test_numbers_of_docker_compose_are_no_ids(tmp_path: Path) -> None:
    path = tmp_path / "compose.log"
    path.write_text(f"kafka-1  | {NAMELESS}\nkafka-2  | {NAMELESS}\n")
    assert brokers_by_name(path) == {"kafka-1": None, "kafka-2": None}
    path.write_text(f"kafka-1  | {named(1001)}\nkafka-2  | {NAMELESS}\n")
    assert brokers_by_name(path) == {"kafka-1": 1001, "kafka-2": 1002}


def test_a_host_tells_no_broker_but_by_option(tmp_path: Path) -> None:
    path = tmp_path / "messages"
    path.write_text("".join(f"2026-10-02T10:00:02Z node{n} kafka: {NAMELESS}\n" for n in (3, 3, 4, 4)))
    assert set(brokers_by_name(path).values()) == {None} and codes(path) == []
    assert set(brokers_by_name(path, "30=node3", "40=node4").values()) == {30, 40}
    ran = kctl("state-log", "merge", path, "--broker", "3=node7", "--output", "jsonl")
    assert ran.status == 2 and "no line was printed by node7" in ran.err and "did you mean" in ran.err
