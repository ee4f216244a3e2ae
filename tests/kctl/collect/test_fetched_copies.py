"""Copies of what brokers gave: batches alone, and what was told of the cluster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commands.collect.brokers import AskedCluster
from formats.log.hashed_contents import ContentHash
from formats.log.record_batch import Record, write_batch
from kctl.cluster.state import ClusterState, PartitionState, Topic
from kctl.cluster.versions import KafkaVersion
from kctl.collect.collection import Collected
from kctl.collect.headers_only import HashedLog
from kctl.collect.placement import Choice
from kctl.collect.transport import ReadFailed
from kctl.collect.writing import Target
from kctl.model import TopicPartition
from kctl.wire.replicas import collecting
from kctl.wire.replicas.collecting import BrokerPart, ReplicaCopies, _Replica
from kctl.wire.replicas.fetching import Fetched
from tests.conftest import recording, rows
from tests.kctl.collect.test_copies_as_evidence import lines_of, write

KEPT = ("replication-offset-checkpoint", "leader-epoch-checkpoint")


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """A copy of a sound cluster, of which only batches, watermarks and epochs are left."""
    copy = tmp_path / "copy"
    source = recording("incidents/hwloss-1.1") / "moments" / "after"
    assert rows("collect", "--to", copy, source).status == 0
    for path in copy.glob("broker-*/**/*"):
        if path.is_file() and path.suffix != ".log" and path.name not in KEPT:
            path.unlink()
    for path in copy.glob("*znodes*"):
        path.unlink()
    for broker_id in (3, 4):  # which hold no partition
        shutil.rmtree(copy / f"broker-{broker_id}")
    yield copy


def fetched(copy: Path) -> None:
    """Note that brokers gave the batches."""
    write(copy, [{**line, "fetched": True} if line["kind"] == "planned" else line for line in lines_of(copy)])


def tell(copy: Path, *others: dict[str, Any], replicas: list[int]) -> None:
    """What brokers told of one topic."""
    partition = {
        "kind": "partition", "topic": "accounts", "partition": 0, "leader": 1, "leader_epoch": 3,
        "replicas": replicas, "isr": [1],
    }  # fmt: skip
    told = [
        {"kind": "cluster", "cluster_id": "x"},
        {"kind": "broker", "broker_id": 1, "is_alive": True},
        {"kind": "topic", "topic": "accounts", "topic_id": None, "configs": {}},
        {"kind": "config", "entity_type": "brokers", "entity_name": "<default>", "key": "a", "value": "b"},
    ]
    (copy / "metadata").mkdir()
    lines = (json.dumps(row, separators=(",", ":")) + "\n" for row in (*told, partition, *others))
    (copy / "metadata" / "cluster.jsonl").write_text("".join(lines))


def test_batches_that_a_broker_gave_lack_no_other_file(copy: Path) -> None:
    assert "indexes-await-recovery" in {row["code"] for row in rows("segment", "verify", copy).of("finding")}
    fetched(copy)
    verified = rows("segment", "verify", copy)
    assert (verified.status, verified.of("finding")) == (0, [])


def test_no_start_is_forecast_of_what_a_broker_gave(copy: Path) -> None:
    fetched(copy)
    ran = rows("log-dir", "start", copy)
    assert ran.status == 3
    for judged in ran.of("judgement"):
        assert judged["verdict"] == "could_not_judge"
        assert (
            judged["missing"][0]["get"] == f"kctl collect --to more ssh://BROKER{judged['broker_id']}/LOG_DIR"
        )
    assert {row["starts"] for row in ran.of("start")} == {None}


def test_what_brokers_told_is_the_assignment(copy: Path) -> None:
    fetched(copy)
    tell(copy, replicas=[1, 2, 9])
    (judged,) = [
        row
        for row in rows("replica", "loss", copy, "--topic", "accounts").of("judgement")
        if row["partition"] == 0
    ]
    assert judged["verdict"] == "could_not_judge"
    assert {part["what"] for part in judged["missing"]} == {"replica of broker 9"}


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "partition", "topic": "accounts", "partition": 0, "leader": 1, "leader_epoch": 3, "replicas": "1", "isr": []},
        {"kind": "topic", "topic": ["accounts"], "topic_id": None, "configs": {}},
        {"kind": "nothing that is known"},
        {"kind": "broker", "broker_id": 1, "is_alive": True, "more": "x" * (1 << 20)},
    ],
)  # fmt: skip
def test_a_line_that_brokers_did_not_tell_so_is_named(other: dict[str, Any], copy: Path) -> None:
    fetched(copy)
    tell(copy, other, replicas=[1, 2, 3])
    ran = rows("replica", "loss", copy, "--topic", "accounts")
    assert ran.status == 3 and "no row of a cluster at line 6" in ran.err


def test_a_topic_that_brokers_did_not_tell_of_is_not_deleted(tmp_path: Path) -> None:
    """They tell of chosen topics, and of those that the user may see."""
    copy = tmp_path / "copy"
    shutil.copytree(recording("incidents/unclean-2.8") / "moments", copy / "moments", symlinks=True)
    after = copy / "moments" / "after"
    (after / "znodes.jsonl").unlink()
    tell(after, replicas=[1, 2, 3])
    ran = rows("replica", "loss", copy, "--topic", "ledger")
    assert ran.status == 5 and [row["verdict"] for row in ran.of("judgement")] == ["lost"] * 3


def test_no_folder_is_stray_by_what_brokers_told(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(recording("segments/3.9.1-kraft"), copy, symlinks=True)
    for path in sorted(copy.rglob("__cluster_metadata-0")):
        shutil.rmtree(path)
    before = rows("log-dir", "start", copy)
    tell(copy, replicas=[1])
    assert rows("log-dir", "start", copy).of("start_step") == before.of("start_step")


def test_a_variable_that_names_brokers_asks_for_nothing_beside_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens there: with the option the copy is incomplete."""
    source = recording("incidents/hwloss-1.1") / "moments" / "after"
    monkeypatch.setenv("KCTL_BOOTSTRAP_SERVER", "127.0.0.1:1")
    ran = rows("collect", "--to", tmp_path / "one", source)
    assert ran.status == 0 and "kafka://" not in ran.err
    named = rows("collect", "--to", tmp_path / "two", source, "--bootstrap-server", "127.0.0.1:1")
    assert named.status == 3 and "127.0.0.1:1" in named.err


def test_batches_are_not_gone_on_with(copy: Path) -> None:
    fetched(copy)
    ran = rows("collect", "--to", copy, "--bootstrap-server", "127.0.0.1:1", "--records", "--resume")
    assert ran.status == 2 and "--resume: batches that brokers gave are not gone on with" in ran.err


def test_a_cluster_that_was_not_reached_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, source = tmp_path / "copy", recording("incidents/hwloss-1.1") / "moments" / "after"
    asked = ("--bootstrap-server", "127.0.0.1:1", "--records")
    ran = rows("collect", "--to", copy, source, *asked)
    assert ran.status == 3 and "127.0.0.1:1" in ran.err
    assert "evidence-not-reached" in rows("segment", "verify", copy).codes()

    def copied(cluster: AskedCluster, run: Any, by_path: Any) -> Iterator[Collected]:
        for name in cluster.names:
            yield run.ended(Collected(name, [], files=1), 0, 0, Choice(), "Fetch")

    monkeypatch.setattr(AskedCluster, "__init__", lambda cluster, frame, choice, records: None)
    monkeypatch.setattr(AskedCluster, "names", ["kafka://127.0.0.1:1", "kafka://127.0.0.1:1/broker-7"])
    monkeypatch.setattr(AskedCluster, "close", lambda cluster: None)
    monkeypatch.setattr(AskedCluster, "copy", copied)
    ran = rows("collect", "--resume", "--to", copy, source, *asked)
    assert ran.status == 0, ran.err
    assert "evidence-not-reached" not in rows("segment", "verify", copy).codes()
    monkeypatch.setattr(AskedCluster, "names", ["kafka://elsewhere:1"])
    ran = rows("collect", "--resume", "--to", copy, source, *asked)
    assert ran.status == 4


@pytest.mark.parametrize("command", [("replica", "loss"), ("replica", "compare")])
def test_nothing_is_sound_where_earlier_records_were_not_asked_for(
    command: tuple[str, ...], copy: Path
) -> None:
    def verdicts() -> dict[str, dict[str, Any]]:
        judged = rows(*command, copy).of("judgement")
        return {f"{row['topic']}-{row['partition']}": row for row in judged}

    before = verdicts()
    sound = {name for name, row in before.items() if row["verdict"] == "sound"}
    name = min(sound)
    write(copy, [
        {**line, "from_offset": 3} if line["kind"] == "whole" and line["path"].endswith(f"/{name}") else line
        for line in lines_of(copy)
    ])  # fmt: skip
    after = verdicts()
    assert after[name]["verdict"] == "could_not_judge"
    (missing,) = after[name]["missing"]
    assert missing["what"] == "records before offset 3" and "kctl collect" in missing["get"]
    assert {name for name, row in after.items() if row["verdict"] == "sound"} == sound - {name}


def test_a_leader_that_was_elected_meanwhile_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of its epoch are copied, so that the search for epochs has to reach it."""
    tp = TopicPartition("t", 0)
    copies = ReplicaCopies(None, None, cluster_state(tp, leader=1, epoch=5), {})  # type: ignore[arg-type]
    now = cluster_state(tp, leader=2, epoch=6).partition_states
    monkeypatch.setattr(collecting, "read_partition_states", lambda wire, names: now)
    asked: list[tuple[int | None, int]] = []
    monkeypatch.setattr(
        collecting,
        "bounds",
        lambda wire, state, tps: (
            asked.append((state.leader(tp), state.partition_states[tp].leader_epoch)) or {}
        ),
    )
    assert copies._chunk(None, [tp]) == []  # type: ignore[arg-type]
    assert asked == [(2, 6)]


def cluster_state(tp: TopicPartition, *, leader: int, epoch: int) -> ClusterState:
    return ClusterState(
        cluster_id=None,
        kafka_version=KafkaVersion(4, 3),
        brokers={},
        controller=None,
        topics={tp.topic: Topic(name=tp.topic, partitions={tp.partition: (1, 2)})},
        partition_states={tp: PartitionState(leader=leader, leader_epoch=epoch, isr=(leader,))},
    )


def test_a_broker_whose_logs_were_copied_by_path_is_not_fetched() -> None:
    cluster = AskedCluster.__new__(AskedCluster)
    cluster.records, cluster.shown, cluster.partitions = True, "kafka://h", []
    cluster.state = SimpleNamespace(brokers={1: None, 2: None}, topics={})  # type: ignore[assignment]
    cluster.wire = SimpleNamespace(nodes=(1, 2), version_of=lambda request: 17)  # type: ignore[assignment]
    cluster.choice = Choice()
    run = SimpleNamespace(
        now_ms=lambda: 0,
        manifest=SimpleNamespace(flush=lambda: None, add=lambda line: None),
        ended=lambda done, *_: done,
    )
    sources = [done.source for done in cluster._records(run, {1, None})]  # type: ignore[arg-type]
    assert sources == ["kafka://h/broker-2"]


def test_a_replica_that_cannot_be_spooled_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ReadFailed("the temporary folder does not take it: No space left on device")

    monkeypatch.setattr(HashedLog, "_spool", refuse)
    run = SimpleNamespace(
        content_hash=ContentHash(b"a key of sixteen"), target=Target(tmp_path), now_ms=lambda: 0
    )
    part = BrokerPart(1, "kafka://b/broker-1", Collected("kafka://b/broker-1", [1]))
    data = write_batch([Record(0, 1, b"key", b"value")])
    fetcher = SimpleNamespace(fetch=lambda positions, most: [Fetched(data, 1, 0)])
    nothing: Any = None
    given: Any = fetcher
    its_run: Any = run
    replica = _Replica(nothing, given, 1, TopicPartition("orders", 0), 0, 0, 1)
    ReplicaCopies(its_run, nothing, nothing, {1: part})._segments(replica)
    assert replica.is_cut_off and "No space left" in (replica.why or "")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
