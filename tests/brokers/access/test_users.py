"""SCRAM users on real brokers: clients log in with the passwords, and no password is left anywhere."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest

from tests.brokers.access.conftest import MODULE, Guarded
from tests.brokers.running import Kctl
from tests.commands.test_completing import proposed_by_a_cluster
from tests.conftest import rows

pytestmark = pytest.mark.brokers
SECRET = "Correct-Horse-9-battery"
OTHER = "Other-Staple-7-lamp"


def may_log_in(
    guarded: Guarded, user: str, password: str, mechanism: str = "SCRAM-SHA-256", seconds: float = 8
) -> bool:
    """Whether a client gets in, which tries it for so long; what it may do then is another question."""
    if guarded.is_before_protocol:  # kafka-python cannot log in there
        return lists_groups(guarded, user, password, mechanism)
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    try:
        consumer = KafkaConsumer(
            bootstrap_servers=guarded.sasl,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=user,
            sasl_plain_password=password,
            bootstrap_timeout_ms=round(seconds * 1000),
            reconnect_backoff_max_ms=200,
        )
    except KafkaError:
        return False
    consumer.close()
    return True


def lists_groups(guarded: Guarded, user: str, password: str, mechanism: str) -> bool:
    """Whether Kafka's own client is answered: without a login it never connects."""
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as file:
        file.write(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f'sasl.jaas.config={MODULE} required username="{user}" password="{password}";\n'
            "request.timeout.ms=5000\n"
        )
        file.flush()
        where = ("--bootstrap-server", guarded.sasl, "--command-config", file.name)
        answer = guarded.cluster.tool(
            "kafka.admin.ConsumerGroupCommand", *where, "--new-consumer", "--list", check=False
        )
    return "Error" not in answer and "Exception" not in answer


def by_kafka(guarded: Guarded, user: str) -> dict[str, int]:
    """The iterations of a user's mechanisms as kafka-configs lists them."""
    where = ("--bootstrap-server", guarded.cluster.bootstrap)
    if guarded.cluster.version < "2.7" or guarded.cluster.version.startswith("0."):
        where = ("--zookeeper", guarded.cluster.connect)
    said = guarded.cluster.tool(
        "kafka.admin.ConfigCommand", *where, "--describe", "--entity-type", "users", "--entity-name", user
    )
    return {
        mechanism: int(count)
        for mechanism, count in re.findall(r"(SCRAM-SHA-\d+)=\S*?iterations=(\d+)", said)
    }


def listed(k: Kctl, user: str) -> dict[str, int]:
    return {
        row["mechanism"]: row["iterations"] for row in k("user", "list").of("user") if row["name"] == user
    }


def left_behind(folder: Path, *secrets: str) -> list[str]:
    """Files below a folder that hold any of these, or what follows from them plainly."""
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets)
    ]


def test_a_user_from_creation_to_deletion(guarded: Guarded, k: Kctl, name: str, tmp_path: Path) -> None:
    password = tmp_path / "given" / "password"
    password.parent.mkdir()
    password.write_text(f"{SECRET}\n")
    printed: list[str] = []

    def change(*args: object, status: int = 0) -> None:
        ran = k.change(*args, status=status)
        printed.extend((ran.err, ran.out.decode()))

    dry = k("user", "create", name, "--generate-to", tmp_path / "generated", "--dry-run")
    assert dry.status == 0 and listed(k, name) == {} and not (tmp_path / "generated").exists()
    assert [kind for kind in ("user", "write") if dry.of(kind)] == ["user", "write"]
    assert not re.search("salt=[^*]|stored_key=[^*]", str(dry.rows))
    change("user", "create", name, "--password-file", password)
    both = {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 4096}
    assert listed(k, name) == both == by_kafka(guarded, name)
    cache = {**k.environment, "XDG_CACHE_HOME": str(tmp_path)}
    assert proposed_by_a_cluster(f"kctl user delete {name}", **cache) == [name]
    assert f"User:{name}" in proposed_by_a_cluster("kctl acl list --principal ", **cache)
    assert may_log_in(guarded, name, SECRET) and may_log_in(guarded, name, SECRET, "SCRAM-SHA-512")
    assert not may_log_in(guarded, name, OTHER, seconds=2)
    change("user", "create", name, "--password-file", password, status=4)
    script = tmp_path / "given" / "print-password"
    script.write_text(f"#!/bin/sh\necho {OTHER}\n")
    script.chmod(0o700)
    change(
        "user",
        "set-password",
        name,
        "--password-command",
        script,
        "--mechanism",
        "SCRAM-SHA-256",
        "--iterations",
        8192,
    )
    assert listed(k, name) == {**both, "SCRAM-SHA-256": 8192} == by_kafka(guarded, name)
    assert may_log_in(guarded, name, OTHER) and not may_log_in(guarded, name, SECRET, seconds=2)
    change("journal", "undo", k.ids()[-1], status=4)  # nobody knows the former password
    change("user", "delete", name, "--mechanism", "SCRAM-SHA-512")
    assert listed(k, name) == {"SCRAM-SHA-256": 8192} == by_kafka(guarded, name)
    change("user", "delete", name)
    assert listed(k, name) == {} == by_kafka(guarded, name)
    assert not may_log_in(guarded, name, OTHER, seconds=2)
    printed += [k("journal", "show", id).out.decode() for id in k.ids()]
    assert not [text for text in printed if SECRET in text or OTHER in text]
    assert left_behind(k.journal, SECRET, OTHER) == []


def test_what_the_journal_keeps_of_a_password(guarded: Guarded, k: Kctl, name: str, tmp_path: Path) -> None:
    file = tmp_path / "generated"
    k.change("user", "create", name, "--generate-to", file, "--mechanism", "SCRAM-SHA-256")
    generated = file.read_text().strip()
    assert file.stat().st_mode & 0o777 == 0o600 and len(generated) >= 24
    assert may_log_in(guarded, name, generated)
    kept = "".join(path.read_text() for path in k.journal.glob("*.json"))
    assert generated not in kept and "redacted" in kept
    assert not re.search(r"stored_key=[A-Za-z0-9+/]|salt\W+[A-Za-z0-9+/]{20}", kept)
    ran = k("user", "create", f"{name}-2", "--generate-to", file, "--yes")
    assert ran.status == 3 and listed(k, f"{name}-2") == {}
    k.change("journal", "undo", k.ids()[-1])
    assert listed(k, name) == {}


def test_kctl_itself_is_not_locked_out(guarded: Guarded, k: Kctl, name: str, tmp_path: Path) -> None:
    if guarded.backend == "zookeeper":
        pytest.skip("ZooKeeper has its own users")
    password = tmp_path / "password"
    password.write_text(SECRET)
    k.change("user", "create", name, "--password-file", password)
    k.change("acl", "create", "--principal", f"User:{name}", "--cluster", "--super-user", "User:ANONYMOUS")
    env = {
        "KCTL_SASL_MECHANISM": "SCRAM-SHA-512", "KCTL_SASL_USERNAME": name, "KCTL_SASL_PASSWORD": SECRET,
        "KCTL_JOURNAL": str(tmp_path / "own"), "KCTL_CONFIG": os.devnull + "/none", "KCTL_ANSWER_TIMEOUT": "30",
    }  # fmt: skip

    def own(*args: object) -> tuple[int, str]:
        ran = rows(*args, "--bootstrap-server", guarded.sasl, "--yes", env=env)
        return ran.status, ran.err

    status, said = own("user", "delete", name)
    assert status == 4 and "kctl connects as" in said
    status, said = own("acl", "delete", "--principal", f"User:{name}", "--super-user", "User:ANONYMOUS")
    assert status == 4 and f"User:{name}, who makes this change, would lose alter and describe" in said
    assert own("user", "delete", name, "--accept-lockout")[0] == 0
    assert not may_log_in(guarded, name, SECRET, seconds=2)
    k.change("acl", "delete", "--principal", f"User:{name}", "--accept-lockout")
    assert left_behind(tmp_path / "own", SECRET) == []
