"""Rules and credentials written into znodes: plan, journal, undo and resume, on ZooKeeper in a dict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formats.values import replace
from formats.znodes.security import format_scram
from kctl.access.acl import Acl
from kctl.access.users import credential_of, salted
from kctl.changes.apply import ChangeRun, apply, deadline, resume
from kctl.changes.entry import Entry, new_entry
from kctl.changes.journal import Journal
from kctl.changes.kinds.access import AlterAcls, DeleteScram, SetScram
from kctl.changes.plan import Plan, Stage, plan_of
from kctl.changes.undo import plan_undo
from kctl.cluster.intent import Intent, Write
from kctl.cluster.interface import Conflict
from kctl.cluster.versions import parse_version
from kctl.errors import Refused
from kctl.zookeeper.access import read_acls, read_users
from kctl.zookeeper.cluster import ZookeeperCluster
from kctl.zookeeper.writes import scram_writes
from tests.fakes import FakeStore, fake_cluster

READ = Acl("topic", "orders", "literal", "User:app", "*", "read", "allow")
CONFIGS = READ._replace(operation="describe_configs", host="10.0.0.1", permission="deny")
TX = Acl("transactional_id", "tx-", "prefixed", "User:app", "*", "write", "allow")


@pytest.fixture
def store() -> FakeStore:
    return fake_cluster()


@pytest.fixture
def run(store: FakeStore, tmp_path: Path) -> ChangeRun:
    return ChangeRun(
        cluster=ZookeeperCluster(store), journal=Journal(tmp_path / "journal"), wait=True, until=deadline(1)
    )


def planned(run: ChangeRun, intent: Intent, version: str = "2.8") -> Plan:
    state = replace(run.cluster.read_state((), partition_states=False), kafka_version=parse_version(version))
    return plan_of([intent], run.cluster, state)


def applied(run: ChangeRun, plan: Plan, undoes: str | None = None) -> Entry:
    entry = new_entry(
        plan, command="", reason=None, cluster_id=None, backend="zookeeper", location="", kafka_version=None,
        undoes=undoes,
    )  # fmt: skip
    apply(entry, run)
    return entry


def rules(store: FakeStore) -> set[Acl]:
    return set(read_acls(store, []))


def test_rules_are_written_as_brokers_read_them(store: FakeStore, run: ChangeRun) -> None:
    entry = applied(run, planned(run, AlterAcls(added=(READ, CONFIGS, TX))))
    assert store.json("/kafka-acl/Topic/orders") == {
        "version": 1,
        "acls": [
            {"principal": "User:app", "permissionType": "Allow", "operation": "Read", "host": "*"},
            {
                "principal": "User:app",
                "permissionType": "Deny",
                "operation": "DescribeConfigs",
                "host": "10.0.0.1",
            },
        ],
    }
    assert rules(store) == {READ, CONFIGS, TX}
    (change,) = store.children("/kafka-acl-changes") or []
    assert change.startswith("acl_changes_")
    node = store.get(f"/kafka-acl-changes/{change}")
    assert node is not None and node.data == b"TOPIC:orders"
    (change,) = store.children("/kafka-acl-extended-changes") or []
    assert store.json(f"/kafka-acl-extended-changes/{change}") == {
        "version": 1, "resourceType": "TRANSACTIONAL_ID", "name": "tx-", "patternType": "PREFIXED",
    }  # fmt: skip
    applied(run, plan_undo(entry, run), undoes=entry.id)
    assert rules(store) == set() and store.get("/kafka-acl/Topic/orders") is None
    assert len(store.children("/kafka-acl-changes") or []) == 2


@pytest.mark.parametrize(("version", "data"), [("2.4", b"Topic:orders"), ("2.5", b"TOPIC:orders")])
def test_notifications_by_version(run: ChangeRun, version: str, data: bytes) -> None:
    writes = planned(run, AlterAcls(added=(READ,)), version).stages[0].writes
    assert [write.after for write in writes if write.sequence] == [data]


@pytest.mark.parametrize(
    ("version", "acl"), [("1.1", TX), ("0.10.2", CONFIGS), ("2.8", READ._replace(resource_name="a/b"))]
)
def test_what_brokers_do_not_know_is_refused(run: ChangeRun, version: str, acl: Acl) -> None:
    with pytest.raises(Refused, match="nothing was written"):
        planned(run, AlterAcls(added=(acl,)), version)


def test_rules_of_others_stay_and_a_write_between_is_a_conflict(store: FakeStore, run: ChangeRun) -> None:
    other = {"principal": "User:b", "permissionType": "allow", "operation": "ALL", "host": "*"}
    store.put("/kafka-acl/Topic/orders", {"version": 1, "acls": [other]})
    plan = planned(run, AlterAcls(added=(READ,)))
    store.put("/kafka-acl/Topic/orders", {"version": 1, "acls": [other, other]})
    with pytest.raises(Conflict):
        applied(run, plan)
    applied(run, planned(run, AlterAcls(added=(READ,))))
    assert rules(store) == {READ, READ._replace(principal="User:b", operation="all")}
    store.put("/kafka-acl/Group/g", b"{")
    with pytest.raises(Refused, match="repair it first"):
        planned(run, AlterAcls(added=(READ._replace(resource_type="group", resource_name="g"),)))


def credentials(
    run: ChangeRun, user: str, password: bytes, previous: dict[str, int]
) -> tuple[SetScram, tuple[Write, ...]]:
    intent = SetScram(user=user, mechanisms={"SCRAM-SHA-256": 4096}, previous_mechanisms=previous)
    credential = format_scram(credential_of("SCRAM-SHA-256", salted("SCRAM-SHA-256", password, 4096)))
    assert isinstance(run.cluster, ZookeeperCluster)
    state = run.cluster.read_state((), partition_states=False)
    return intent, scram_writes(run.cluster.store, intent, {"SCRAM-SHA-256": credential}, state)


def test_credentials_are_in_no_journal_and_quotas_stay(store: FakeStore, run: ChangeRun) -> None:
    store.put("/config/users/a%20b", {"version": 1, "config": {"producer_byte_rate": "5"}})
    intent, writes = credentials(run, "a b", b"pencil", {})
    entry = applied(run, Plan(title="", stages=(Stage(intent=intent, writes=writes),)))
    config = store.json("/config/users/a%20b")["config"]  # type: ignore[index, call-overload]
    assert set(config) == {"producer_byte_rate", "SCRAM-SHA-256"}
    assert set(read_users(store, [])) == {"a b"}
    kept = "".join(path.read_text() for path in run.journal.folder.glob("*.json"))
    assert "redacted" in kept
    secrets = dict(part.split("=", 1) for part in config["SCRAM-SHA-256"].split(","))
    assert not [key for key in ("salt", "stored_key", "server_key") if secrets[key] in kept]
    with pytest.raises(Conflict):
        credentials(run, "a b", b"pencil", {})  # there is one now
    intent, writes = credentials(run, "a b", b"eraser", {"SCRAM-SHA-256": 4096})
    changed = applied(run, Plan(title="", stages=(Stage(intent=intent, writes=writes),)))
    with pytest.raises(Refused, match="the former password is not kept"):
        plan_undo(changed, run)
    applied(run, plan_undo(entry, run), undoes=entry.id)
    assert store.json("/config/users/a%20b")["config"] == {"producer_byte_rate": "5"}  # type: ignore[index, call-overload]
    with pytest.raises(Conflict):
        planned(run, DeleteScram(user="a b", mechanisms={"SCRAM-SHA-256": 4096}))


def test_a_password_is_not_resumed(store: FakeStore, run: ChangeRun) -> None:
    intent, writes = credentials(run, "app", b"pencil", {})
    entry = new_entry(
        Plan(title="", stages=(Stage(intent=intent, writes=writes),)), command="", reason=None, cluster_id=None,
        backend="zookeeper", location="", kafka_version=None,
    )  # fmt: skip
    entry.stages[0].state = "writing"
    run.journal.write(entry)
    with pytest.raises(Refused, match="the password is not in the journal"):
        resume(run.journal.find(entry.id), run)
    assert read_users(store, []) == {}


def test_intents_come_back_from_the_journal(run: ChangeRun) -> None:
    from kctl.changes.intents import intent_from_json, intent_to_json

    for intent in (
        AlterAcls(added=(READ,), removed=(TX, CONFIGS)),
        SetScram(user="a", mechanisms={"SCRAM-SHA-256": 4096}, previous_mechanisms={}),
        DeleteScram(user="a", mechanisms={"SCRAM-SHA-512": 8192}),
    ):
        assert intent_from_json(json.loads(json.dumps(intent_to_json(intent)))) == intent
        assert str(intent)
