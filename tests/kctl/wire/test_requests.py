"""The requests of every kind of change, byte for byte as the journals of version 0.1 have them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commands.cli.changing import write_text
from commands.cli.render import Page
from kctl.access.acl import Acl
from kctl.access.tokens import DelegationToken
from kctl.access.users import Salted
from kctl.changes.entry import _write_from_json, _write_to_json
from kctl.changes.intents import Several
from kctl.changes.kinds.access import AlterAcls, DeleteScram, SetScram
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.elections import ElectPreferred, ElectUnclean
from kctl.changes.kinds.groups import DeleteGroup, GroupOffset, RemoveMembers, SetGroupOffsets
from kctl.changes.kinds.quorum import AddVoter, RemoveVoter, UnregisterBroker, UpdateFeatures
from kctl.changes.kinds.reassignments import AlterReplicaLogDirs, Reassign
from kctl.changes.kinds.records import AbortTransaction, DeleteRecords, RecoverRecords
from kctl.changes.kinds.throttles import LEADER_REPLICAS, ClearThrottle
from kctl.changes.kinds.tokens import CreateToken, ExpireToken, RenewToken
from kctl.changes.kinds.topics import AddPartitions, CreateTopic, DeleteTopic
from kctl.cluster.disks import BrokerLogDir, StoredReplica
from kctl.cluster.intent import Intent
from kctl.cluster.state import (
    Broker,
    ClusterState,
    EntityConfig,
    PartitionState,
    Quorum,
    QuorumMember,
    Topic,
)
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire import acls, users
from kctl.wire.writes import tokens
from kctl.wire.writes.table import read_request, requests_of

RECORDED = Path(__file__).parents[2] / "data/changes/requests.jsonl"
A, B, HALF = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
RATE = "leader.replication.throttled.rate"
RULE = Acl("topic", "a", "literal", "User:ann", "*", "read", "allow")
OTHER = Acl("topic", "a", "literal", "User:bob", "*", "write", "deny")
PREFIXED = Acl("group", "g-", "prefixed", "User:ann", "10.0.0.1", "read", "allow")
TOKEN = DelegationToken(
    "id-1", "User:ann", "User:ann", ("User:bob",), 1, 2_000_000_000_000, 3_000_000_000_000
)


def state(**values: Any) -> ClusterState:
    """Brokers 1, 2, 3; `a` with two partitions; `b` on its way from 1, 2 to 3, 2; broker 4 is fenced."""
    every = {
        "cluster_id": "c",
        "kafka_version": KafkaVersion(4, 3),
        "brokers": {n: Broker(broker_id=n, host="h", port=1, is_fenced=n == 4) for n in (1, 2, 3, 4)},
        "controller": None,
        "topic_names": ("a", "b"),
        "topics": {
            "a": Topic(name="a", partitions={0: (1, 2), 1: (2, 1)}, topic_id="id-a"),
            "b": Topic(
                name="b",
                partitions={0: (3, 2, 1)},
                adding_replicas={0: (3,)},
                removing_replicas={0: (1,)},
                topic_id="id-b",
            ),
        },
        "partition_states": {
            A: PartitionState(2, 3, (1, 2)),
            B: PartitionState(-1, 3, ()),
            HALF: PartitionState(2, 3, (2, 1)),
        },
        "configs": {
            ("topics", "a"): EntityConfig(
                entity_type="topics", entity_name="a", values={"x": "1", LEADER_REPLICAS: "0:1"}
            ),
            ("brokers", "1"): EntityConfig(entity_type="brokers", entity_name="1", values={RATE: "1000"}),
            ("users", "ann"): EntityConfig(entity_type="users", entity_name="ann", values={}),
        },
        "log_dirs": (
            BrokerLogDir(1, "/d1", replicas=(StoredReplica(A, 5, 0),)),
            BrokerLogDir(1, "/d2"),
            BrokerLogDir(3, "/d1"),
        ),
        "backend": "admin",
        "quorum": Quorum(
            101,
            4,
            5,
            tuple(
                QuorumMember(n, n < 104, 5, None, directory_id=f"d{n}", is_answering=True)
                for n in (101, 102, 103, 104)
            ),
        ),
        "features": {"metadata.version": 30},
    }
    return ClusterState(**{**every, **values})


def config(kind: str, name: str, **values: Any) -> AlterConfig:
    return AlterConfig(entity_type=kind, entity_name=name, **values)


CASES: dict[str, Intent] = {
    "create": CreateTopic(topic="n", replicas={1: (2, 1), 0: (1, 2)}, configs={"y": "ü", "x": "1"}),
    "create without configs": CreateTopic(topic="n", replicas={0: (1,)}, configs={}),
    "delete": DeleteTopic(topic="a"),
    "grow": AddPartitions(topic="a", replicas={2: (1, 3), 3: (3,)}),
    "config": config("topics", "a", before={"x": "1", "z": None}, after={"x": None, "z": "2"}),
    "config of all brokers": config("brokers", "<default>", before={"x": None}, after={"x": "1"}),
    "list": config("topics", "a", before={LEADER_REPLICAS: "0:1"}, after={LEADER_REPLICAS: "0:1,1:2"}),
    "list shorter": config("topics", "a", before={LEADER_REPLICAS: "0:1"}, after={LEADER_REPLICAS: ""}),
    "logger": config("broker-loggers", "1", before={"kafka": None}, after={"kafka": "DEBUG"}),
    "quota": config("users", "ann", before={"producer_byte_rate": None}, after={"producer_byte_rate": "5"}),
    "several": Several(
        parts=tuple(CreateTopic(topic=n, replicas={0: (1,)}, configs={}) for n in ("m", "n"))
    ),
    "clear": ClearThrottle(throttled={"a": {LEADER_REPLICAS: ("0:1",)}}, rates={"1": {RATE: None}, "4": {RATE: "7"}}),
    "move": Reassign(
        targets={A: (2, 3)},
        origins={A: (1, 2)},
        config_changes=(config("brokers", "2", before={RATE: None}, after={RATE: "9"}),),
    ),
    "move and grow": Reassign(targets={A: (2, 3, 1), B: (2, 3)}, origins={}),
    "cancel": Reassign(targets={HALF: (1, 2)}, origins={HALF: (3, 2)}),
    "disks": AlterReplicaLogDirs(
        log_dirs={(A, 1): "/d2", (B, 3): "/d1"}, previous_log_dirs={(A, 1): "/d1"}, config_changes=()
    ),
    "preferred": ElectPreferred(partitions=(A,)),
    "unclean": ElectUnclean(chosen={B: (1,)}, origins={B: (2, 1)}),
    "abort": AbortTransaction(
        topic="a", partition=0, producer_id=7, producer_epoch=1, coordinator_epoch=2, start_offset=90
    ),
    "records": DeleteRecords(topic="a", to_offsets={1: 5, 0: 9}),
    "recover": RecoverRecords(
        topic="a", partition=0, source_topic="b", records=3, file="f", sha256="s", begin_offset=4, incident="i"
    ),
    "offsets": SetGroupOffsets(
        group="g", offsets={B: None, A: GroupOffset(5, 1, "mine")}, previous={A: None, B: GroupOffset(3)}
    ),
    "share offsets": SetGroupOffsets(
        group="g", is_share=True, offsets={B: None, A: GroupOffset(5)}, previous={A: GroupOffset(1), B: GroupOffset(3)}
    ),
    "group": DeleteGroup(group="g", previous={A: GroupOffset(5, 2, None)}),
    "members": RemoveMembers(group="g", members=("m1", "m2")),
    "add voter": AddVoter(node_id=104, directory_id="d104", listeners={"CONTROLLER": "h:1"}),
    "remove voter": RemoveVoter(node_id=103, directory_id="d103", listeners={"CONTROLLER": "h:1"}),
    "features": UpdateFeatures(
        levels={"metadata.version": 29, "a": 1}, previous_levels={"metadata.version": 30, "a": 0}, is_downgrade=True, is_reversible=True
    ),
    "unregister": UnregisterBroker(broker_id=9),
    "rules": AlterAcls(added=(OTHER, PREFIXED), removed=(RULE,)),
    "no scram": DeleteScram(user="ann", mechanisms={"SCRAM-SHA-256": 4096}),
    "renew": RenewToken(token_id="id-1", owner="User:ann", period=None, expiry_timestamp=TOKEN.expiry_timestamp),
    "expire": ExpireToken(token_id="id-1", owner="User:ann", expiry_timestamp=TOKEN.expiry_timestamp),
    "end later": ExpireToken(
        token_id="id-1", owner="User:ann", at=2_500_000_000_000, expiry_timestamp=TOKEN.expiry_timestamp
    ),
}  # fmt: skip
SECRETS = {
    "scram": lambda: users.scram_writes(
        SetScram(user="ann", mechanisms={"SCRAM-SHA-256": 4096}, previous_mechanisms={}),
        {"SCRAM-SHA-256": Salted(b"salt", b"password", 4096)},
    ),
    "token": lambda: tokens.token_writes(
        CreateToken(owner=None, requester="User:ann", renewers=("User:bob",), lifetime=None, known=("id-0",))
    ),
}


def made(case: str) -> list[Any]:
    """The requests of a case."""
    if case in SECRETS:
        return list(SECRETS[case]())
    return list(requests_of(CASES[case], state(), state(), SimpleNamespace()))  # type: ignore[arg-type]


def recorded() -> dict[str, list[dict[str, Any]]]:
    """What version 0.1 made of the cases: journalled, and as it was shown."""
    return {
        line["case"]: line["writes"] for line in map(json.loads, RECORDED.read_text("utf-8").splitlines())
    }


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What brokers say."""
    monkeypatch.setattr(acls, "read_acls", lambda wire: [RULE])
    monkeypatch.setattr(users, "read_users", lambda wire, names=None: {"ann": {"SCRAM-SHA-256": 4096}})
    monkeypatch.setattr(tokens, "described_tokens", lambda wire: iter([TOKEN]))


def shown(write: Any) -> list[str]:
    """The lines of a dry run."""
    row = {"action": write.action, "target": write.target, "size_in_bytes": write.size_in_bytes}
    texts = {
        name: data and data.decode() for name, data in (("before", write.before), ("after", write.after))
    }
    return list(write_text({**row, **texts}, Page(80, False)))


@pytest.mark.parametrize("case", [*CASES, *SECRETS])
def test_requests_are_as_they_were(case: str) -> None:
    now = [
        {**_write_to_json(write), "after": write.after.decode(), "shown": shown(write)}
        for write in made(case)
    ]  # type: ignore[dict-item]
    assert now == recorded()[case]


@pytest.mark.parametrize("case", [*CASES, *SECRETS])
def test_what_a_journal_has_of_a_request_is_that_request(case: str) -> None:
    for write, values in zip(made(case), recorded()[case], strict=True):
        read = read_request(values["target"], values["before"], values["after"])
        assert read == write and read.after == values["after"].encode()
        kept = _write_from_json(values)
        assert kept is not None and hash(read) == hash(write)


@pytest.mark.parametrize(
    ("target", "before", "after"),
    [
        ("Unheard of", None, "{}"),  # of a newer kctl
        ("CreateTopics n", None, '{"topic": "n"}'),
        ("DeleteTopics n", "{", '{"topic": "n", "topic_id": null}'),
        ("CreateAcls on topic n", '{"rules": []}', '{"acls": [{"resource_type": 1}]}'),
    ],
)
def test_what_is_no_request_is_an_error_and_shown_as_it_is(
    target: str, before: str | None, after: str
) -> None:
    with pytest.raises(KctlError, match=f"{target}: the journal has no request here") as raised:
        read_request(target, before, after)
    assert raised.value.hint
    row = {"action": "request", "target": target, "before": before, "after": after, "size_in_bytes": 1}
    assert next(write_text(row, Page(80, False))) == f"  {target}"
