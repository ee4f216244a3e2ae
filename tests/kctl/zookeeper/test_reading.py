"""Reading znodes in bulk, from recordings and from a store in a dict."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.exceptions import ConnectionLoss, NoAuthError, NoNodeError

from formats.errors import FormatError
from formats.znodes.cluster import parse_partition_state, parse_topic
from kctl.cluster.intent import PlainWrite
from kctl.cluster.state import PartitionState
from kctl.cluster.versions import KafkaVersion, parse_version
from kctl.errors import BadValue, KctlError, Refused
from kctl.zookeeper.bulk import (
    GET_CHILDREN,
    GET_DATA,
    HEADER,
    INTEGER,
    MultiRead,
    PendingAnswers,
    ReadRequest,
    Slot,
    multi_read,
    pipelined,
)
from kctl.zookeeper.cluster import ZookeeperCluster
from kctl.zookeeper.export import export_lines, export_to
from kctl.zookeeper.reading import parse_partition_state_quickly, parse_topic_quickly, read_cluster
from kctl.zookeeper.snapshot import read_snapshot
from kctl.zookeeper.store import LARGEST_REQUEST, Stat, request_size, walk
from tests.conftest import recording
from tests.fakes import FakeStore, add_topic, fake_cluster

STAT = Stat(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
PACKED = __import__("struct").pack(">qqqqiiiqiiq", *STAT)


# --- the wire ---


def test_a_multi_read_is_as_the_server_reads_it() -> None:
    sent = MultiRead(GET_DATA, ["/a", "/bé"]).serialize()
    one = HEADER.pack(4, False, -1) + INTEGER.pack(2) + b"/a\0"
    other = HEADER.pack(4, False, -1) + INTEGER.pack(4) + "/bé".encode() + b"\0"
    assert sent == one + other + HEADER.pack(-1, True, -1)


def test_the_answers_of_a_multi_read() -> None:
    data = HEADER.pack(4, False, 0) + INTEGER.pack(3) + b"abc" + PACKED
    missing = HEADER.pack(-1, False, -101) + INTEGER.pack(-101)
    empty = HEADER.pack(4, False, 0) + INTEGER.pack(-1) + PACKED
    end = HEADER.pack(-1, True, -1)
    found = MultiRead(GET_DATA, []).deserialize(data + missing + empty + end, 0)
    assert found == [(b"abc", STAT), None, (b"", STAT)]
    names = HEADER.pack(8, False, 0) + INTEGER.pack(2) + INTEGER.pack(1) + b"b" + INTEGER.pack(1) + b"a"
    assert MultiRead(GET_CHILDREN, []).deserialize(names + end, 0) == [["a", "b"]]


def test_single_reads() -> None:
    assert ReadRequest(GET_DATA, "/a").serialize() == INTEGER.pack(2) + b"/a\0"
    assert ReadRequest(GET_DATA, "/a").deserialize(b"xx" + INTEGER.pack(1) + b"y" + PACKED, 2) == (b"y", STAT)


def answering(requests: list[object], answer: object) -> object:
    """A connection that answers at once."""

    def call(request: object, slot: Slot) -> None:
        requests.append(request)
        value = answer(request)  # type: ignore[operator]
        slot.set_exception(value) if isinstance(value, Exception) else slot.set(value)

    return call


def test_many_reads_come_back_in_order_and_missing_ones_are_none() -> None:
    sent: list[object] = []
    call = answering(sent, lambda r: NoNodeError() if r.path.endswith("3") else r.path)
    paths = [f"/{n}" for n in range(2500)]
    found = pipelined(call, GET_DATA, paths, 1)  # type: ignore[arg-type]
    assert found == [None if path.endswith("3") else path for path in paths]
    sent.clear()
    hidden = NoAuthError()
    call = answering(sent, lambda r: hidden if r.path == "/2" else r.path)
    assert pipelined(call, GET_DATA, ["/1", "/2", "/3"], 1) == ["/1", hidden, "/3"]  # type: ignore[arg-type]
    sent.clear()
    answers = lambda r: [hidden if path == "/2" else path for path in r.paths]  # noqa: E731
    assert multi_read(answering([], answers), GET_DATA, ["/1", "/2"], 1) == ["/1", hidden]  # type: ignore[arg-type]
    with pytest.raises(ConnectionLoss):
        multi_read(answering([], lambda r: [ConnectionLoss()]), GET_DATA, ["/1"], 1)  # type: ignore[arg-type]
    found = multi_read(answering(sent, lambda r: list(r.paths)), GET_DATA, paths, 1)  # type: ignore[arg-type]
    assert found == paths and len(sent) == 13


def test_a_lost_connection_is_an_error_and_silence_a_time_out() -> None:
    with pytest.raises(ConnectionLoss):
        pipelined(answering([], lambda r: ConnectionLoss()), GET_DATA, ["/a"] * 20, 1)  # type: ignore[arg-type]
    with pytest.raises(TimeoutError):
        pipelined(lambda request, slot: None, GET_DATA, ["/a"] * 20, 0.05)


def test_a_wake_up_meant_for_the_wait_before_is_no_time_out() -> None:
    """kazoo's thread may have seen the number awaited before, and wake the waiting one after that began anew."""
    answers = PendingAnswers(2)

    class Late(threading.Event):
        """Says at first that it was set, as an event is that was set late."""

        waited = 0

        def wait(self, timeout: float | None = None) -> bool:
            self.waited += 1
            if self.waited == 2:
                answers.put(0, "a")
                answers.put(1, "b")
            return True

    answers._enough = Late()
    answers.wait_for(2, 60)
    assert answers.values == ["a", "b"]


# --- quick and slow parsers agree ---


def json_values() -> st.SearchStrategy[object]:
    leaves = (
        st.none()
        | st.booleans()
        | st.integers(-3, 2**33)
        | st.text(max_size=2)
        | st.lists(st.integers(0, 9), max_size=3)
    )
    maps = st.dictionaries(st.sampled_from(["0", "1", "x", "-1", "007", "9" * 12]), leaves, max_size=3)
    keys = ["leader", "leader_epoch", "isr", "controller_epoch", "version", "leader_recovery_state", "other"]
    keys += ["partitions", "adding_replicas", "removing_replicas", "topic_id"]
    return st.dictionaries(st.sampled_from(keys), leaves | maps | st.just("dORjDjfESdeIhDtV432STQ"))


STATES = st.fixed_dictionaries(
    {
        "leader": st.integers(-2, 9),
        "leader_epoch": st.integers(0, 9),
        "isr": st.lists(st.integers(0, 9), max_size=3),
    },
    optional={
        "controller_epoch": st.integers(0, 9),
        "leader_recovery_state": st.integers(0, 1),
        "x": st.none(),
    },
)


@given(
    (json_values() | STATES).map(lambda v: json.dumps(v).encode()) | st.binary(),
    st.sampled_from([b"", b" x", b"\n"]),
)
def test_quick_and_slow_parsers_agree(data: bytes, more: bytes) -> None:
    for quick, slow in (
        (lambda d: parse_partition_state_quickly(d, 7), _state),
        (parse_topic_quickly, parse_topic),
    ):
        try:
            wanted: object = slow(data + more)  # type: ignore[operator]
        except FormatError as error:
            wanted = str(error)
        try:
            found: object = quick(data + more)  # type: ignore[operator]
        except FormatError as error:
            found = str(error)
        if hasattr(wanted, "other"):
            assert [getattr(wanted, n) for n in TOPIC_FIELDS] == [getattr(found, n) for n in TOPIC_FIELDS]
        else:
            assert found == wanted


TOPIC_FIELDS = ("version", "partitions", "adding_replicas", "removing_replicas", "topic_id")


def _state(data: bytes) -> PartitionState:
    s = parse_partition_state(data)
    return PartitionState(s.leader, s.leader_epoch, s.isr, s.controller_epoch, 7)


# --- versions ---


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("incidents/life-0.8.2", "0.8.2"),
        ("incidents/life-0.10.2", "0.10.2"),
        ("incidents/life-1.1", "1.1"),
        ("incidents/life-2.8", "2.8"),
        ("incidents/life-3.9", "3.9"),
    ],
)
def test_the_version_is_a_lower_bound(name: str, version: str) -> None:
    """What shows in ZooKeeper: never above the true version, and with what matters to a writer in it."""
    lowest = {"1.1": KafkaVersion(1, 1), "2.8": KafkaVersion(2, 8), "3.9": KafkaVersion(3, 4)}
    for path in sorted(recording(name).rglob("znodes*.jsonl")):
        found = read_cluster(read_snapshot(path)).kafka_version
        assert lowest.get(version, parse_version(version)) <= found <= parse_version(version)


def test_versions_are_written_as_kafka_does() -> None:
    assert str(parse_version("0.10.2.1")) == "0.10.2" and str(parse_version("2.8.2")) == "2.8"
    for wrong in ("two", "2", "2.8-IV1", ""):
        with pytest.raises(BadValue):
            parse_version(wrong)


# --- state, snapshot, export ---


def test_a_recorded_cluster_reads_as_it_was() -> None:
    path = sorted(recording("incidents/unclean-2.8").rglob("znodes*.jsonl"))[0]
    state = read_cluster(read_snapshot(path), configs=("topics", "brokers"))
    assert state.problems == () and state.cluster_id and state.controller and not state.controller.is_kraft
    assert len(state.partition_states) == sum(len(t.partitions) for t in state.topics.values()) > 0


def test_an_export_goes_round(tmp_path: Path) -> None:
    store = fake_cluster()
    add_topic(store, "a", [[1, 2]])
    store.put("/config/users/u", {"version": 1, "config": {"SCRAM-SHA-512": "hush"}})
    store.put("/zookeeper/quota", b"")
    file = tmp_path / "znodes.jsonl"
    done = export_to(file, export_lines(store))
    assert done.redacted == 1 and "hush" not in file.read_text() and "/zookeeper" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    wanted = {
        p: (n.data, n.stat.version, n.stat.ephemeral_owner) for p, n in walk(store) if "zookeeper" not in p
    }
    found = {p: (n.data, n.stat.version, n.stat.ephemeral_owner) for p, n in walk(read_snapshot(file))}
    changed = {path for path in wanted if wanted[path] != found[path]}
    assert changed == {"/config/users/u"} and wanted.keys() == found.keys()
    with pytest.raises(Refused, match="already exists"):
        export_to(file, export_lines(store))


def test_an_export_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    store = fake_cluster()

    def broken(paths: object) -> list[None]:
        raise KctlError("gone")

    store.children_many = broken  # type: ignore[assignment,method-assign]
    with pytest.raises(KctlError):
        export_to(tmp_path / "x", export_lines(store))
    assert not (tmp_path / "x").exists()


def test_no_cluster_below_a_chroot() -> None:
    with pytest.raises(KctlError, match="check the chroot"):
        read_cluster(FakeStore({"/other": b""}))


def test_a_claimed_cluster_is_migrating() -> None:
    store = fake_cluster()
    assert not read_cluster(store).is_migrating
    store.remove("/controller")
    store.put("/controller", {"version": 2, "brokerid": 3000, "timestamp": "1", "kraftControllerEpoch": 4})
    assert read_cluster(store).is_migrating


def test_requests_that_fit() -> None:
    from kctl.model import TopicPartition

    cluster = ZookeeperCluster(fake_cluster())
    many = [(TopicPartition("t" * 30, n), (100, 200, 300)) for n in range(20_000)]
    fits = cluster.request_partitions_fitting(many, "reassign")
    assert 9_000 < fits < 12_500
    assert cluster.request_partitions_fitting(many[:10], "reassign") == 10
    assert fits < cluster.request_partitions_fitting(many, "elect-preferred")


def test_the_size_of_a_request_is_rounded_up() -> None:
    assert request_size([PlainWrite(action="set", target="/abc", after=b"x" * 100, version=1)]) >= 104
    assert LARGEST_REQUEST < 1_048_575
