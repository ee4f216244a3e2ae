"""Servers and logins of a client of brokers, and what is written from their answers."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from formats.values import replace
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.throttles import clearing, not_in_force
from kctl.changes.kinds.topics import CreateTopic
from kctl.cluster.state import NOT_RETURNED, Broker, ClusterState, EntityConfig, Topic
from kctl.cluster.versions import KafkaVersion
from kctl.errors import BadValue, KctlError
from kctl.settings import Context
from kctl.wire.adapter import (
    Access,
    Wire,
    access_from,
    error_name,
    server_list,
)
from kctl.wire.cluster import AdminCluster
from kctl.wire.logins import exposed_secrets
from kctl.wire.protocol.sasl import mechanism_name
from kctl.wire.writes.commit import WireCommit
from kctl.wire.writes.configs import ConfigOperation, IncrementalAlterConfigs, KnownConfigs, operations
from kctl.wire.writes.topics import create_topic

ROOT = Path(__file__).parents[2]
LIST = "leader.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"


def test_servers() -> None:
    assert server_list("a:1, b ,[::1]:9093") == ["a:1", "b:9092", "[::1]:9093"]
    for text in ("", " , ", "a:b", ":9092", "a:70000"):
        with pytest.raises(BadValue):
            server_list(text)


def test_a_failed_connection_leaves_nothing_behind() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        before = threading.active_count()
        with pytest.raises(KctlError, match=f"^no broker of {address} can be used: connection refused; "):
            Wire(Access(servers=address, timeout=0.3))
        assert threading.active_count() == before


def test_encryption_and_mechanisms_in_any_case() -> None:
    assert not Access(servers="a:1").is_encrypted
    assert (
        Access(servers="a:1", tls=True).is_encrypted and Access(servers="a:1", tls_ca="ca.pem").is_encrypted
    )
    context = Context(sasl_mechanism="scram-sha-256", sasl_username="a,b=c", sasl_password="p")
    assert access_from(context, "a:1", 1.0).sasl_mechanism == "SCRAM-SHA-256"
    assert mechanism_name(access_from(context._replace(sasl_mechanism="Plain"), "a:1", 1.0)) == "PLAIN"


@pytest.mark.parametrize(
    ("servers", "tls", "is_warned"),
    [("127.0.0.1:1,localhost:2,[::1]:3", False, False), ("kafka1:1", True, False), ("localhost:1,kafka1:1", False, True)],
)  # fmt: skip
def test_plain_without_tls_is_warned_of(servers: str, tls: bool, is_warned: bool) -> None:
    access = Access(servers, tls=tls, sasl_mechanism="PLAIN", sasl_username="u", sasl_password="p")
    sentences = list(
        exposed_secrets(access, [host.rpartition(":")[0].strip("[]") for host in servers.split(",")])
    )
    assert [sentence.startswith("the password is sent to kafka1 in clear") for sentence in sentences] == [
        True
    ] * is_warned


def test_errors_have_kafkas_names() -> None:
    assert error_name(41) == "NOT_CONTROLLER" and error_name(36) == "TOPIC_ALREADY_EXISTS"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("1:1", "1:1,2:2", ("APPEND", "2:2")),
        ("1:1,2:2", "2:2", ("SUBTRACT", "1:1")),
        ("1:1", "2:2", ("SET", "2:2")),
        (None, "2:2", ("SET", "2:2")),
        ("2:2", None, ("DELETE",)),
    ],
)
def test_lists_of_throttled_replicas_are_added_to(
    before: str | None, after: str | None, expected: tuple[str, ...]
) -> None:
    change = AlterConfig(entity_type="topics", entity_name="t", before={LIST: before}, after={LIST: after})
    assert operations(change) == (ConfigOperation(LIST, *expected),)


def test_a_rate_that_brokers_do_not_tell_counts_as_set_and_can_only_be_taken_away() -> None:
    """As brokers of 2.4 do; a value of ZooKeeper is always told."""
    rate = AlterConfig(entity_type="brokers", entity_name="1", after={RATE: "1000"}, before={RATE: None})
    config = EntityConfig(entity_type="brokers", entity_name="1", values={RATE: NOT_RETURNED})
    lists = {"t": {LIST: ("0:1",)}}
    for backend, is_hidden in (("admin", True), ("zookeeper", False)):
        state = ClusterState(
            cluster_id=None,
            kafka_version=KafkaVersion(2, 4),
            brokers={1: Broker(1, "h", 9092)},
            controller=None,
            configs={("brokers", "1"): config},
            backend=backend,
        )
        assert rate.how_far(state).is_done is is_hidden
        assert (not_in_force([rate], state) == []) is is_hidden
        assert clearing(lists, state).rates["1"][RATE] == (None if is_hidden else NOT_RETURNED)
        for before, is_known in (
            (None, True),
            (NOT_RETURNED, not is_hidden),
        ):  # written again where nobody can tell
            written = IncrementalAlterConfigs(
                about="broker 1",
                expected=KnownConfigs({RATE: before}),
                entity_type="brokers",
                entity_name="1",
                configs=operations(rate),
            )
            assert written.can_be_told(state) is is_known
            if is_hidden:
                asked = SimpleNamespace(wire=None, read_state=lambda *_, at=state, **__: at)
                assert WireCommit(cast(AdminCluster, asked)).is_written([written]) is is_known
    back = AlterConfig(
        entity_type="brokers", entity_name="1", after={RATE: NOT_RETURNED}, before={RATE: "1000"}
    )
    assert operations(back) == (ConfigOperation(RATE, "DELETE"),)


def in_a_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.strip()


def test_whether_a_topic_with_a_configuration_was_created_can_be_told() -> None:
    intent = CreateTopic(topic="a", replicas={0: (1,)}, configs={"retention.ms": "5"})
    absent = ClusterState(
        cluster_id="c", kafka_version=KafkaVersion(4, 3), brokers={}, controller=None, backend="admin"
    )
    (write,) = create_topic(absent, intent, absent)
    assert write.can_be_told(absent) and not write.is_shown(absent)
    there = replace(absent, topic_names=("a",), topics={"a": Topic(name="a", partitions={0: (1,)})})
    assert write.can_be_told(there) and write.is_shown(there)


def test_little_is_imported() -> None:
    code = "import kctl.wire.cluster, sys; print(*sys.modules)"
    loaded = set(in_a_process(code).split())
    assert not {"_ssl", "gssapi", "asyncio", "concurrent.futures", "kctl.wire.diagnosis"} & loaded


@pytest.mark.parametrize(
    ("present", "is_there"), [("1000", True), ("", True), ("2000", False), (None, False)]
)
def test_a_value_that_a_broker_keeps_to_itself_counts_as_set(present: str | None, is_there: bool) -> None:
    values = {} if present is None else {"leader.replication.throttled.rate": present}
    state = ClusterState(
        cluster_id="c",
        kafka_version=KafkaVersion(2, 4),
        brokers={},
        controller=None,
        configs={("brokers", "1"): EntityConfig(entity_type="brokers", entity_name="1", values=values)},
    )
    rate = ConfigOperation("leader.replication.throttled.rate", "SET", "1000")
    request = IncrementalAlterConfigs(
        about="broker 1", entity_type="brokers", entity_name="1", configs=(rate,)
    )
    assert request.is_shown(state) == is_there
