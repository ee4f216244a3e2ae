"""The adapter to kafka-python: the names that it relies on, addresses, and causes in a line."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import kafka.errors
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.parser import KafkaProtocol

from formats.values import replace
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.throttles import clearing, not_in_force
from kctl.changes.kinds.topics import CreateTopic
from kctl.cluster.state import UNTOLD, Broker, ClusterState, EntityConfig, Topic
from kctl.cluster.versions import KafkaVersion
from kctl.errors import BadValue, KctlError
from kctl.settings import Context
from kctl.wire import TESTED
from kctl.wire.adapter import (
    PRIVATE,
    Access,
    Wire,
    _again,
    access_from,
    error_name,
    server_list,
)
from kctl.wire.cluster import AdminCluster
from kctl.wire.logins import exposed_secrets
from kctl.wire.shortcuts.imports import ENDINGS, PLAIN
from kctl.wire.shortcuts.receiving import received
from kctl.wire.shortcuts.schemas import read_schema
from kctl.wire.writes.commit import WireCommit, can_tell, is_done
from kctl.wire.writes.planning import TRANSLATIONS, operations, request

ROOT = Path(__file__).parents[2]
LIST = "leader.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"


@pytest.mark.parametrize(("owner", "name"), PRIVATE, ids=lambda value: getattr(value, "__name__", value))
def test_the_library_still_has_what_is_used(owner: type, name: str) -> None:
    assert hasattr(owner, name)


def test_the_pin_is_the_version_that_the_names_were_read_in() -> None:
    assert f'wire = ["kafka-python=={TESTED}"]' in (ROOT / "pyproject.toml").read_text()


def test_another_version_is_refused_in_a_sentence() -> None:
    code = """
import sys, types
other = types.ModuleType("kafka.version")
other.__version__ = "3.1.0"
sys.modules["kafka.version"] = other
from commands.main import main
sys.exit(main(["topic", "list", "--bootstrap-server", "127.0.0.1:1"]))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (ran.returncode, ran.stderr.splitlines()) == (
        3,
        [
            f"kctl: --bootstrap-server works with kafka-python {TESTED}, and 3.1.0 is installed",
            f"      pip install kafka-python=={TESTED}",
        ],
    )


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


def test_settings_of_tls_and_sasl() -> None:
    assert Access(servers="a:1").settings()["security_protocol"] == "PLAINTEXT"
    assert Access(servers="a:1", tls=True).settings()["security_protocol"] == "SSL"
    assert Access(servers="a:1", tls_ca="ca.pem").settings()["security_protocol"] == "SSL"
    sasl = Access(servers="a:1", sasl_mechanism="SCRAM-SHA-256", sasl_username="u", sasl_password="p")
    assert sasl.settings()["security_protocol"] == "SASL_PLAINTEXT"
    assert (
        Access(servers="a:1", tls=True, sasl_mechanism="PLAIN").settings()["security_protocol"] == "SASL_SSL"
    )


def test_scram_names_and_mechanisms_in_any_case() -> None:
    context = Context(sasl_mechanism="scram-sha-256", sasl_username="a,b=c", sasl_password="p")
    settings = access_from(context, "a:1", 1.0).settings()
    assert (settings["sasl_mechanism"], settings["sasl_plain_username"]) == ("SCRAM-SHA-256", "a=2Cb=3Dc")
    plain = access_from(context._replace(sasl_mechanism="Plain"), "a:1", 1.0).settings()
    assert (plain["sasl_mechanism"], plain["sasl_plain_username"]) == ("PLAIN", "a,b=c")


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
        ("1:1", "1:1,2:2", {"operation": "APPEND", "value": "2:2"}),
        ("1:1,2:2", "2:2", {"operation": "SUBTRACT", "value": "1:1"}),
        ("1:1", "2:2", {"operation": "SET", "value": "2:2"}),
        (None, "2:2", {"operation": "SET", "value": "2:2"}),
        ("2:2", None, {"operation": "DELETE"}),
    ],
)
def test_lists_of_throttled_replicas_are_added_to(
    before: str | None, after: str | None, expected: dict[str, str]
) -> None:
    change = AlterConfig(entity_type="topics", entity_name="t", before={LIST: before}, after={LIST: after})
    assert operations(change) == [{"key": LIST, **expected}]


def test_a_rate_that_brokers_do_not_tell_counts_as_set_and_can_only_be_taken_away() -> None:
    """As brokers of 2.4 do; a value of ZooKeeper is always told."""
    rate = AlterConfig(entity_type="brokers", entity_name="1", after={RATE: "1000"}, before={RATE: None})
    config = EntityConfig(entity_type="brokers", entity_name="1", values={RATE: UNTOLD})
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
        assert clearing(lists, state).rates["1"][RATE] == (None if is_hidden else UNTOLD)
        for before, is_known in (
            (None, True),
            (UNTOLD, not is_hidden),
        ):  # written again where nobody can tell
            after = {"entity_type": "brokers", "entity_name": "1", "configs": operations(rate)}
            written = request(
                "IncrementalAlterConfigs", "broker 1", after, before={"configs": {RATE: before}}
            )
            assert can_tell(written, state) is is_known
            if is_hidden:
                asked = SimpleNamespace(read_state=lambda *_, at=state, **__: at)
                assert WireCommit(cast(AdminCluster, asked)).is_written([written]) is is_known
    back = AlterConfig(entity_type="brokers", entity_name="1", after={RATE: UNTOLD}, before={RATE: "1000"})
    assert operations(back) == [{"key": RATE, "operation": "DELETE"}]


def in_a_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.strip()


def test_whether_a_topic_with_a_configuration_was_created_can_be_told() -> None:
    intent = CreateTopic(topic="a", replicas={0: (1,)}, configs={"retention.ms": "5"})
    absent = ClusterState(
        cluster_id="c", kafka_version=KafkaVersion(4, 3), brokers={}, controller=None, backend="admin"
    )
    (write,) = TRANSLATIONS["create-topic"](absent, intent, absent)
    assert can_tell(write, absent) and not is_done(write, absent)
    there = replace(absent, topic_names=("a",), topics={"a": Topic(name="a", partitions={0: (1,)})})
    assert can_tell(write, there) and is_done(write, there)


def test_the_library_is_imported_in_part() -> None:
    code = "import kctl.wire.cluster, sys; print(*(m for m in sys.modules if m.startswith('kafka.')))"
    loaded = set(in_a_process(code).split())
    assert {"kafka.net.manager", "kafka.protocol.admin.topics"} <= loaded
    assert not {"kafka.consumer", "kafka.producer", "kafka.admin", "kafka.protocol.admin.acl"} & loaded


def test_others_find_the_library_whole() -> None:
    code = (
        "import kctl.wire.cluster\n"
        "from kafka import KafkaConsumer, KafkaProducer, __version__\n"
        "from kafka.admin import KafkaAdminClient\n"
        "from kafka.protocol.admin import CreateAclsRequest\n"
        "import kafka\n"
        "print(kafka.KafkaConsumer is KafkaConsumer, hasattr(kafka, 'nobody'), CreateAclsRequest.__name__)"
    )
    assert in_a_process(code) == "True False CreateAclsRequest"


def test_a_request_can_be_sent_to_another_broker() -> None:
    request = MetadataRequest(topics=None)
    request.API_VERSION = 5
    assert _again(request) is request and request.API_VERSION is None


def messages(module: str) -> dict[str, ast.ClassDef]:
    spec = importlib.util.find_spec(module)
    assert spec and spec.origin
    tree = ast.parse(Path(spec.origin).read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize("module", PLAIN)
def test_messages_that_are_made_alone_have_no_body(module: str) -> None:
    found = messages(module)
    for name in [message + ending for message in PLAIN[module] for ending in ENDINGS]:
        is_plain = [type(part) for part in found[name].body] == [ast.Pass]
        assert is_plain == (name != "DescribeClusterResponse"), name
        assert [ast.unparse(base) for base in found[name].bases] == ["ApiMessage"]


def test_schemas_are_the_librarys() -> None:
    folder = Path(kafka.errors.__file__).parent / "protocol" / "schemas"
    code = (
        "import importlib.util, json, sys\n"
        "from kafka.protocol.schemas.load_json import load_json\n"
        "for name in sys.argv[1].split(','):\n"
        "    found = load_json(name)\n"
        "    print(json.dumps({k: found[k] for k in found.keys() - {'license', 'doc'}}, sort_keys=True))"
    )
    names = sorted(path.stem for path in (folder / "resources").glob("*.json"))
    said = subprocess.run(
        [sys.executable, "-c", code, ",".join(names)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(names) > 100 and len(said) == len(names)
    for name, expected in zip(names, said, strict=True):
        assert read_schema(folder, name) == json.loads(expected), name


def test_tls_and_sasl_are_imported_where_they_are_used() -> None:
    code = (
        "import kctl.wire.cluster, sys\n"
        "print('_ssl' in sys.modules, 'kafka.net.sasl.scram' in sys.modules)\n"
        "import ssl\n"
        "from kafka.net.sasl import get_sasl_mechanism\n"
        "print(ssl.SSLContext.__name__, get_sasl_mechanism('PLAIN').__name__, get_sasl_mechanism('SCRAM-SHA-512').__name__)"
    )
    assert in_a_process(code).split() == [
        "False",
        "False",
        "SSLContext",
        "SaslMechanismPlain",
        "SaslMechanismScram",
    ]


class Transport:
    """What the library's transport has of a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock


def test_what_a_socket_has_is_read_at_once() -> None:
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        assert received(Transport(here)) == (b"", None)
        there.sendall(b"x" * 100_000)
        data, failure = b"", None
        while len(data) < 100_000 and failure is None:
            more, failure = received(Transport(here))
            data += more
        assert (data, failure) == (b"x" * 100_000, None)
        there.sendall(b"end")
        there.close()
        assert received(Transport(here)) == (b"end", None)
        data, failure = received(Transport(here))
        assert data == b"" and "disconnected" in str(failure)


class Answers(Transport):
    """A transport whose protocol puts answers to requests of a version together, as the library's connection does."""

    def __init__(self, sock: socket.socket, version: int, count: int) -> None:
        super().__init__(sock)
        self._protocol = self
        self.parser = KafkaProtocol(client_id="kctl")
        for _ in range(count):
            request = MetadataRequest(topics=None)
            request.API_VERSION = version
            self.parser.send_request(request)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.integers(0, 200_000), min_size=1, max_size=4),
    parts=st.lists(st.integers(1, 150_000), min_size=1, max_size=20),
)
def test_answers_are_received_whole_however_they_come(sizes: list[int], parts: list[int]) -> None:
    framed = b""
    for number, size in enumerate(sizes, 1):
        answer = MetadataResponse(
            cluster_id="c" * size, controller_id=number, brokers=[], topics=[], authorized_operations=set()
        )
        data = number.to_bytes(4, "big") + b"\0" + bytes(answer.encode(version=9))
        framed += len(data).to_bytes(4, "big") + data
    here, there = socket.socketpair()
    found: list[object] = []
    with here, there:
        here.setblocking(False)
        there.setblocking(False)
        transport = Answers(here, 9, len(sizes))
        left = memoryview(framed)
        turn = 0
        while left or len(found) < len(sizes):
            with contextlib.suppress(BlockingIOError):
                left = left[there.send(left[: parts[turn % len(parts)]]) :] if left else left
            turn += 1
            data, failure = received(transport)
            assert failure is None
            found += [one for _, one in transport.parser.receive_bytes(data)]
    assert [(len(one.cluster_id), one.controller_id) for one in found] == [  # type: ignore[attr-defined]
        (size, number) for number, size in enumerate(sizes, 1)
    ]


def test_an_answer_is_handed_on_uncopied() -> None:
    buffer = KafkaBytes(6)
    buffer.write(b"abcdef")
    buffer.seek(0)
    assert buffer.read(2) == b"ab" and buffer.tell() == 2
    rest = buffer.read()
    assert isinstance(rest, memoryview) and rest.obj is buffer and bytes(rest) == b"cdef"
    assert buffer.tell() == 6 and bytes(buffer.read()) == b"" and buffer.read(3) == b""


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
    key = {"key": "leader.replication.throttled.rate", "operation": "SET", "value": "1000"}
    after = {"entity_type": "brokers", "entity_name": "1", "configs": [key]}
    assert is_done(request("IncrementalAlterConfigs", "broker 1", after), state) == is_there


def test_a_message_is_one_class_for_everybody() -> None:
    """Also where somebody asks its module for a name that opens the module as a whole."""
    code = (
        "import kctl.wire\n"
        "from kafka.protocol.admin.cluster import DescribeQuorumRequest as first, DescribeQuorumResponse as answer\n"
        "import kafka.protocol.admin.cluster as module\n"
        "module.UpdateFeaturesRequest\n"
        "assert len([name for name in dir(module) if name.endswith('Request')]) > 3\n"
        "assert module.DescribeQuorumRequest is first\n"
        "from kafka.protocol.api_header import ResponseClassRegistry\n"
        "import gc; gc.collect()\n"
        "assert ResponseClassRegistry._response_class_registry[answer.API_KEY].name == 'DescribeQuorumResponse'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
