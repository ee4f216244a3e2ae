"""Migrations from ZooKeeper to KRaft: phases, what is meant to differ, and what is lost, of a recorded migration.

The recording is of Kafka 3.9.1 with brokers 0, 1, 2 and controller 100. What happened in it: in dual write a topic was
created (`during`) and one deleted, configurations, quotas and partitions were changed, and the removal of the quota of
client-id `batch` never reached ZooKeeper; after the end a topic (`after`), a configuration and a quota were changed.
"""

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from formats.values import replace
from kctl.migration.comparison import Comparison, Difference
from kctl.migration.entities import Entity, quota_value
from kctl.migration.kraft_side import KraftSide, entities_of, read_kraft_side
from kctl.migration.phase import MigrationStatus, Phase, status_of
from kctl.migration.preflight import MigrationFacts, examine
from kctl.migration.zookeeper_side import ZookeeperSide, read_zookeeper_side
from kctl.zookeeper.snapshot import read_snapshot
from tests.conftest import Ran, recording, rows, unchanged

RECORDED = "migration/3.9.1-clean"
LOG = "__cluster_metadata-0"
Lines = dict[str, dict[str, Any]]


def znodes_of(phase: str) -> Path:
    return recording(RECORDED) / phase / "znodes.jsonl"


def check(znodes: Path, metadata: str | Path | None = None, *more: object) -> Ran:
    given = ["--metadata", recording(RECORDED) / metadata / LOG if isinstance(metadata, str) else metadata]
    return rows("migration", "check", "--snapshot", znodes, *(given if metadata else []), *more)


def differences(ran: Ran, severity: str = "error") -> list[tuple[Any, ...]]:
    keys = ("entity_type", "entity", "field", "zookeeper", "kraft")
    return [tuple(row[k] for k in keys) for row in ran.of("difference") if row["severity"] == severity]


@pytest.fixture
def edited(tmp_path: Path) -> Callable[[str, Callable[[Lines], object]], Path]:
    """A function that gives the znodes of a phase with a change; the znodes changed are as old as they were."""

    def make(phase: str, change: Callable[[Lines], object]) -> Path:
        lines: Lines = {
            (row := json.loads(line))["path"]: row for line in znodes_of(phase).read_text().splitlines()
        }
        change(lines)
        path = tmp_path / "znodes.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in lines.values()))
        return path

    return make


def put(lines: Lines, path: str, content: object) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    old = lines.get(path) or {**lines["/cluster/id"], "path": path}
    lines[path] = {**old, "data": base64.b64encode(text.encode()).decode(), "data_text": text}


def value_of(lines: Lines, path: str) -> Any:
    return json.loads(lines[path]["data_text"])


# --- phases -------------------------------------------------------------------------------------------

PHASES = [
    ("before", "none", [0, 1, 2], None),
    ("preparing", "preparing", [0, 1, 2], []),
    ("hybrid", "hybrid", [0, 1, 2], []),
    ("dual-write", "dual_write", [], [0, 1, 2]),
    ("final", "finalized", [], [0, 1, 2]),
]


@pytest.mark.parametrize(("folder", "phase", "zookeeper", "kraft"), PHASES)
def test_the_phase(folder: str, phase: str, zookeeper: list[int], kraft: list[int] | None) -> None:
    metadata = [] if kraft is None else ["--metadata", recording(RECORDED) / folder]
    ran = rows("migration", "status", "--snapshot", znodes_of(folder), *metadata)
    (row,) = ran.of("migration")
    assert (ran.status, row["phase"]) == (0, phase)
    assert (row["zookeeper_brokers"], row["kraft_brokers"]) == (zookeeper, kraft)
    assert row["controller_epoch"] == {"before": 2, "preparing": 3}.get(folder, 5)


def test_the_phase_from_one_side() -> None:
    from_znodes = {
        folder: rows("migration", "status", "--snapshot", znodes_of(folder)).rows[0] for folder, *_ in PHASES
    }
    assert [row["phase"] for row in from_znodes.values()] == [
        "none",
        "preparing",
        "hybrid",
        "dual_write",
        "dual_write",
    ]
    assert "--metadata" in from_znodes["final"]["message"]
    for folder, phase, _, kraft in PHASES[1:]:
        (row,) = rows("migration", "status", "--metadata", recording(RECORDED) / folder).rows
        assert (row["phase"], row["zookeeper_brokers"], row["kraft_brokers"]) == (phase, None, kraft)


# --- a migration that went well -----------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["preparing", "hybrid"])
def test_nothing_is_wrong_before_and_right_after_the_copy(folder: str) -> None:
    with unchanged(recording(RECORDED) / folder):
        ran = check(znodes_of(folder), folder)
    assert (ran.status, differences(ran)) == (0, [])
    assert ran.codes("error", "warning") == []
    for row in ran.of("comparison"):
        assert row["equal"] + row["infos"] == row["fields"] + row["not_compared"]
    assert bool(ran.of("comparison")) == (folder == "hybrid")


def test_a_quota_whose_removal_never_reached_zookeeper() -> None:
    ran = check(znodes_of("dual-write"), "dual-write")
    assert differences(ran) == [("quota", "client-id=batch", "request_percentage", 25.5, None)]
    assert ran.status == 5


def test_what_is_newer_in_kraft_after_the_end() -> None:
    ran = check(znodes_of("final"), "final")
    assert (ran.status, differences(ran)) == (0, [])
    newer = [one for one in differences(ran, "info") if one[0] in ("topic", "config", "quota")]
    assert newer == [
        ("topic", "after", None, None, "present"),
        ("config", "topic orders", "retention.ms", "172800000", "3600000"),
        ("quota", "client-id=batch", "request_percentage", 25.5, None),
        ("quota", "user=dave", "producer_byte_rate", None, 5),
    ]


@pytest.mark.parametrize("metadata", ["hybrid", "dual-write", "final"])
def test_the_proof_from_an_export_made_before(metadata: str) -> None:
    ran = check(znodes_of("before"), metadata)
    assert (ran.status, differences(ran)) == (0, [])
    assert ran.rows[0]["phase"] == metadata.replace("-", "_").replace("final", "finalized")
    meant = differences(ran, "info")
    assert not [one for one in meant if one[2] in ("replicas", "topic_id")]
    if metadata != "hybrid":
        assert ("topic", "weird.Name_1", None, "present", None) in meant


def test_redacted_secrets_are_not_compared() -> None:
    ran = check(recording(RECORDED) / "dual-write" / "znodes-redacted.jsonl", "dual-write")
    assert [row["entity"] for row in ran.of("difference") if "not compared" in row["reason"]] == [
        "alice", "alice", "bob smith", "carol", "GUDUFZcWQcmIIiR6Lv_QZQ",
    ]  # fmt: skip
    assert len(differences(ran)) == 1  # the quota


def test_the_newest_snapshot_and_the_log_give_the_same(tmp_path: Path) -> None:
    whole = recording(RECORDED) / "final" / "with-snapshots"
    assert check(znodes_of("before"), whole).status == 0
    alone = tmp_path / LOG
    alone.mkdir()
    for path in whole.glob("*.checkpoint"):
        shutil.copy(path, alone)
    ran = check(znodes_of("before"), alone)
    # What was deleted, and what was lost, look the same without the records since the copy: no proof.
    assert ran.status == 5
    lost = differences(ran)
    assert ("topic", "weird.Name_1", None, "present", None) in lost
    assert not [one for one in lost if one[0] == "partition"]
    assert all(
        "does not tell why" in row["reason"] for row in ran.of("difference") if row["severity"] == "error"
    )


# --- what is lost or wrong ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sides() -> tuple[ZookeeperSide, KraftSide]:
    """Both sides of the hybrid phase, which agree."""
    folder = recording(RECORDED) / "hybrid"
    return read_zookeeper_side(read_snapshot(folder / "znodes.jsonl")), read_kraft_side([folder / LOG])


def compared(
    znodes: ZookeeperSide, kraft: KraftSide, status: MigrationStatus | None = None
) -> list[Difference]:
    comparison = Comparison(znodes, kraft, status or status_of(znodes, kraft))
    return [one for one in comparison.differences() if one.severity == "error"]


def fields_of(side: ZookeeperSide) -> Iterator[tuple[Entity, str]]:
    for entity, fields in side.entities.items():
        yield from ((entity, name) for name in fields)


def test_every_field_that_one_side_has_otherwise_is_an_error(sides: tuple[ZookeeperSide, KraftSide]) -> None:
    znodes, kraft = sides
    assert compared(znodes, kraft) == []
    other: dict[type, Any] = {str: "other", int: 1_000_000, list: [9, 9], float: 0.5, type(None): "other"}
    for entity, name in fields_of(znodes):
        fields = znodes.entities[entity]
        wrong = {**znodes.entities, entity: {**fields, name: other[type(fields[name])]}}
        assert [(one.entity, one.field) for one in compared(replace(znodes, entities=wrong), kraft)] == [
            (entity, name)
        ]


def test_every_entity_that_one_side_lacks_is_an_error(sides: tuple[ZookeeperSide, KraftSide]) -> None:
    znodes, kraft = sides
    for entity in znodes.entities:
        fewer = {key: value for key, value in kraft.entities.items() if key != entity}
        lost = compared(znodes, replace(kraft, entities=fewer))
        assert {one.entity for one in lost} == {entity}
        assert all(one.zookeeper is not None and one.kraft is None for one in lost)
        if entity.type in ("topic", "partition", "delegation_token", "broker"):
            assert [(one.field, one.zookeeper) for one in lost] == [(None, "present")]
        if entity.type != "broker":  # in KRaft mode a broker has no znode
            fewer = {key: value for key, value in znodes.entities.items() if key != entity}
            assert {one.entity for one in compared(replace(znodes, entities=fewer), kraft)} == {entity}


def test_order_counts_in_replicas_and_not_in_the_isr(sides: tuple[ZookeeperSide, KraftSide]) -> None:
    znodes, kraft = sides
    entity = Entity("partition", "orders-0")
    fields = znodes.entities[entity]
    for name in ("replicas", "isr"):
        turned = {**fields, name: list(reversed(fields[name]))}  # type: ignore[arg-type]
        found = compared(replace(znodes, entities={**znodes.entities, entity: turned}), kraft)
        assert [one.field for one in found] == (["replicas"] if name == "replicas" else [])


def test_a_replica_in_a_directory_that_nobody_registered(sides: tuple[ZookeeperSide, KraftSide]) -> None:
    kraft = read_kraft_side([recording(RECORDED) / "dual-write" / LOG])
    assert not [fields for fields in kraft.entities.values() if "directories" in fields]
    kraft.image.brokers[1].log_dirs = ["B" * 22]
    found = {entity.name for entity, fields in entities_of(kraft.image).items() if "directories" in fields}
    assert "orders-0" in found
    assert "plain-0" not in found


def test_configurations_that_zookeeper_does_not_have(sides: tuple[ZookeeperSide, KraftSide]) -> None:
    znodes, kraft = sides
    more = {**kraft.entities, Entity("config", "client-metrics all"): {"interval.ms": "1"}}
    assert compared(znodes, replace(kraft, entities=more)) == []


def test_a_lost_topic_is_one_difference(edited: Any) -> None:
    def change(lines: Lines) -> None:
        put(
            lines,
            "/brokers/topics/lost",
            {"version": 3, "partitions": {"0": [0]}, "topic_id": "A" * 21 + "B"},
        )
        put(lines, "/config/topics/lost", {"version": 1, "config": {"retention.ms": "1"}})

    ran = check(edited("before", change), "final")
    assert differences(ran) == [("topic", "lost", None, "present", None)]
    assert ran.status == 5


def test_a_leader_epoch_that_went_back(edited: Any) -> None:
    path = "/brokers/topics/orders/partitions/0/state"

    def change(lines: Lines) -> None:
        put(lines, path, {**value_of(lines, path), "leader_epoch": 99})

    assert differences(check(edited("before", change), "final")) == [
        ("partition", "orders-0", "leader_epoch", 99, 8)
    ]


def test_producer_ids_that_would_be_given_out_twice(edited: Any) -> None:
    block = {"version": 1, "broker": 0, "block_start": "8000", "block_end": "8999"}
    ran = check(edited("before", lambda lines: put(lines, "/latest_producer_id_block", block)), "final")
    assert differences(ran) == [("producer_ids", "producer_ids", "next_producer_id", 9000, 3000)]


def test_a_credential_of_another_password(edited: Any) -> None:
    def change(lines: Lines) -> None:
        config = value_of(lines, "/config/users/alice")
        config["config"]["SCRAM-SHA-256"] = config["config"]["SCRAM-SHA-256"].replace("4096", "8192")
        put(lines, "/config/users/alice", config)

    ran = check(edited("before", change), "final")
    ((kind, user, mechanism, ours, theirs),) = differences(ran)
    assert (kind, user, mechanism) == ("user", "alice", "SCRAM-SHA-256")
    assert ours != theirs
    assert ours.startswith("sha256 ")
    assert b"stored_key" not in ran.out


def test_a_redacted_token_that_kraft_does_not_have(edited: Any) -> None:
    def change(lines: Lines) -> None:
        put(lines, "/delegation_token/tokens/abc", "(redacted: 12 bytes, sha256 00)")

    assert differences(check(edited("before", change), "final")) == [
        ("delegation_token", "abc", None, "present", None)
    ]


# --- rolled back --------------------------------------------------------------------------------------


def rolled_back(lines: Lines) -> None:
    """What ZooKeeper has after a rollback from dual write: a broker is the controller, and elected leaders again."""
    later = {"ctime": 1795367200000, "mtime": 1795367200000, "czxid": 2000, "mzxid": 2000, "pzxid": 2000}
    del lines["/migration"]
    put(
        lines,
        "/controller",
        {"version": 2, "brokerid": 1, "timestamp": "1795367200000", "kraftControllerEpoch": -1},
    )
    put(lines, "/controller_epoch", "8")
    for path in [path for path in lines if path.endswith("/state")]:
        state = value_of(lines, path)
        put(lines, path, {**state, "leader_epoch": state["leader_epoch"] + 5, "controller_epoch": 8})
        lines[path] |= later
    lines["/controller"] |= later
    for id in (0, 1, 2):
        put(
            lines,
            f"/brokers/ids/{id}",
            {"version": 5, "host": "h", "port": 1, "endpoints": ["PLAINTEXT://h:1"]},
        )
        lines[f"/brokers/ids/{id}"] |= later


def test_after_a_rollback_zookeeper_has_what_kraft_had(edited: Any) -> None:
    ran = check(edited("dual-write", rolled_back), "dual-write")
    assert ran.rows[0]["phase"] == "rolled_back"
    # The quota that was removed came back with the rollback; leaders and epochs are ZooKeeper's own again.
    assert differences(ran) == [("quota", "client-id=batch", "request_percentage", 25.5, None)]
    assert ("partition", "orders-0", "leader_epoch", 13, 8) in differences(ran, "info")
    assert ran.status == 5


def test_a_rollback_is_seen_in_znodes_alone(edited: Any) -> None:
    (row,) = rows("migration", "status", "--snapshot", edited("dual-write", rolled_back)).rows
    assert row["phase"] == "rolled_back"


def test_a_topic_that_a_rollback_lost(edited: Any) -> None:
    def change(lines: Lines) -> None:
        rolled_back(lines)
        put(lines, "/config/clients/batch", {"version": 1, "config": {}})
        for path in [path for path in lines if path.startswith("/brokers/topics/during")]:
            del lines[path]

    ran = check(edited("dual-write", change), "dual-write")
    assert differences(ran) == [("topic", "during", None, None, "present")]

    def deleted_later(lines: Lines) -> None:
        change(lines)
        lines["/brokers/topics"]["pzxid"] = 2001

    ran = check(edited("dual-write", deleted_later), "dual-write")
    assert (ran.status, differences(ran)) == (3, [])  # it may have been deleted since, or not


def test_what_zookeeper_has_newer_than_the_log(edited: Any) -> None:
    def change(lines: Lines) -> None:
        put(lines, "/config/topics/orders", {"version": 1, "config": {"retention.ms": "5"}})
        lines["/config/topics/orders"]["mtime"] = 1795367300000

    # The controller writes to ZooKeeper alone: what is newer there than all that it wrote is another's.
    assert differences(check(edited("hybrid", change), "hybrid")) == [
        ("config", "topic orders", "retention.ms", "5", "86400000"),
        ("config", "topic orders", "segment.bytes", None, "1048576"),
    ]

    def change_later(lines: Lines) -> None:
        change(lines)
        put(lines, "/migration", {**value_of(lines, "/migration"), "kraft_metadata_offset": 500})

    ran = check(edited("hybrid", change_later), "hybrid")
    assert (ran.status, differences(ran)) == (0, [])


def test_a_metadata_log_that_was_copied_before_the_znodes() -> None:
    ran = check(znodes_of("dual-write"), "hybrid")
    # Topic `weird.Name_1` is gone from ZooKeeper: deleted since, or lost.
    assert (ran.status, differences(ran)) == (3, [])
    assert ("topic", "weird.Name_1", None, None, "present") in differences(ran, "info")


def test_clocks_that_differ_change_nothing(edited: Any) -> None:
    def hours_ahead(lines: Lines) -> None:
        for line in lines.values():
            for name in ("ctime", "mtime"):
                line[name] += 10_000_000

    for folder in ("before", "hybrid", "dual-write", "final"):
        metadata = folder if folder != "before" else "final"
        expected, ran = check(znodes_of(folder), metadata), check(edited(folder, hours_ahead), metadata)
        assert (ran.status, ran.rows) == (expected.status, expected.rows)


# --- preflight and states that do not fit -------------------------------------------------------------


def test_what_is_in_the_way(edited: Any) -> None:
    def change(lines: Lines) -> None:
        put(lines, "/admin/delete_topics/gone", "")
        put(lines, "/admin/reassign_partitions", {"version": 1, "partitions": []})
        put(lines, "/config/topics/never-made", {"version": 1, "config": {}})
        put(lines, "/tools", "")
        topic = value_of(lines, "/brokers/topics/plain")
        del topic["topic_id"]
        put(lines, "/brokers/topics/plain", topic)
        del lines["/brokers/ids/2"]

    ran = check(edited("before", change))
    assert ran.status == 5
    assert ran.codes() == [
        "migration-broker-missing",
        "migration-not-carried-over",
        "migration-not-carried-over",
        "migration-request-left",
        "migration-request-left",
        "migration-settings-not-examined",
        "migration-topic-without-id",
    ]


def test_settings_in_which_brokers_differ() -> None:
    znodes = read_zookeeper_side(read_snapshot(znodes_of("before")))
    good = {"inter.broker.protocol.version": "3.9-IV0", "password.encoder.secret": None}

    def codes(*of_brokers: dict[str, str | None]) -> list[str]:
        settings = dict(enumerate(of_brokers))
        seen = MigrationFacts(znodes, None, status_of(znodes, None), settings)
        return [finding.code.removeprefix("migration-") for finding in examine(seen)]

    assert codes(good, good, good) == ["secrets-not-compared"]
    assert codes(good, good) == ["settings-not-examined"]
    assert codes(good, good, {**good, "inter.broker.protocol.version": "3.3-IV1"})[0] == "protocol-too-old"
    assert codes(good, good, {**good, "inter.broker.protocol.version": "3.7-IV1"})[0] == "settings-differ"
    assert codes(good, good, {"inter.broker.protocol.version": "3.9"})[0] == "settings-differ"
    assert codes(good, good, {**good, "authorizer.class.name": "x"})[0] == "settings-differ"


def test_brokers_that_are_too_old(edited: Any) -> None:
    def change(lines: Lines) -> None:
        put(lines, "/controller", {"version": 1, "brokerid": 0, "timestamp": "1"})

    assert "migration-version-too-old" in check(edited("before", change)).codes("error")


def test_znodes_and_metadata_of_two_attempts(edited: Any) -> None:
    ran = check(znodes_of("dual-write"), "preparing")
    assert ran.codes("error") == ["migration-states-disagree"]
    assert not ran.of("difference")

    def reset(lines: Lines) -> None:
        rolled_back(lines)
        numbers = (
            "kraft_metadata_offset",
            "kraft_controller_id",
            "kraft_metadata_epoch",
            "kraft_controller_epoch",
        )
        put(lines, "/migration", {"version": 0, **dict.fromkeys(numbers, -1)})

    assert "migration-states-disagree" in check(edited("dual-write", reset), "dual-write").codes("error")


def test_another_cluster(tmp_path: Path) -> None:
    shutil.copytree(recording(RECORDED) / "hybrid" / LOG, tmp_path / LOG)
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAB\nnode.id=100\n")
    ran = rows("migration", "check", "--snapshot", znodes_of("hybrid"), "--metadata", tmp_path)
    assert ran.codes("error") == ["migration-other-cluster"]


def test_nothing_to_compare_with() -> None:
    assert check(znodes_of("hybrid")).status == 3
    assert check(znodes_of("hybrid"), recording("segments/2.8.2")).status == 3
    assert rows("migration", "check", "--snapshot", "/does/not/exist").status == 3
    assert rows("migration", "status").status == 2


# --- hostile evidence ---------------------------------------------------------------------------------

DEEP = "[" * 100_000
HOSTILE = [
    "",
    "{",
    DEEP,
    '{"version":1',
    "null",
    "[]",
    '{"version":1,"config":{"a":1},"acls":[1],"partitions":{"x":[]}}',
    "(redacted",
]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_znodes_that_nobody_can_read(content: str, edited: Any) -> None:
    paths = (
        "/brokers/topics/orders", "/brokers/topics/plain/partitions/0/state", "/config/topics/audit", "/config/users/alice",
        "/config/brokers/1", "/kafka-acl/Topic/orders", "/controller", "/migration", "/latest_producer_id_block", "/feature",
        "/delegation_token/tokens/GUDUFZcWQcmIIiR6Lv_QZQ", "/brokers/ids/1",
    )  # fmt: skip

    for path in paths:
        ran = check(edited("hybrid", lambda lines, path=path: put(lines, path, content)), "hybrid")
        assert ran.status in (0, 3, 5), (path, ran.err)
        if content in ("{", DEEP, "null", "[]", '{"version":1'):
            assert ran.status == 5, path
            assert set(ran.codes("error")) <= {"migration-znode-unreadable", "migration-states-disagree"}, (
                path
            )
            # What could not be read is not called lost.
            assert not [one for one in differences(ran) if one[4] is not None and one[3] is None], path


def test_huge_values(edited: Any) -> None:
    def change(lines: Lines) -> None:
        path = "/brokers/topics/orders/partitions/0/state"
        put(lines, path, {**value_of(lines, path), "leader": 10**30})
        put(
            lines,
            "/config/clients/batch",
            {"version": 1, "config": {"producer_byte_rate": "1e999", "x": "NaN"}},
        )
        put(lines, "/config/topics/orders", {"version": 1, "config": {"retention.ms": "9" * 100_000}})

    ran = check(edited("hybrid", change), "hybrid")
    assert ran.status == 5
    assert ("partition", "orders-0", "leader", str(10**30), 0) in differences(ran)


def test_numbers_as_java_reads_them() -> None:
    assert [quota_value(text) for text in ("25.5", "1048576.0", " 9 ", "1e3", "7d")] == [
        25.5,
        1048576,
        9,
        1000,
        7,
    ]
    assert [quota_value(text) for text in ("1_000", "NaN", "x")] == ["1_000", "nan", "x"]


def test_damage_in_the_metadata_log(tmp_path: Path) -> None:
    folder = tmp_path / LOG
    shutil.copytree(recording(RECORDED) / "hybrid" / LOG, folder)
    (log,) = folder.glob("*.log")
    log.chmod(0o644)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    ran = check(znodes_of("hybrid"), folder)
    assert ran.status == 5
    assert "internal-log-unreadable" in ran.codes("error")


def test_the_phases_are_those_of_the_row() -> None:
    from kctl.rows.migration import MIGRATION

    assert MIGRATION.fields["phase"].choices == tuple(map(str, Phase))
