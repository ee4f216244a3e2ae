"""Clusters with an authorizer: a plaintext listener for brokers and a super user, one with SASL/SCRAM for others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.brokers import cluster as rig
from tests.brokers.cluster import Cluster
from tests.brokers.processes import free_ports
from tests.brokers.running import Kctl
from tests.brokers.wire.conftest import WireKctl

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
NUMBERS = count()


@dataclass
class Guarded:
    """A broker whose plaintext listener is the super user's; `sasl` is the address for users with a password."""

    cluster: Cluster
    sasl: str
    backend: str

    def kctl(self, journal: Path) -> Kctl:
        """kctl by the backend: as the super user over the protocol, or in ZooKeeper."""
        return (WireKctl if self.backend == "kraft" else Kctl)(self.cluster, journal)

    def acls_by_kafka(self) -> set[tuple[str, ...]]:
        """The rules as kafka-acls lists them: resource type, name, pattern, principal, host, operation, permission."""
        return parsed(self.kafka_acls("--list"))

    def kafka_acls(self, *args: object) -> str:
        """What kafka-acls prints."""
        main = "kafka.admin.AclCommand" if self.cluster.version < "4" else "org.apache.kafka.tools.AclCommand"
        where = ["--bootstrap-server", self.cluster.bootstrap]
        if self.is_before_protocol:
            where = ["--authorizer-properties", f"zookeeper.connect={self.cluster.connect}"]
        return self.cluster.tool(main, *where, *args)

    @property
    def is_before_protocol(self) -> bool:
        """Whether Kafka's tools work on ZooKeeper (0.11), and print rules in words."""
        return self.cluster.version.startswith("0.")


def parsed(text: str) -> set[tuple[str, ...]]:
    """What kafka-acls prints, as rows."""
    rules, resource = set(), ("", "", "")
    for line in text.splitlines():
        if "ResourcePattern(" in line:
            inner = dict(
                part.split("=", 1)
                for part in line.partition("ResourcePattern(")[2].partition(")")[0].split(", ")
            )
            resource = (
                inner["resourceType"].lower().replace("_", ""),
                inner["name"],
                inner["patternType"].lower(),
            )
        elif "Current ACLs for resource `" in line:  # 0.11 has no prefixed patterns
            kind, _, name = line.partition("`")[2].partition("`")[0].partition(":")
            resource = (kind.lower(), name, "literal")
        elif match := re.search(r"(\S+) has (\w+) permission for operations: (\w+) from hosts: (\S+)", line):
            principal, permission, operation, host = match.groups()
            rules.add((*resource, principal, host, operation.lower(), permission.lower()))
        elif "(principal=" in line:
            inner = dict(
                part.split("=", 1)
                for part in line.partition("(")[2].rpartition(")")[0].split(", ")
                if "=" in part
            )
            rules.add(
                (
                    *resource,
                    inner["principal"],
                    inner["host"],
                    inner["operation"].lower(),
                    inner["permissionType"].lower(),
                )
            )
    return rules


KINDS = {
    "kraft-4.3": ("4.3", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
    "zookeeper-2.8": ("2.8", "kafka.security.authorizer.AclAuthorizer"),
    "kraft-3.9": ("3.9", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
    "zookeeper-3.9": ("3.9", "kafka.security.authorizer.AclAuthorizer"),
    "zookeeper-0.11": ("0.11", "kafka.security.auth.SimpleAclAuthorizer"),
}


EVERYWHERE = ("kraft-4.3", "zookeeper-2.8")
PARAMS = [pytest.param(kind, marks=() if kind in EVERYWHERE else pytest.mark.matrix) for kind in KINDS]


@pytest.fixture(scope="session", params=PARAMS)
def guarded(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    """One broker of each kind after the other."""
    version, authorizer = KINDS[request.param]
    plaintext, quorum, sasl = free_ports(3)
    is_kraft = request.param.startswith("kraft")
    where = f"PLAINTEXT://127.0.0.1:{plaintext},SASL_PLAINTEXT://127.0.0.1:{sasl}"
    properties: dict[str, object] = {
        "authorizer.class.name": authorizer,
        "super.users": "User:ANONYMOUS",
        "listeners": where + (f",CONTROLLER://127.0.0.1:{quorum}" if is_kraft else ""),
        "advertised.listeners": where,
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "delegation.token.secret.key": "key of tokens",
        "delegation.token.master.key": "key of tokens",
    }
    flags: tuple[str, ...] = ()
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig, "free_ports", lambda number: [plaintext, quorum][:number])
        if is_kraft:
            properties |= {
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            }
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                properties[f"listener.name.sasl_plaintext.{mechanism}.sasl.jaas.config"] = (
                    f"{MODULE} required;"
                )
            c = stack.enter_context(rig.kraft_cluster(version, brokers=1, properties=properties))
        else:
            jaas = stack.enter_context(rig._folder()) / "jaas.conf"
            jaas.write_text(f"KafkaServer {{\n  {MODULE} required;\n}};\n")
            flags = (f"-Djava.security.auth.login.config={jaas}",)
            if version != "0.11":
                flags = ()
                for mechanism in ("scram-sha-256", "scram-sha-512"):
                    properties[f"listener.name.sasl_plaintext.{mechanism}.sasl.jaas.config"] = (
                        f"{MODULE} required;"
                    )
            c = stack.enter_context(rig.cluster(version, brokers=1, properties=properties, flags=flags))
        patch.undo()  # other clusters of this process take ports of their own
        yield Guarded(c, f"127.0.0.1:{sasl}", "kraft" if is_kraft else "zookeeper")


@pytest.fixture
def k(guarded: Guarded, tmp_path: Path) -> Kctl:
    """kctl with a journal of its own."""
    return guarded.kctl(tmp_path / "journal")


@pytest.fixture
def name() -> str:
    """A name that no test has used."""
    return f"n{next(NUMBERS)}"
