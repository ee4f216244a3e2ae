"""The algorithm against Kafka's own authorizers, which are asked the same questions from their jars."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from kctl.access.acl import OPERATIONS, OPERATIONS_OF, Acl, Resource
from kctl.access.authorizer import Authorizer, AuthorizerSettings, parse_super_users
from kctl.cluster.versions import parse_version
from tests.brokers.jars import classpath

AUTHORIZE = Path(__file__).parents[2] / "brokers" / "Authorize.java"
TYPES = ("topic", "group", "cluster", "transactional_id", "delegation_token")
NAMES = ("o", "orders", "orders-eu", "orders.eu", "order", "payments", "*", "a*", "kafka-cluster", "ordérs")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:alice", "User:CN=a,O=b")
HOSTS = ("*", "127.0.0.1", "10.0.0.1", "10.0.0.2")


class Question(NamedTuple):
    """What is asked of a set of rules."""

    principal: str
    operation: str
    resource: Resource
    host: str


class RuleSet(NamedTuple):
    """Rules with settings, and questions about them."""

    acls: list[Acl]
    super_users: str
    allow_everyone: bool
    questions: list[Question]


def random_set(random: Random) -> RuleSet:
    """A few rules about few names, so that many of them touch the same resource."""
    kinds = random.sample(TYPES, random.choice((1, 1, 2)))
    names = random.sample(NAMES, random.randint(1, 5))
    operations = [name for name in OPERATIONS.values() if name not in UNKNOWN_TO_OLDEST]
    acls = []
    for _ in range(random.randint(0, 9)):
        name, pattern = random.choice(names), random.choice(("literal", "literal", "prefixed"))
        acls.append(
            Acl(
                random.choice(kinds),
                name,
                pattern,
                random.choice(PRINCIPALS),
                random.choice(HOSTS[:3]),
                random.choice(operations),
                random.choice(("allow", "allow", "deny")),
            )
        )
    questions = [
        Question(
            random.choice([p for p in PRINCIPALS if p != "User:*"]), random.choice(OPERATIONS_OF["topic"]),
            Resource(random.choice(kinds), random.choice([*names, "orders-eu-1"])), random.choice(HOSTS[1:]),
        )
        for _ in range(8)
    ]  # fmt: skip
    super_users = random.choice(("", "", "", "User:alice", "User:*", "User:x; Group:alice"))
    return RuleSet(acls, super_users, random.random() < 0.4, questions)


UNKNOWN_TO_OLDEST = ("create_tokens", "describe_tokens", "two_phase_commit")


def asked_of_kafka(version: str, backend: str, sets: list[RuleSet]) -> list[bool]:
    """The answers of the version's own authorizer, question by question."""
    lines = []
    for rules in sets:
        lines.append(f"set\t{rules.super_users}\t{str(rules.allow_everyone).lower()}")
        for acl in rules.acls:
            kind, name, pattern, principal, host, operation, permission = acl
            upper = f"{pattern.upper()}\t{principal}\t{host}\t{operation.upper()}\t{permission.upper()}"
            lines.append(f"acl\t{kind.upper()}\t{name}\t{upper}")
        for q in rules.questions:
            kind, name, _ = q.resource
            lines.append(f"ask\t{q.principal}\t{q.host}\t{q.operation.upper()}\t{kind.upper()}\t{name}")
    command = [
        "java",
        "-Xshare:auto",
        "-XX:TieredStopAtLevel=1",
        "-Dfile.encoding=UTF-8",
        "-cp",
        classpath(version),
    ]
    answered = subprocess.run(
        [*command, AUTHORIZE, backend],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    answers = [line == "ALLOWED" for line in answered.stdout.splitlines() if line in ("ALLOWED", "DENIED")]
    assert len(answers) == sum(len(rules.questions) for rules in sets), answered.stderr[-2000:]
    return answers


def decided(sets: list[RuleSet], version: str) -> list[tuple[RuleSet, Question, bool | None]]:
    """Our answers, question by question."""
    listed = []
    for rules in sets:
        settings = AuthorizerSettings(
            super_users=parse_super_users(rules.super_users), allow_everyone=rules.allow_everyone
        )
        authorizer = Authorizer(rules.acls, settings, parse_version(version))
        for q in rules.questions:
            decision = authorizer.decide(q.principal, q.operation, q.resource, q.host)
            listed.append((rules, q, decision.allowed))
    return listed


@pytest.mark.java
@pytest.mark.parametrize(
    ("version", "backend"),
    [("4.3", "kraft"), ("3.9", "kraft"), ("3.9", "zookeeper"), ("2.8", "zookeeper")],
)
def test_decides_as_kafka_does(version: str, backend: str) -> None:
    random = Random(f"{version}{backend}")
    sets = [random_set(random) for _ in range(600)]
    kafka = asked_of_kafka(version, backend, sets)
    ours = decided(sets, version)
    wrong = [(*case, theirs) for case, theirs in zip(ours, kafka, strict=True) if case[2] != theirs]
    assert not wrong, f"{len(wrong)} of {len(kafka)}: {wrong[:2]}"
    assert 0.1 < sum(kafka) / len(kafka) < 0.9
