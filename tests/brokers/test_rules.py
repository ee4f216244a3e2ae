"""The rules for a program that writes Kafka's znodes, each held on real clusters, and shown to be held.

Every rule is a function that fails where the rule is broken. It runs against real brokers; and once more,
with the code of the rule taken out, in a copy of the znodes that no broker looks at, where it has to fail.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.security import ACL, Id, make_digest_acl

from formats.values import replace
from formats.znodes import requests as znode_requests
from formats.znodes.cluster import TopicZnode, format_topic, parse_topic
from kctl.changes.apply import ChangeRun, apply, deadline
from kctl.changes.entry import new_entry
from kctl.changes.journal import Journal
from kctl.changes.kinds.elections import ElectPreferred
from kctl.changes.kinds.reassignments import Reassign
from kctl.changes.plan import Plan, Stage
from kctl.cluster.intent import Intent, Write
from kctl.cluster.state import Replicas
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.zookeeper import connection, writes
from kctl.zookeeper.cluster import ZookeeperCluster
from kctl.zookeeper.connection import Ensemble, EnsembleAccess
from tests.brokers.cluster import Cluster, eventually
from tests.brokers.running import Kctl

NUMBERS = count()
Rule = Callable[[Cluster, Kctl, str], None]
Breaking = Callable[[pytest.MonkeyPatch], None]
CREATE = ("--partitions", 1, "--replication-factor", 1, "--no-wait")


def ask(c: Cluster, k: Kctl, intent: Intent, **access: Any) -> int:
    """Carry an intent out without waiting; the exit status that a command would end with."""
    with ZookeeperCluster(Ensemble(EnsembleAccess(hosts=c.connect, **access))) as cluster:
        try:
            state = cluster.read_state(configs=("topics", "brokers"))
            plan = Plan(
                title=str(intent), stages=(Stage(intent=intent, writes=cluster.writes_for(intent, state)),)
            )
            entry = new_entry(
                plan,
                command="test",
                reason=None,
                cluster_id=None,
                backend="",
                location="",
                kafka_version=None,
            )
            apply(
                entry, ChangeRun(cluster=cluster, journal=Journal(k.journal), wait=False, until=deadline(1))
            )
        except KctlError as error:
            return error.exit_code
    return 0


def move(c: Cluster, k: Kctl, topic: str, target: Replicas, partition: int = 0, **access: Any) -> int:
    """Ask for a partition to be moved."""
    tp = TopicPartition(topic, partition)
    return ask(c, k, Reassign(targets={tp: target}, origins={}), **access)


def stat(c: Cluster, path: str) -> Any:
    with c.client() as client:
        return client.exists(path)


@contextmanager
def sent() -> Iterator[list[Write]]:
    """Every write that goes to ZooKeeper during the block."""
    seen: list[Write] = []
    whole = Ensemble.transact

    def transact(self: Ensemble, writes: Sequence[Write]) -> list[str]:
        seen.extend(writes)
        return whole(self, writes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ensemble, "transact", transact)
        yield seen


def without_requests(c: Cluster) -> None:
    """Wait until the controller is done with what was asked before."""
    for _ in eventually("no request is left"):
        if c.znode("/admin/reassign_partitions") is None:
            return


# --- the rules ----------------------------------------------------------------------------------------


def controller_is_left_alone(c: Cluster, k: Kctl, topic: str) -> None:
    """1: neither /controller nor /controller_epoch is written by any change."""
    paths = ("/controller", "/controller_epoch")
    before = [(stat(c, path).czxid, stat(c, path).mzxid) for path in paths]
    k.change("topic", "create", topic + "b", *CREATE)
    k.change("topic", "alter", topic, "--partitions", 3, "--no-wait")
    k.change("topic", "config", "set", topic, "flush.ms=9")
    move(c, k, topic, (2, 1))
    k.change("topic", "delete", topic + "b", "--deletion-is-enabled", "--no-wait")
    assert [(stat(c, path).czxid, stat(c, path).mzxid) for path in paths] == before


def migration_stops_everything(c: Cluster, k: Kctl, topic: str) -> None:
    """2: nothing is written while a KRaft quorum has the cluster."""
    with c.client() as client:
        client.create("/migration", b'{"version":0}')
    try:
        with sent() as seen:
            k.change("topic", "create", topic + "b", *CREATE, status=4)
            k.change("topic", "config", "set", topic, "flush.ms=9", status=4)
            assert move(c, k, topic, (2, 1)) == 4
        assert seen == []
    finally:
        with c.client() as client:
            client.delete("/migration")


def topics_keep_their_keys(c: Cluster, k: Kctl, topic: str) -> None:
    """3: a rewritten topic has every key that it had."""
    with c.client() as client:
        data, _ = client.get(f"/brokers/topics/{topic}")
        before = {**json.loads(data), "kept": {"by": ["all"]}}
        client.set(f"/brokers/topics/{topic}", json.dumps(before).encode())
    with sent() as seen:
        k.change("topic", "alter", topic, "--partitions", 3, "--no-wait")
    (written,) = (w for w in seen if w.target == f"/brokers/topics/{topic}" and w.action == "set")
    after = json.loads(written.after or b"")
    assert {**after, "partitions": None} == {**before, "partitions": None}
    assert after["partitions"].items() >= before["partitions"].items()
    assert written.version is not None and written.version >= 0


def requests_have_only_what_all_read(c: Cluster, k: Kctl, topic: str) -> None:
    """4: a reassignment request holds topic, partition and replicas, and nothing else."""
    without_requests(c)
    with sent() as seen:
        assert move(c, k, topic, (2, 1)) == 0
    (written,) = (w for w in seen if w.target == "/admin/reassign_partitions")
    request = json.loads(written.after or b"")
    assert set(request) <= {"version", "partitions"}
    assert all(set(row) == {"topic", "partition", "replicas"} for row in request["partitions"])


def waiting_requests_are_not_touched(c: Cluster, k: Kctl, topic: str) -> None:
    """5 and 6: a request that waits is neither edited nor deleted: it is a reason to refuse."""
    without_requests(c)
    never = json.dumps(
        {"version": 1, "partitions": [{"topic": topic, "partition": 1, "replicas": [2, 3]}], "x": 1}
    )
    path = "/admin/reassign_partitions"
    with c.client() as client:
        # Since 2.0 a controller leaves a request with an unknown key where it is; before, it is soon done.
        client.create(path, never.encode())
        try:
            if client.exists(path):
                status = move(c, k, topic, (2, 1))
                there = read_znode(client, path)
                if there is not None:
                    data, stat = there
                    assert stat.version == 0, "edited"
                    # Without the key it is kctl's own: the controller took the other away before kctl looked.
                    assert (data == never.encode() and status == 4) or b'"x"' not in data
        finally:
            _unwedge(client, path)


def read_znode(client: KazooClient, path: str) -> tuple[bytes, Any] | None:
    """What a znode holds, of which a controller may take any away at any time."""
    try:
        data, stat = client.get(path)
    except NoNodeError:
        return None
    return data, stat


def _unwedge(client: KazooClient, path: str) -> None:
    """Take a request away that no controller will, and let another controller begin anew."""
    there = read_znode(client, path)
    if there is not None and b'"x"' in there[0]:
        with contextlib.suppress(NoNodeError):
            client.delete(path)
        controller = client.exists("/controller")
        if controller is not None and controller.ephemeralOwner != client.client_id[0]:
            with contextlib.suppress(NoNodeError):
                client.delete("/controller")


def wrong_requests_are_refused(c: Cluster, k: Kctl, topic: str) -> None:
    """7: no empty list, no broker twice, none below 0, none dead, no unknown partition, none without a leader."""
    without_requests(c)
    with sent() as seen:
        for target in ((), (1, 1), (-1,), (1, 77)):
            assert move(c, k, topic, target) == 4, target
        assert move(c, k, topic, (1,), partition=99) == 3
        assert move(c, k, "no-such-topic", (1,)) == 3
        with c.client() as client:
            client.create(f"/brokers/topics/{topic}-never", b'{"version":1,"partitions":{"0":[77]}}')
        never = TopicPartition(f"{topic}-never", 0)
        assert move(c, k, never.topic, (1,)) == 4
        assert ask(c, k, ElectPreferred(partitions=(never,))) == 4
        with c.client() as client:
            client.delete(f"/brokers/topics/{never.topic}", recursive=True)
    assert seen == []


def values_are_text_and_right(c: Cluster, k: Kctl, topic: str) -> None:
    """8: a configuration's values are text, and what the brokers would choke on is refused."""
    k.change("topic", "config", "set", topic, "flush.ms=900")
    assert c.znode(f"/config/topics/{topic}")["config"] == {"flush.ms": "900"}
    for wrong in ("flush.ms=soon", "min.insync.replicas=0", "flush=1"):
        assert k("topic", "config", "set", topic, wrong, "--yes").status == 2
    assert c.znode(f"/config/topics/{topic}")["config"] == {"flush.ms": "900"}


def notifications_are_numbered_by_zookeeper(c: Cluster, k: Kctl, topic: str) -> None:
    """9: a notification's number is the one that ZooKeeper gives."""
    with c.client() as client:
        k.change("topic", "config", "set", topic, "flush.ms=800")  # so that a number is taken already
        before = set(client.get_children("/config/changes"))
        next_number = client.exists("/config/changes").cversion
        k.change("topic", "config", "set", topic, "flush.ms=900")
        (name,) = set(client.get_children("/config/changes")) - before
    assert re.fullmatch(r"config_change_[0-9]{10}", name)
    assert all(name > other for other in before)
    assert int(name[-10:]) <= next_number


def large_requests_are_not_sent(c: Cluster, k: Kctl, topic: str) -> None:
    """10: what the server would answer by closing the connection is refused before."""
    with sent() as seen:
        ran = k(
            "topic",
            "create",
            topic + "b",
            "--partitions",
            90_000,
            "--replication-factor",
            2,
            "--no-wait",
            "--yes",
        )
    assert ran.status == 4 and seen == [], ran.err


def nodes_have_the_brokers_acl(c: Cluster, k: Kctl, topic: str) -> None:
    """11: a new znode has the access list of its parent, and a session that could not set it is refused."""
    digest = make_digest_acl("broker", "hush", all=True)
    world = ACL(1, Id("world", "anyone"))
    folders = ("/admin/delete_topics", "/config/topics", "/brokers/topics")
    client = KazooClient(c.connect, auth_data=[("digest", "broker:hush")])
    client.start(timeout=60)
    saved = {folder: client.get_acls(folder)[0] for folder in folders}
    try:
        for folder in folders:
            client.set_acls(folder, [digest, world])
        args = ("topic", "create", topic + "b", *CREATE)
        assert k(*args, "--yes").status in (3, 4)
        assert not client.exists(f"/config/topics/{topic}b")
        login = {
            "KCTL_SASL_MECHANISM": "digest",
            "KCTL_SASL_USERNAME": "broker",
            "KCTL_SASL_PASSWORD": "hush",
        }
        ran = k(*args, "--yes", **login)
        assert ran.status == 0, ran.err
        for folder in ("/config/topics", "/brokers/topics"):
            assert client.get_acls(f"{folder}/{topic}b")[0] == [digest, world]
    finally:
        for folder in folders:
            client.set_acls(folder, saved[folder])
        for path in (f"/brokers/topics/{topic}b", f"/config/topics/{topic}b"):
            if client.exists(path):
                client.set_acls(path, saved["/config/topics"])
        client.stop()
        client.close()


def changes_stand_on_what_was_read(c: Cluster, k: Kctl, topic: str) -> None:
    """12: a change is one transaction that fails where something it was worked out from has changed."""
    path = f"/config/topics/{topic}"
    with k.stopped("topic", "config", "set", topic, "flush.ms=5", "--no-wait", at="before-write:0") as ours:
        with c.client() as client:
            client.set(path, b'{"version":1,"config":{"flush.ms":"7"}}')
        assert ours.go_on().status == 4
    assert c.znode(path)["config"] == {"flush.ms": "7"}
    with sent() as seen:
        k.change("topic", "config", "set", topic, "flush.ms=8", "--no-wait")
    assert {"/controller", "/controller_epoch", f"/brokers/topics/{topic}"} <= {
        w.target for w in seen if w.action == "check" and w.version is not None
    }


# --- the same with the rule's code taken out ----------------------------------------------------------


def write_the_epoch(patch: pytest.MonkeyPatch) -> None:
    whole = writes.guards

    def guards(fresh: writes.FreshZnodes) -> list[Write]:
        return [
            replace(w, action="set", after=w.before) if w.target == "/controller_epoch" else w
            for w in whole(fresh)
        ]

    patch.setattr(writes, "guards", guards)


def ignore_migration(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writes, "refuse_migration", lambda *_: None)
    patch.setattr("commands.cli.connecting.refuse_other_cluster", lambda *_: None)


def write_only_partitions(patch: pytest.MonkeyPatch) -> None:
    def edit(data: bytes, added: dict[int, Replicas]) -> bytes:
        return format_topic(TopicZnode(version=1, partitions={**parse_topic(data).partitions, **added}))

    patch.setattr(writes.znodes, "edit_topic", edit)


def write_log_dirs(patch: pytest.MonkeyPatch) -> None:
    def data(targets: dict[TopicPartition, Replicas]) -> bytes:
        value = json.loads(
            znode_requests.format_reassignment(znode_requests.Requested(*tp, r) for tp, r in targets.items())
        )
        for row in value["partitions"]:
            row["log_dirs"] = ["any"] * len(row["replicas"])
        return json.dumps(value).encode()

    patch.setattr(writes, "reassignment_data", data)


def edit_the_request(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writes, "_refuse_under_way", lambda *_: None)
    whole = writes.reassign

    def reassign(fresh: writes.FreshZnodes, intent: Reassign) -> list[Write]:
        made = whole(fresh, intent)
        (node,) = fresh.get("/admin/reassign_partitions")
        return [
            writes.set_or_create(w.target, node, w.after or b"")
            if w.target == "/admin/reassign_partitions"
            else w
            for w in made
        ]

    patch.setattr(writes, "reassign", reassign)


def check_no_target(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writes, "check_target", lambda *_: None)


def check_no_leader(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writes, "_refuse_leaderless", lambda *_: None)


def check_no_value(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("kctl.operations.configs.check_values", lambda *_: None)


def number_by_hand(patch: pytest.MonkeyPatch) -> None:
    whole = writes.alter_configs

    def alter(*args: Any) -> list[Write]:
        return [
            replace(w, sequence=False, target=w.target + "0000000000") if w.sequence else w
            for w in whole(*args)
        ]

    patch.setattr(writes, "alter_configs", alter)


def send_anything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(connection, "LARGEST_REQUEST", 10**9)
    patch.setattr("kctl.zookeeper.cluster.LARGEST_REQUEST", 10**9)
    patch.setattr(
        "kctl.zookeeper.cluster.SETTLING", 0.2
    )  # what the server did not take need not be waited for


def leave_nodes_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(connection, "acl_for", lambda *_: None)


def overwrite(patch: pytest.MonkeyPatch) -> None:
    whole = Ensemble.transact

    def transact(self: Ensemble, given: Sequence[Write]) -> list[str]:
        return whole(
            self,
            [replace(w, version=None if w.version is None else -1) for w in given if w.action != "check"],
        )

    patch.setattr(Ensemble, "transact", transact)


RULES: list[tuple[Rule, tuple[Breaking, ...]]] = [
    (controller_is_left_alone, (write_the_epoch,)),
    (migration_stops_everything, (ignore_migration,)),
    (topics_keep_their_keys, (write_only_partitions,)),
    (requests_have_only_what_all_read, (write_log_dirs,)),
    (waiting_requests_are_not_touched, (edit_the_request,)),
    (wrong_requests_are_refused, (check_no_target, check_no_leader)),
    (values_are_text_and_right, (check_no_value,)),
    (notifications_are_numbered_by_zookeeper, (number_by_hand,)),
    (large_requests_are_not_sent, (send_anything,)),
    (nodes_have_the_brokers_acl, (leave_nodes_open,)),
    (changes_stand_on_what_was_read, (overwrite,)),
]


@pytest.fixture
def topic(c: Cluster) -> str:
    name = f"rule{next(NUMBERS)}"
    c.create_topic(name, [[1, 2], [2, 3]])
    return name


@pytest.mark.parametrize("rule", [rule for rule, _ in RULES], ids=lambda r: r.__name__)
def test_the_rule_is_kept(c: Cluster, k: Kctl, topic: str, rule: Rule) -> None:
    rule(c, k, topic)


@contextmanager
def copied(c: Cluster, topic: str) -> Iterator[Cluster]:
    """The cluster's znodes in another chroot, where no broker looks; the copied controller is this session's.

    Of its topics only the one: a shared cluster has hundreds, and a znode is a round trip.
    """
    folders = ("/brokers/topics", "/config/topics")
    copy = dataclasses.replace(c, chroot=f"/copy{next(NUMBERS)}")
    with c.client("") as client:

        def copy_below(path: str) -> None:
            try:
                data, found = client.get(c.chroot + path)
                names = client.get_children(c.chroot + path) if found.numChildren else ()
            except NoNodeError:  # a notification or a request that its reader took meanwhile
                return
            client.create(copy.chroot + path, data, ephemeral=path == "/controller", makepath=True)
            for name in names:
                if path not in folders or name == topic:
                    copy_below(f"{path}/{name}")

        copy_below("")
        yield copy
        client.delete(copy.chroot, recursive=True)


@pytest.mark.parametrize(
    ("rule", "breaking"),
    [(rule, b) for rule, breakings in RULES for b in breakings],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.brokers
def test_a_broken_rule_is_noticed(
    c: Cluster, k: Kctl, topic: str, rule: Rule, breaking: Breaking, monkeypatch: pytest.MonkeyPatch
) -> None:
    with copied(c, topic) as copy:
        there = Kctl(copy, k.journal)
        with monkeypatch.context() as patch:
            breaking(patch)
            with pytest.raises(AssertionError):
                rule(copy, there, topic)


@pytest.mark.parametrize("shared", ["2.8"], indirect=True)
@pytest.mark.parametrize("rule", [rule for rule, _ in RULES], ids=lambda r: r.__name__)
@pytest.mark.brokers
def test_the_copy_itself_breaks_no_rule(c: Cluster, k: Kctl, topic: str, rule: Rule) -> None:
    with copied(c, topic) as copy:
        rule(copy, Kctl(copy, k.journal), topic)
