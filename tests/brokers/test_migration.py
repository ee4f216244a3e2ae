"""Real migrations from ZooKeeper to KRaft on Kafka 3.9: by the runbook, and killed and rolled back on the way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.cluster import QUICK, BrokerProcess, Cluster, cluster, eventually
from tests.brokers.processes import free_ports, wait_for_port
from tests.brokers.test_runbooks import carry_out
from tests.brokers.traffic import traffic
from tests.conftest import Ran, rows

pytestmark = pytest.mark.brokers
CONTROLLER = 100
LOG = "__cluster_metadata-0"
SCRAM = "salt=YWxpY2U=,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096"
# What is there before: configurations, quotas, a credential and rules, as brokers write them.
ZNODES: dict[str, object] = {
    "/config/brokers/1": {"version": 1, "config": {"log.cleaner.backoff.ms": "16000"}},
    "/config/brokers/<default>": {"version": 1, "config": {"log.retention.ms": "259200000"}},
    "/config/clients/batch": {"version": 1, "config": {"request_percentage": "25.5"}},
    "/config/ips/10.1.2.3": {"version": 1, "config": {"connection_creation_rate": "20"}},
    "/config/users/alice": {
        "version": 1,
        "config": {"SCRAM-SHA-256": SCRAM, "producer_byte_rate": "1048576"},
    },
    "/config/users/bob%20smith/clients/<default>": {"version": 1, "config": {"producer_byte_rate": "77"}},
    "/kafka-acl/Topic/orders": {
        "version": 1,
        "acls": [
            {"principal": "User:a", "permissionType": "Allow", "operation": "DescribeConfigs", "host": "*"}
        ],
    },
    "/kafka-acl-extended/prefixed/Group/g": {
        "version": 1,
        "acls": [{"principal": "User:b", "permissionType": "Deny", "operation": "Read", "host": "10.0.0.9"}],
    },
}


@dataclass
class Migrating:
    """Brokers 1, 2, 3 and what is to be their controller, each restarted in a mode: zookeeper, migration, kraft."""

    cluster: Cluster
    folder: Path
    port: int  # of the controller

    @property
    def environment(self) -> dict[str, str]:
        return {
            "KCTL_ZOOKEEPER": self.cluster.connect,
            "KCTL_BOOTSTRAP_SERVER": self.bootstrap,
            "KCTL_CONFIG": "/dev/null/none",
            "KCTL_JOURNAL": str(self.folder / "journal"),
            "KCTL_ANSWER_TIMEOUT": "60",
        }

    def kctl(self, *args: object) -> Ran:
        return rows(*args, env=self.environment)

    def fill(self) -> None:
        """Metadata of every kind."""
        self.cluster.create_topic("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], retention_ms=86400000)
        self.cluster.create_topic("plain", [[1], [2]])
        with self.cluster.client() as client:
            for path, content in ZNODES.items():
                data = json.dumps(content).encode()
                client.set(path, data) if client.exists(path) else client.create(path, data, makepath=True)

    def settings(self, id: int, mode: str) -> dict[str, object]:
        quorum: dict[str, object] = {
            "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "broker.session.timeout.ms": 9000,
        }
        zookeeper = {"zookeeper.connect": self.cluster.connect, "zookeeper.session.timeout.ms": 30000}
        migration = {**zookeeper, "zookeeper.metadata.migration.enable": "true"}
        process = self.cluster.brokers[id]
        common = {**QUICK, "log.dirs": process.log_dir}
        if id == CONTROLLER:
            own = {
                "process.roles": "controller",
                "node.id": id,
                "listeners": f"CONTROLLER://127.0.0.1:{self.port}",
            }
            return {**common, **quorum, **own, **(migration if mode == "migration" else {})}
        common["listeners"] = f"PLAINTEXT://127.0.0.1:{process.port}"
        return {
            "zookeeper": {**common, **zookeeper, "broker.id": id},
            "migration": {**common, **quorum, **migration, "broker.id": id},
            "kraft": {**common, **quorum, "process.roles": "broker", "node.id": id},
        }[mode]

    def restart(self, node: int | str, mode: str) -> None:
        """Restart a node in a mode, and wait until all is in sync again."""
        self.begin(int(node), mode)
        if int(node) != CONTROLLER:
            self.wait_until_in_sync()

    def begin(self, id: int, mode: str) -> None:
        """Restart a node in a mode."""
        if id not in self.cluster.brokers:
            self._add_controller()
        process = self.cluster.brokers[id]
        if process.process and process.process.is_running:
            process.process.terminate()
        text = "".join(f"{key}={value}\n" for key, value in self.settings(id, mode).items())
        (process.folder / "server.properties").write_text(text)
        if id == CONTROLLER and not process.log_dir.exists():
            properties = process.folder / "server.properties"
            found = self.cluster.znode("/cluster/id")
            self.cluster.tool("kafka.tools.StorageTool", "format", "-t", found["id"], "-c", properties)
        self.cluster.start(id, wait=False)
        assert process.process
        wait_for_port(process.port, process.process)

    def _add_controller(self) -> None:
        folder = self.cluster.folder / f"broker-{CONTROLLER}"
        folder.mkdir()
        self.cluster.brokers[CONTROLLER] = BrokerProcess(CONTROLLER, self.port, folder)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{b.port}" for id, b in self.cluster.brokers.items() if id != CONTROLLER)

    def wait_until_in_sync(self) -> None:
        """Until every partition has a leader and all replicas, as znodes say, to which either controller writes."""
        for _ in eventually("everything is in sync"):
            found = self.kctl("topic", "describe").of("partition")
            if found and all(p["leader"] >= 0 and set(p["isr"]) == set(p["replicas"]) for p in found):
                return

    def wait_for_phase(self, phase: str) -> None:
        for _ in eventually(f"phase {phase}"):
            if self.kctl("migration", "status").rows[0]["phase"] == phase:
                return

    def copy_metadata(self, name: str) -> Path:
        """A copy of the controller's metadata log."""
        target = self.folder / name
        shutil.copytree(self.cluster.brokers[CONTROLLER].log_dir / LOG, target)
        return target

    def check(self, name: str, *more: object) -> Ran:
        """The comparison of the live znodes with a new copy of the metadata."""
        return self.kctl("migration", "check", "--metadata", self.copy_metadata(name), *more)


@pytest.fixture
def migrating(tmp_path: Path) -> Iterator[Migrating]:
    with cluster("3.9", brokers=3, properties={"inter.broker.protocol.version": "3.9"}) as c:
        (port,) = free_ports(1)
        made = Migrating(c, tmp_path, port)
        made.fill()
        yield made


def errors(ran: Ran) -> list[Any]:
    return [row for row in ran.rows if row.get("severity") == "error"]


def test_the_runbook(migrating: Migrating) -> None:
    before = migrating.kctl("migration", "check")
    assert (before.status, before.codes()) == (0, ["migration-secrets-not-compared"])
    with traffic(migrating.cluster, "orders", 3) as running:
        tools = {"restart-node": migrating.restart, "copy-metadata": migrating.copy_metadata}
        carry_out("migrate-from-zookeeper", migrating.folder, migrating.environment, tools)
        running.require_progress()
    running.require_nothing_lost()
    final = migrating.kctl("migration", "status", "--metadata", migrating.folder / "final")
    assert [(r["phase"], r["zookeeper_brokers"], r["kraft_brokers"]) for r in final.rows] == [
        ("finalized", [], [1, 2, 3])
    ]
    proof = migrating.kctl(
        "migration",
        "check",
        "--snapshot",
        migrating.folder / "before.jsonl",
        "--metadata",
        migrating.folder / "final",
    )
    assert (proof.status, errors(proof)) == (0, [])
    compared = {row["entity_type"]: row["fields"] for row in proof.of("comparison")}
    assert all(compared[kind] for kind in ("topic", "partition", "config", "quota", "user", "acl", "broker"))


def test_killed_and_rolled_back(migrating: Migrating) -> None:
    c = migrating.cluster
    migrating.restart(CONTROLLER, "migration")
    migrating.restart(1, "migration")
    c.kill(3)
    c.wait_until_gone(3)
    waiting = migrating.check("waiting")
    assert waiting.rows[0]["phase"] == "preparing"
    assert waiting.status == 5
    assert "migration-broker-missing" in waiting.codes("error")
    # The controller is killed while it waits, and later while it writes to both.
    c.kill(CONTROLLER)
    c.start(CONTROLLER, wait=False)
    migrating.begin(3, "migration")
    migrating.restart(2, "migration")
    migrating.wait_for_phase("hybrid")
    migrating.wait_until_in_sync()
    hybrid = migrating.check("hybrid")
    assert (hybrid.status, errors(hybrid)) == (0, []), hybrid.rows
    live = migrating.kctl("migration", "check", "--controllers", f"127.0.0.1:{migrating.port}")
    assert (live.status, live.rows[0]["phase"], errors(live)) == (0, "hybrid", []), live.err
    migrating.restart(1, "kraft")
    c.kill(CONTROLLER)
    c.start(CONTROLLER, wait=False)
    by_protocol = {**migrating.environment, "KCTL_ZOOKEEPER": ""}
    for _ in eventually("the controller is back, and the topic made"):
        rows("topic", "create", "during", "--replica-assignment", "1:2,2:3", "--yes", env=by_protocol)
        if rows("topic", "describe", "during", env=by_protocol).of("partition"):
            break
    for _ in eventually("both sides agree"):
        mixed = migrating.check(f"mixed-{len(list(migrating.folder.iterdir()))}")
        if mixed.status == 0:
            break
    assert mixed.rows[0]["phase"] == "hybrid"
    # Back: to migration mode, the controller away, its claim deleted, and plain ZooKeeper mode.
    migrating.restart(1, "migration")
    last = migrating.copy_metadata("last")
    c.brokers[CONTROLLER].process.terminate()  # type: ignore[union-attr]
    with c.client() as client:
        client.delete("/controller")
        client.delete("/migration")
    for id in (1, 2, 3):
        c.kill(id)
    del c.brokers[CONTROLLER]
    c.wait_until_gone(1, 2, 3)
    for id in (1, 2, 3):
        migrating.begin(id, "zookeeper")
    migrating.wait_until_in_sync()
    back = migrating.kctl("migration", "check", "--metadata", last)
    assert back.rows[0]["phase"] == "rolled_back"
    assert (back.status, errors(back)) == (0, []), back.rows
    assert migrating.kctl("topic", "describe", "during").of("partition")
